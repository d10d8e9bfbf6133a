//! The page: the demo as a picture that works offline.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::recorder::{Event, Packet, Recorder};
use super::story::{Told, kind_name};
use super::world::SIZE;
use super::{Ended, STEPS};

const TEMPLATE: &str = include_str!("page.html");
/// What stands in the template for its parts.
const PARTS: [(&str, &str); 4] = [
    ("/*STYLE*/", include_str!("page.css")),
    ("/*LAYOUT*/", include_str!("layout.js")),
    ("/*PANEL*/", include_str!("panel.js")),
    ("/*SCRIPT*/", include_str!("page.js")),
];
/// Where the data goes.
const MARK: &str = "/*DATA*/";

/// Writes it.
pub(super) fn write(path: &Path, recorder: &Recorder, ended: &Ended) -> io::Result<()> {
    let steps: Result<Vec<_>, _> = (0..STEPS.len()).map(|nth| step(recorder, ended, nth)).collect();
    let packets = ended.packets.iter().zip(&ended.told);
    let packets: Result<Vec<_>, _> = packets.map(|(packet, told)| row(packet, told)).collect();
    let events: Result<Vec<_>, _> = recorder.events().iter().map(event).collect();
    let data = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "mtu": ended.mtu.bytes(),
        "memory": SIZE,
        "steps": steps?,
        "packets": packets?,
        "events": events?,
    });
    std::fs::write(path, page(&data))
}

/// The template with its parts and the data.
fn page(data: &Value) -> String {
    let mut page = TEMPLATE.to_owned();
    for (mark, part) in PARTS {
        page = page.replacen(mark, part, 1);
    }
    page.replacen(MARK, &inert(data), 1)
}

/// JSON that cannot end the script it stands in: a `</script>` in a string would.
fn inert(data: &Value) -> String {
    data.to_string().replace('<', "\\u003c")
}

fn step(recorder: &Recorder, ended: &Ended, nth: usize) -> io::Result<Value> {
    let mut value = serde_json::to_value(&ended.reports[nth])?;
    let pairs: Vec<_> = recorder
        .pairs(nth)
        .iter()
        .map(|pair| {
            let ((alice, _), (bob, _)) = (pair.alice, pair.bob);
            json!({ "kind": kind_name(pair.kind), "alice": alice.value(), "bob": bob.value() })
        })
        .collect();
    value["pairs"] = json!(pairs);
    let (start, [alice, bob]) = ended.settings[nth];
    value["start"] = json!(micros(start));
    value["addresses"] = json!({ "alice": alice, "bob": bob });
    Ok(value)
}

fn row(packet: &Packet, told: &Told) -> io::Result<Value> {
    let roce = packet.roce();
    let bth = roce.as_ref().map(|r| &r.bth);
    let syndrome = roce.as_ref().and_then(|r| r.ext.aeth).map(|aeth| {
        use urxe_wire::Syndrome::{Ack, Nak, Reserved, RnrNak};
        let kind = match aeth.syndrome {
            Ack(_) => "ack",
            RnrNak(_) => "rnr",
            Nak(_) | Reserved(_) => "nak",
        };
        let text = crate::dissect::syndrome(aeth.syndrome);
        json!({ "kind": kind, "text": text, "msn": aeth.msn.value() })
    });
    let hex: String = packet.frame.iter().map(|b| format!("{b:02x}")).collect();
    Ok(json!({
        "step": packet.step,
        "from": packet.from,
        "left": micros(packet.left),
        "arrived": packet.arrived.map(micros),
        "opcode": bth.map(|b| b.opcode.to_string()),
        "qp": bth.map(|b| b.dest_qp.value()),
        "psn": bth.map(|b| b.psn.value()),
        "ack_req": bth.is_some_and(|b| b.ack_req),
        "len": roce.as_ref().map(|r| r.payload.len()),
        "aeth": syndrome,
        "sentence": told.sentence,
        "again": told.again,
        "about": told.about,
        "end": told.end,
        "headers": crate::dissect::layout_of_ip(&packet.frame),
        "hex": hex,
    }))
}

fn event(event: &Event) -> io::Result<Value> {
    let mut value = serde_json::to_value(&event.what)?;
    value["step"] = json!(event.step);
    value["who"] = json!(event.who);
    value["qp"] = json!(event.qpn.value());
    value["at"] = json!(micros(event.at));
    Ok(value)
}

/// Microseconds, to a nanosecond.
fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e9).round() / 1e3
}

#[cfg(test)]
mod tests;
