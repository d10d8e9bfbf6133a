//! One line a packet, in columns.

use std::fmt::{Display, Write as _};

use anstyle::Style;
use urxe_wire::{Bth, Ext, FlushScope, ImmDt, Mtu, Operation};

use super::outcome::{Cut, Ends, Icrc, Outcome, RocePacket};
use super::style::{Palette, paint};
use super::{cm, words};

/// A payload that is longer than this is no packet: where a sender leaves segmentation to the card,
/// a capture on its side sees a whole batch as one datagram.
const LONGEST_PAYLOAD: usize = Mtu::B4096.bytes() as usize;

/// Widths of the columns. They grow with what is met and never shrink, so that a stream lines up
/// without being read ahead.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    number: usize,
    time: usize,
    src: usize,
    dst: usize,
    opcode: usize,
    qp: usize,
    psn: usize,
    payload: usize,
    flags: usize,
}

impl Default for Columns {
    fn default() -> Self {
        Self { number: 3, time: 8, src: 8, dst: 8, opcode: 26, qp: 4, psn: 7, payload: 6, flags: 6 }
    }
}

impl Columns {
    /// As narrow as can be: for packets that are all at hand before the first is shown.
    pub(crate) const NARROW: Self =
        Self { number: 1, time: 0, src: 0, dst: 0, opcode: 0, qp: 0, psn: 0, payload: 0, flags: 0 };
}

/// Where text is set in its column.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

/// Writes cells one after the other.
struct Row<'a> {
    out: &'a mut String,
    palette: &'a Palette,
}

impl Row<'_> {
    /// `text` in `style`, in a column that is as wide as the widest text so far.
    fn cell(&mut self, width: &mut usize, side: Side, style: Style, text: &str) {
        let len = text.chars().count();
        *width = len.max(*width);
        let space = *width - len;
        if matches!(side, Side::Right) {
            self.space(space);
        }
        if len > 0 {
            self.put(style, text);
        }
        if matches!(side, Side::Left) {
            self.space(space);
        }
    }

    fn put(&mut self, style: Style, text: impl Display) {
        let _ = write!(self.out, "{}", paint(style, text));
    }

    fn plain(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn space(&mut self, len: usize) {
        self.out.extend(std::iter::repeat_n(' ', len));
    }

    /// A detail: a dim label, and its value after a blank.
    fn detail(&mut self, label: &str, value: impl Display) {
        self.plain("  ");
        self.put(self.palette.dim, label);
        let _ = write!(self.out, " {value}");
    }
}

/// Appends the line of a frame, without its end.
pub(crate) fn write_line(
    out: &mut String,
    columns: &mut Columns,
    palette: &Palette,
    number: u64,
    time: &str,
    outcome: &Outcome<'_>,
) {
    let mut row = Row { out, palette };
    row.cell(&mut columns.number, Side::Right, palette.dim, &number.to_string());
    row.plain("  ");
    row.cell(&mut columns.time, Side::Right, palette.dim, time);
    row.plain("  ");
    match outcome {
        Outcome::Roce(packet) => roce(&mut row, columns, packet),
        Outcome::Broken { error, ends, bth } => {
            addresses(&mut row, columns, ends.as_ref());
            row.put(palette.bad, "broken");
            row.plain("  ");
            row.put(palette.bad, error);
            if let Some(bth) = bth {
                row.detail("in", bth.opcode);
                row.detail("qp", format_args!("{:#x}", bth.dest_qp.value()));
                row.detail("psn", bth.psn);
            }
        }
        Outcome::Cut { cut, ends } => {
            addresses(&mut row, columns, ends.as_ref());
            row.put(palette.warn, "cut short");
            let Cut { captured, original } = cut;
            let _ =
                write!(row.out, "  {captured} of {original} bytes captured: too little to read");
        }
        Outcome::Skipped(why) => row.put(palette.dim, why),
    }
    let len = row.out.trim_end().len();
    row.out.truncate(len);
}

fn addresses(row: &mut Row<'_>, columns: &mut Columns, ends: Option<&Ends>) {
    let Some(ends) = ends else { return };
    let style = row.palette.address;
    row.cell(&mut columns.src, Side::Right, style, &ends.src);
    row.put(row.palette.dim, " → ");
    let vlans: Vec<_> = ends.vlans.iter().map(u16::to_string).collect();
    let dst = match vlans.as_slice() {
        [] => ends.dst.clone(),
        ids => format!("{} vlan {}", ends.dst, ids.join("/")),
    };
    row.cell(&mut columns.dst, Side::Left, style, &dst);
    row.plain("  ");
}

