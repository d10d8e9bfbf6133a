//! `-v`: every field of every header, with its bytes. `-x`: the payload.

use std::fmt::Write as _;

use urxe_wire::{Link, MAD_HEADER_LEN, MadHeader, Network, Repr};

use super::fields::{self, Field, HeaderFields, Octets, Value};
use super::outcome::{Mad, RocePacket};
use super::style::{Palette, paint};
use super::{cm, words};

/// How many bytes of a field stand in its line.
const SHOWN_BYTES: usize = 8;

/// What is said of a value that a snap length cut.
const NOT_SEEN: &str = "not seen: the frame is cut short";

/// All headers of a packet in the order they stand in; BTH and what follows it last.
#[must_use]
pub(crate) fn headers(p: &RocePacket<'_>) -> Vec<HeaderFields> {
    let mut all: Vec<HeaderFields> = Vec::new();
    let mut at = 0;
    let link = match &p.packet.link {
        Link::Ethernet(h) => Some(fields::ethernet(at, h)),
        Link::Sll(h) => Some(fields::sll(at, h)),
        Link::Sll2(h) => Some(fields::sll2(at, h)),
        Link::Infiniband { lrh, .. } => Some(fields::lrh(at, lrh)),
        Link::RawIp => None,
    };
    at += p.packet.link.len();
    all.extend(link);
    for tag in p.packet.vlans.tags() {
        let header = fields::vlan(at, tag);
        at += header.len;
        all.push(header);
    }
    match &p.packet.network {
        Network::Ipv4 { header, options, udp } => {
            all.push(fields::ipv4(at, header, options));
            all.push(fields::udp(at + header.header_len(), udp));
        }
        Network::Ipv6 { header, udp } => {
            let ip = fields::ipv6(at, header);
            let udp = fields::udp(at + ip.len, udp);
            all.extend([ip, udp]);
        }
        Network::Grh(header) => all.push(fields::grh(at, header)),
        Network::Local => {}
    }
    let roce = p.roce();
    let bth = fields::bth(p.bth_at(), &roce.bth);
    let after = bth.offset + bth.len;
    all.push(bth);
    all.extend(fields::extensions(after, &roce.ext));
    match &p.mad {
        Some(Mad::Cm(header, message)) => {
            all.push(cm::mad_header(p.payload_at(), header));
            all.push(cm::message(p.payload_at(), message));
        }
        Some(Mad::Other(header)) => all.extend(other_mad(p, header)),
        Some(Mad::Bad(_)) => {
            if let Ok((header, _)) = MadHeader::parse(roce.payload) {
                all.extend(other_mad(p, &header));
            }
        }
        None => {}
    }
    all
}

/// A datagram of which only the header is understood.
fn other_mad(p: &RocePacket<'_>, header: &MadHeader) -> impl Iterator<Item = HeaderFields> {
    let at = p.payload_at();
    let data = p.roce().payload.get(MAD_HEADER_LEN..).unwrap_or_default();
    let body = (!data.is_empty()).then(|| {
        HeaderFields::new("MAD data", at + MAD_HEADER_LEN, data.len()).with(
            "data",
            0,
            data.len(),
            Value::Bytes(data.to_vec()),
        )
    });
    [cm::mad_header(at, header)].into_iter().chain(body)
}

