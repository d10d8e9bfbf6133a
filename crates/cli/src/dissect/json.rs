//! `--json`: one object a line.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use urxe_wire::{Bth, Error};

use super::fields::{HeaderFields, key};
use super::outcome::{Cut, Ends, Icrc, Mad, Outcome, RocePacket};
use super::verbose;
use crate::capture::{Frame, Timestamp};

/// A frame's object. The keys of the first part are always there, `null` where there is no value.
pub(crate) struct Record<'a> {
    /// The frame.
    pub(crate) frame: &'a Frame<'a>,
    /// What it turned out to be.
    pub(crate) outcome: &'a Outcome<'a>,
}

/// What all objects have.
#[derive(Default)]
struct Head<'a> {
    ends: Option<&'a Ends>,
    bth: Option<Bth>,
    syndrome: Option<u8>,
    msn: Option<u32>,
    payload_len: Option<usize>,
    icrc: Option<&'static str>,
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let head = Head::of(self.outcome);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("frame", &self.frame.number)?;
        map.serialize_entry("time", &self.frame.time.map(exact))?;
        map.serialize_entry("src", &head.ends.map(|e| &e.src))?;
        map.serialize_entry("dst", &head.ends.map(|e| &e.dst))?;
        map.serialize_entry("opcode", &head.bth.map(|b| b.opcode.to_string()))?;
        map.serialize_entry("dest_qp", &head.bth.map(|b| b.dest_qp.value()))?;
        map.serialize_entry("psn", &head.bth.map(|b| b.psn.value()))?;
        map.serialize_entry("ack_req", &head.bth.map(|b| b.ack_req))?;
        map.serialize_entry("syndrome", &head.syndrome)?;
        map.serialize_entry("msn", &head.msn)?;
        map.serialize_entry("payload_len", &head.payload_len)?;
        map.serialize_entry("icrc", &head.icrc)?;
        match self.outcome {
            Outcome::Roce(packet) => packet_entries(&mut map, packet)?,
            Outcome::Broken { error, .. } => map.serialize_entry("error", &Fault(error))?,
            Outcome::Cut { cut, .. } => cut_entry(&mut map, *cut)?,
            Outcome::Skipped(why) => map.serialize_entry("skipped", why)?,
        }
        map.end()
    }
}

impl<'a> Head<'a> {
    fn of(outcome: &'a Outcome<'a>) -> Self {
        match outcome {
            Outcome::Roce(p) => Self {
                ends: Some(&p.ends),
                bth: Some(p.roce().bth),
                syndrome: p.roce().ext.aeth.map(|aeth| aeth.syndrome.bits()),
                msn: p.roce().ext.aeth.map(|aeth| aeth.msn.value()),
                payload_len: Some(p.roce().payload.len()),
                icrc: match p.icrc {
                    Icrc::Ok => Some("ok"),
                    Icrc::Bad { .. } => Some("bad"),
                    Icrc::Unseen => None,
                },
            },
            Outcome::Broken { ends, bth, .. } => {
                Self { ends: ends.as_ref(), bth: *bth, ..Self::default() }
            }
            Outcome::Cut { ends, .. } => Self { ends: ends.as_ref(), ..Self::default() },
            Outcome::Skipped(_) => Self::default(),
        }
    }
}

fn packet_entries<M: SerializeMap>(map: &mut M, p: &RocePacket<'_>) -> Result<(), M::Error> {
    if let Some(cut) = p.cut {
        cut_entry(map, cut)?;
    }
    if let Icrc::Bad { got, wanted } = p.icrc {
        let hex = |bytes: [u8; 4]| format!("{:08x}", u32::from_be_bytes(bytes));
        map.serialize_entry("icrc_got", &hex(got))?;
        map.serialize_entry("icrc_wanted", &hex(wanted))?;
    }
    let headers = verbose::headers(p);
    let (vlans, headers): (Vec<_>, Vec<_>) = headers.into_iter().partition(|h| h.name == "VLAN");
    if !vlans.is_empty() {
        map.serialize_entry("vlans", &vlans)?;
    }
    for header in &headers {
        if header.name.starts_with("CM ") {
            map.serialize_entry("cm", &Message::new(header))?;
        } else {
            map.serialize_entry(&key(header.name), header)?;
        }
    }
    if let Some(Mad::Bad(error)) = &p.mad {
        map.serialize_entry("error", &Fault(error))?;
    }
    Ok(())
}

fn cut_entry<M: SerializeMap>(map: &mut M, cut: Cut) -> Result<(), M::Error> {
    let value = serde_json::json!({ "captured": cut.captured, "original": cut.original });
    map.serialize_entry("cut", &value)
}

/// Seconds with nine decimals, which a float would not hold.
pub(crate) fn exact(time: Timestamp) -> Box<RawValue> {
    // Digits and a point are always a JSON number.
    RawValue::from_string(time.seconds(9)).unwrap_or_default()
}

/// A CM message and its name.
pub(crate) struct Message<'a> {
    message: &'a str,
    body: &'a HeaderFields,
}

impl<'a> Message<'a> {
    /// A message by its fields.
    pub(crate) fn new(body: &'a HeaderFields) -> Self {
        Self { message: body.name.strip_prefix("CM ").unwrap_or(body.name), body }
    }
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("message_name", self.message)?;
        for field in &self.body.fields {
            super::fields::serialize_field(&mut map, field.name, &field.value)?;
        }
        map.end()
    }
}

/// What is wrong with a packet.
struct Fault<'a>(&'a Error);

impl Serialize for Fault<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("header", self.0.header)?;
        map.serialize_entry("field", self.0.field)?;
        map.serialize_entry("got", &self.0.got)?;
        map.serialize_entry("wanted", &self.0.wanted.to_string())?;
        map.serialize_entry("text", &self.0.to_string())?;
        map.end()
    }
}