fn roce(row: &mut Row<'_>, columns: &mut Columns, packet: &RocePacket<'_>) {
    let palette = row.palette;
    let bth = &packet.roce().bth;
    addresses(row, columns, Some(&packet.ends));
    let opcode = bth.opcode.to_string();
    // An ACKNOWLEDGE that is a NAK looks like one from the first column on.
    let style = match (packet.operation(), packet.roce().ext.aeth) {
        (Some(Operation::Acknowledge), Some(aeth)) => palette.syndrome(aeth.syndrome),
        _ => palette.opcode(bth.opcode),
    };
    row.cell(&mut columns.opcode, Side::Left, style, &opcode);
    row.put(palette.dim, "  qp ");
    let qp = format!("{:#x}", bth.dest_qp.value());
    row.cell(&mut columns.qp, Side::Left, Style::new(), &qp);
    row.put(palette.dim, "  psn ");
    let psn = bth.psn.to_string();
    row.cell(&mut columns.psn, Side::Right, Style::new(), &psn);
    row.plain("  ");
    let payload = match packet.roce().payload.len() {
        0 => String::new(),
        len => format!("{len} B"),
    };
    row.cell(&mut columns.payload, Side::Right, Style::new(), &payload);
    row.plain("  ");
    icrc(row, packet.icrc);
    row.plain("  ");
    let style = if bth.fecn || bth.becn { palette.warn } else { palette.flags };
    row.cell(&mut columns.flags, Side::Left, style, &flags(bth));
    details(row, packet);
}

/// The flags that are set, in short.
fn flags(bth: &Bth) -> String {
    let all =
        [(bth.ack_req, "AckReq"), (bth.solicited, "SE"), (bth.fecn, "FECN"), (bth.becn, "BECN")];
    let set: Vec<_> = all.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
    set.join(" ")
}

fn icrc(row: &mut Row<'_>, icrc: Icrc) {
    row.put(row.palette.dim, "icrc ");
    match icrc {
        Icrc::Ok => row.put(row.palette.good, "ok "),
        Icrc::Bad { .. } => row.put(row.palette.bad, "BAD"),
        Icrc::Unseen => row.put(row.palette.warn, "cut"),
    }
}

fn details(row: &mut Row<'_>, packet: &RocePacket<'_>) {
    if let Icrc::Bad { got, wanted } = packet.icrc {
        let hex = |b: [u8; 4]| format!("{:08x}", u32::from_be_bytes(b));
        row.plain("  ");
        let text = format!("ICRC: got {}, wanted {}", hex(got), hex(wanted));
        row.put(row.palette.bad, text);
    }
    if let Some(Cut { captured, original }) = packet.cut {
        row.plain("  ");
        let text = format!("cut short: {captured} of {original} bytes");
        row.put(row.palette.warn, text);
    }
    if packet.roce().payload.len() > LONGEST_PAYLOAD {
        row.plain("  ");
        row.put(row.palette.warn, "longer than any path MTU: captured before segmentation?");
    }
    match &packet.mad {
        Some(mad) => cm::write_details(row.out, row.palette, mad),
        None => extensions(row, &packet.roce().ext, packet.operation()),
    }
}

fn extensions(row: &mut Row<'_>, ext: &Ext, operation: Option<Operation>) {
    if let Some(aeth) = &ext.aeth {
        row.plain("  ");
        row.put(row.palette.syndrome(aeth.syndrome), words::syndrome(aeth.syndrome));
        row.detail("msn", aeth.msn);
    }
    if let Some(h) = &ext.atomic_ack {
        row.detail("original", format_args!("{:#x}", h.original));
    }
    if let Some(h) = &ext.rdeth {
        row.detail("ee context", format_args!("{:#x}", h.ee_context));
    }
    if let Some(h) = &ext.deth {
        row.detail("from qp", format_args!("{:#x}", h.src_qp.value()));
        row.detail("qkey", format_args!("{:#010x}", h.qkey.0));
    }
    if let Some(h) = &ext.xrceth {
        row.detail("srqn", format_args!("{:#x}", h.srqn));
    }
    if let Some(h) = &ext.feth {
        let scope = match h.scope {
            FlushScope::Range => "",
            FlushScope::MemoryRegion => ", whole region",
        };
        row.detail("flush", format_args!("{}{scope}", words::flush_level(h.level)));
    }
    if let Some(h) = &ext.reth {
        row.detail("va", format_args!("{:#x}", h.va));
        row.detail("rkey", format_args!("{:#010x}", h.rkey));
        row.detail("len", h.dma_len);
    }
    if let Some(h) = &ext.atomic {
        row.detail("va", format_args!("{:#x}", h.va));
        row.detail("rkey", format_args!("{:#010x}", h.rkey));
        if operation == Some(Operation::CompareSwap) {
            row.detail("compare", format_args!("{:#x}", h.compare));
            row.detail("swap", format_args!("{:#x}", h.swap_add));
        } else {
            row.detail("add", format_args!("{:#x}", h.swap_add));
        }
    }
    if let Some(ImmDt { data }) = &ext.imm {
        row.detail("imm", format_args!("{:#010x}", u32::from_be_bytes(*data)));
    }
    if let Some(h) = &ext.ieth {
        row.detail("invalidate rkey", format_args!("{:#010x}", h.rkey));
    }
}
