//! The packets of a demo as a capture file, with comments.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};

use super::recorder::Packet;
use super::story::Told;

/// Writes them.
pub(super) fn write(path: &Path, packets: &[Packet], told: &[Told]) -> io::Result<()> {
    let other = |e: pcap_file::PcapError| io::Error::other(e.to_string());
    let file = BufWriter::new(File::create(path)?);
    let mut writer = PcapNgWriter::new(file).map_err(other)?;
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::RAW,
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed("urxe demo")),
            // Nanoseconds.
            InterfaceDescriptionOption::IfTsResol(9),
        ],
    };
    writer.write_pcapng_block(interface).map_err(other)?;
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let end = packets.iter().map(|p| p.left).max().unwrap_or_default();
    for (packet, told) in packets.iter().zip(told) {
        // The demo has just ended.
        let timestamp: Duration = start.saturating_sub(end) + packet.left;
        let notes: Vec<_> = std::iter::once(told.sentence.as_str()).chain(told.notes()).collect();
        let comment = notes.join(" | ");
        let mut options = Vec::new();
        if !comment.is_empty() {
            options.push(EnhancedPacketOption::Comment(Cow::Borrowed(&comment)));
        }
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp,
            original_len: u32::try_from(packet.frame.len()).unwrap_or(u32::MAX),
            data: Cow::Borrowed(&packet.frame),
            options,
        };
        writer.write_pcapng_block(block).map_err(other)?;
    }
    Ok(())
}