/// Appends the headers of a packet, a field a line.
pub(crate) fn write_headers(
    out: &mut String,
    palette: &Palette,
    p: &RocePacket<'_>,
    frame: &[u8],
    hex: bool,
) {
    for header in headers(p) {
        write_header(out, palette, &header, frame);
    }
    let roce = p.roce();
    let mut at = p.payload_at();
    let told = p.mad.is_some() && roce.payload.len() >= MAD_HEADER_LEN;
    if !roce.payload.is_empty() && (hex || !told) {
        write_title(out, palette, "payload", at, roce.payload.len());
        if hex {
            write_payload(out, palette, p, frame);
        }
    }
    at += roce.payload.len();
    if !roce.pad.is_empty() {
        let pad = if at + roce.pad.len() > frame.len() {
            Value::Text(NOT_SEEN.to_owned())
        } else {
            Value::Bytes(roce.pad.to_vec())
        };
        let header = HeaderFields::new("pad", at, roce.pad.len());
        write_header(out, palette, &header.with("pad", 0, roce.pad.len(), pad), frame);
        at += roce.pad.len();
    }
    let icrc = HeaderFields::new("ICRC", at, roce.icrc.len());
    let icrc = icrc.with("icrc", 0, roce.icrc.len(), Value::Text(words::icrc(p.icrc)));
    write_header(out, palette, &icrc, frame);
    at += roce.icrc.len();
    if let Link::Infiniband { vcrc, .. } = &p.packet.link {
        let verdict = match p.packet.compute_vcrc() {
            _ if at + vcrc.len() > frame.len() => NOT_SEEN.to_owned(),
            Some(wanted) if wanted != *vcrc => format!("wrong, wanted {}", Octets(&wanted)),
            _ => "right".to_owned(),
        };
        let header = HeaderFields::new("VCRC", at, vcrc.len());
        let header = header.with("vcrc", 0, vcrc.len(), Value::Text(verdict));
        write_header(out, palette, &header, frame);
        at += vcrc.len();
    }
    if !p.packet.trailer.is_empty() {
        write_title(out, palette, "after the packet", at, p.packet.trailer.len());
    }
}

fn write_title(out: &mut String, palette: &Palette, name: &str, at: usize, len: usize) {
    let bytes = if len == 1 { "byte" } else { "bytes" };
    let title = paint(palette.header, name);
    let _ =
        writeln!(out, "      {title}  {}", paint(palette.dim, format!("{len} {bytes} at {at}")));
}

fn write_header(out: &mut String, palette: &Palette, header: &HeaderFields, frame: &[u8]) {
    write_title(out, palette, header.name, header.offset, header.len);
    write_fields(out, palette, &header.fields, header.offset, frame, 0);
}

fn write_fields(
    out: &mut String,
    palette: &Palette,
    fields: &[Field],
    base: usize,
    frame: &[u8],
    depth: usize,
) {
    let width = fields.iter().map(|f| f.name.len()).max().unwrap_or(0);
    for field in fields {
        let start = base + field.at;
        let bytes = frame.get(start..(start + field.len).min(frame.len())).unwrap_or_default();
        let shown = &bytes[..bytes.len().min(SHOWN_BYTES)];
        let hex: Vec<_> = shown.iter().map(|b| format!("{b:02x}")).collect();
        let more = if field.len > shown.len() { " …" } else { "" };
        let hex = format!("{start:04x}  {:<26}", format!("{}{more}", hex.join(" ")));
        let name = field.name.replace('_', " ");
        let indent = 2 * depth;
        let _ = write!(out, "        {}{:indent$}", paint(palette.dim, hex), "");
        match &field.value {
            Value::Group(inner) => {
                let _ = writeln!(out, "{}", paint(palette.header, name));
                write_fields(out, palette, inner, base, frame, depth + 1);
            }
            value => {
                let _ = writeln!(out, "{name:<width$}  {value}");
            }
        }
    }
}

/// Appends the payload's bytes, as far as they are there.
pub(crate) fn write_payload(out: &mut String, palette: &Palette, p: &RocePacket<'_>, frame: &[u8]) {
    let at = p.payload_at();
    let end = (at + p.roce().payload.len()).min(frame.len());
    write_hex(out, palette, frame.get(at..end).unwrap_or_default(), at);
}

/// Appends bytes, sixteen a line, with their offset in the frame and their letters.
pub(crate) fn write_hex(out: &mut String, palette: &Palette, bytes: &[u8], at: usize) {
    for (i, line) in bytes.chunks(16).enumerate() {
        let hex: Vec<_> =
            line.chunks(8).map(|half| half.iter().map(|b| format!("{b:02x}"))).collect();
        let hex: Vec<_> = hex.into_iter().map(|half| half.collect::<Vec<_>>().join(" ")).collect();
        let letter = |b: &u8| if (0x20..0x7f).contains(b) { char::from(*b) } else { '.' };
        let text: String = line.iter().map(letter).collect();
        let offset = paint(palette.dim, format!("{:04x}", at + 16 * i));
        let _ = writeln!(out, "        {offset}  {:<48}  {text}", hex.join("  "));
    }
}
