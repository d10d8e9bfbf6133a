//! Management datagrams, in short and field by field.

use std::fmt::Write as _;

use urxe_wire::{
    CmMessage, FieldValue, Fields, MAD_HEADER_LEN, MadHeader, ManagementClass,
    cm::{CmAttribute, IpHeader},
};

use super::fields::{Field, HeaderFields, Value};
use super::outcome::Mad;
use super::style::{Palette, paint};

/// The fields of CM messages that the one line shows, and their names there.
const SHORT: [(&str, &str); 13] = [
    ("local_comm_id", "local"),
    ("remote_comm_id", "remote"),
    ("request_id", "request"),
    ("message", "of"),
    ("reason", "reason"),
    ("status", "status"),
    ("service_id", "service"),
    ("local_qpn", "qp"),
    ("remote_qpn", "remote qp"),
    ("qpn", "qp"),
    ("starting_psn", "first psn"),
    ("service_timeout", "wait"),
    ("qkey", "qkey"),
];

/// Appends what a line says of a management datagram.
pub(crate) fn write_details(out: &mut String, palette: &Palette, mad: &Mad) {
    let message = match mad {
        Mad::Cm(_, message) => message,
        Mad::Other(header) => {
            let text = format!("MAD class {}, method {}", header.class, header.method);
            let _ = write!(out, "  {}", paint(palette.cm, text));
            return;
        }
        Mad::Bad(error) => {
            let _ = write!(out, "  {}", paint(palette.bad, error));
            return;
        }
    };
    write_message(out, palette, message);
}

/// Appends what a line says of a message.
pub(crate) fn write_message(out: &mut String, palette: &Palette, message: &CmMessage) {
    let _ = write!(out, "  {}", paint(palette.cm, message.name()));
    message.for_each_field(&mut |name, _, value| {
        let Some((_, label)) = SHORT.iter().find(|(field, _)| *field == name) else { return };
        let text = value.to_string();
        let _ = write!(out, "  {} {}", paint(palette.dim, label), shorter(name, &text));
    });
    if let Some(ip) = ip_header(message) {
        let (from, to) = (ip.source(), ip.destination());
        let _ = write!(out, "  {} {from} → {to}", paint(palette.dim, "ip"));
    }
}

/// A service by its port, if it has one, and a QPN without leading zeros.
fn shorter(name: &str, text: &str) -> String {
    let port = text.strip_suffix(')').and_then(|text| text.split_once(" ("));
    match (name, port, text.strip_prefix("0x")) {
        ("service_id", Some((_, port)), _) => port.to_owned(),
        ("local_qpn" | "remote_qpn" | "qpn", _, Some(digits)) => {
            match digits.trim_start_matches('0') {
                "" => "0x0".to_owned(),
                short => format!("0x{short}"),
            }
        }
        _ => text.to_owned(),
    }
}

fn ip_header(message: &CmMessage) -> Option<IpHeader> {
    match message {
        CmMessage::Req(req) => req.ip_header().ok().map(|(ip, _)| ip),
        CmMessage::SidrReq(req) => req.ip_header().ok().map(|(ip, _)| ip),
        _ => None,
    }
}

/// The MAD header, which begins at `at`.
#[must_use]
pub(crate) fn mad_header(at: usize, header: &MadHeader) -> HeaderFields {
    let mut fields = fields(header);
    for field in &mut fields {
        if let Value::Number(id) = field.value
            && field.name == "attribute_id"
        {
            field.value = attribute(header, id);
        }
    }
    HeaderFields { name: "MAD", offset: at, len: MAD_HEADER_LEN, fields }
}

/// An attribute id, whose meaning depends on the class.
fn attribute(header: &MadHeader, id: u64) -> Value {
    match CmAttribute::from_code(header.attribute_id) {
        known if header.class == ManagementClass::Communication => {
            Value::CodedHex(id, 16, known.text().to_owned())
        }
        _ => Value::Hex(id, 16),
    }
}

/// The body of a message whose MAD begins at `at`.
#[must_use]
pub(crate) fn message(at: usize, message: &CmMessage) -> HeaderFields {
    let name = message.name();
    let len = urxe_wire::MAD_LEN - MAD_HEADER_LEN;
    HeaderFields { name, offset: at + MAD_HEADER_LEN, len, fields: fields(message) }
}

fn fields(header: &dyn Fields) -> Vec<Field> {
    nested(header, 0)
}

/// The fields of a header that begins `base` bytes into the one around it.
fn nested(header: &dyn Fields, base: usize) -> Vec<Field> {
    let mut fields = Vec::new();
    header.for_each_field(&mut |name, bits, value| {
        let at = base + bits.start / 8;
        let len = base + bits.end.div_ceil(8) - at;
        fields.push(Field { name, at, len, value: convert(&value, at) });
    });
    fields
}

fn convert(value: &FieldValue<'_>, at: usize) -> Value {
    match *value {
        FieldValue::Number(n) => Value::Number(n),
        FieldValue::Hex { value, bits } => Value::Hex(value, bits),
        FieldValue::Flag(on) => Value::Flag(on),
        FieldValue::Coded { code, meaning } => Value::Coded(code, meaning.to_owned()),
        FieldValue::Shown(shown) => of_text(shown.to_string()),
        FieldValue::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        FieldValue::Group(header) => Value::Group(nested(header, at)),
    }
}

/// What a text is: a number or an identifier, perhaps with its meaning, or just itself.
fn of_text(text: String) -> Value {
    let coded = text.strip_suffix(')').and_then(|text| text.split_once(" ("));
    let (code, meaning) = match coded {
        Some((code, meaning)) => (code, Some(meaning.to_owned())),
        None => (text.as_str(), None),
    };
    if let Ok(number) = code.parse() {
        return match meaning {
            Some(meaning) => Value::Coded(number, meaning),
            None => Value::Number(number),
        };
    }
    let digits = code.strip_prefix("0x").unwrap_or_default();
    match (u64::from_str_radix(digits, 16), meaning) {
        (Ok(number), Some(meaning)) => Value::CodedHex(number, digits.len() * 4, meaning),
        (Ok(number), None) => Value::Hex(number, digits.len() * 4),
        (Err(_), _) => Value::Text(text),
    }
}
