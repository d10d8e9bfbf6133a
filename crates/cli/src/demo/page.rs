//! The page: the demo as a picture that works offline.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::Report;
use super::recorder::Packet;

/// Where the data goes.
const MARK: &str = "/*DATA*/";
const TEMPLATE: &str = include_str!("page.html");

/// Writes it.
pub(super) fn write(path: &Path, packets: &[Packet], reports: &[Report]) -> io::Result<()> {
    let data = json!({ "steps": reports, "packets": rows(packets)? });
    // A `</script>` in a string would end the script.
    let text = data.to_string().replace('<', "\\u003c");
    std::fs::write(path, TEMPLATE.replacen(MARK, &text, 1))
}

fn rows(packets: &[Packet]) -> io::Result<Vec<Value>> {
    let mut rows = Vec::with_capacity(packets.len());
    for (nth, packet) in packets.iter().enumerate() {
        let number = nth as u64 + 1;
        let fields = crate::dissect::fields_of_ip(number, packet.left, &packet.frame)?;
        let hex: String = packet.frame.iter().map(|b| format!("{b:02x}")).collect();
        rows.push(json!({
            "n": number,
            "step": packet.step,
            "left": micros(packet.left),
            "arrived": packet.arrived.map(micros),
            "src": packet.src.to_string(),
            "dst": packet.dst.to_string(),
            "notes": packet.notes,
            "fields": fields,
            "hex": hex,
        }));
    }
    Ok(rows)
}

fn micros(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
