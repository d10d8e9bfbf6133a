//! The packets of a demo as a capture file, with comments.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, IntoInnerError};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};

use super::recorder::Packet;
use super::story::Told;

/// Writes them.
pub(super) fn write(path: &Path, packets: &[Packet], told: &[Told]) -> io::Result<()> {
    let file = BufWriter::new(File::create(path)?);
    let mut writer = PcapNgWriter::new(file).map_err(io_error)?;
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::RAW,
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed("urxe demo")),
            // Nanoseconds.
            InterfaceDescriptionOption::IfTsResol(9),
        ],
    };
    writer.write_pcapng_block(interface).map_err(io_error)?;
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
        writer.write_pcapng_block(block).map_err(io_error)?;
    }
    // What is dropped unwritten fails without a word.
    writer.into_inner().into_inner().map_err(IntoInnerError::into_error)?;
    Ok(())
}

/// What the system said: the library calls every failure one of reading.
fn io_error(e: PcapError) -> io::Error {
    match e {
        PcapError::IoError(e) => e,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full disk is told of, be it by the write of a block or of the last few bytes.
    #[test]
    fn a_full_disk_is_no_success() {
        let why = write(Path::new("/dev/full"), &[], &[]).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::StorageFull, "{why}");
    }
}
