//! `--json`: one object a line.

use serde::ser::{Serialize, SerializeMap, Serializer};
use urxe_lint::Finding;

use crate::capture::Timestamp;
use crate::dissect::exact;

/// A finding's object. All keys are always there, `null` where there is no value.
pub(super) struct Record<'a>(pub(super) &'a Finding);

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let f = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("frame", &f.frame)?;
        map.serialize_entry("time", &f.time.map(|time| exact(Timestamp(time.into()))))?;
        map.serialize_entry("severity", &f.severity.to_string())?;
        map.serialize_entry("rule", f.rule.id())?;
        map.serialize_entry("source", f.rule.source())?;
        map.serialize_entry("src", &f.ends.map(|(src, _)| src.to_string()))?;
        map.serialize_entry("dst", &f.ends.map(|(_, dst)| dst.to_string()))?;
        map.serialize_entry("opcode", &f.opcode.map(|opcode| opcode.to_string()))?;
        map.serialize_entry("dest_qp", &f.dest_qp.map(urxe_wire::Qpn::value))?;
        map.serialize_entry("src_qp", &f.src_qp.map(urxe_wire::Qpn::value))?;
        map.serialize_entry("psn", &f.psn.map(urxe_wire::Psn::value))?;
        map.serialize_entry("what", &f.what)?;
        map.serialize_entry("got", &f.got)?;
        map.serialize_entry("wanted", &f.wanted)?;
        map.end()
    }
}
