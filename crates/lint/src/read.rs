//! From a frame to a packet, also where a snap length cut it.

use urxe_wire::{Error, Packet, ParseError};

use crate::Frame;

/// A cut frame is completed with zeros up to this length: the longest IP packet with its link
/// header fits.
const LONGEST: usize = 0xffff + 64;

/// What a frame turned out to be.
#[derive(Debug)]
pub(crate) enum Read<'a> {
    /// No RoCEv2.
    Other,
    /// Of a packet that may be one, too little was captured.
    Unseen,
    /// A broken packet.
    Bad(Error),
    /// A packet; `whole` if all of its bytes were captured. If not, its payload and what follows
    /// are zeros from where the capture ends; the lengths are right.
    Packet { packet: Box<Packet<'a>>, whole: bool },
}

pub(crate) fn read<'a>(frame: &Frame<'a>, scratch: &'a mut Vec<u8>) -> Read<'a> {
    let captured = frame.bytes.len();
    let original = usize::try_from(frame.original_len).unwrap_or(usize::MAX);
    if captured >= original {
        return match Packet::parse(frame.link, frame.bytes) {
            Ok(packet) => Read::Packet { packet: Box::new(packet), whole: true },
            Err(ParseError::NotRoce(_)) => Read::Other,
            Err(ParseError::Bad(error)) => Read::Bad(error),
        };
    }
    let len = original.min(LONGEST.max(captured));
    fill(scratch, frame.bytes, len, 0xff);
    let other_filling = Packet::parse(frame.link, scratch).err();
    fill(scratch, frame.bytes, len, 0);
    match Packet::parse(frame.link, scratch) {
        Ok(packet) => {
            let headers = packet.link.len()
                + packet.vlans.len()
                + packet.network.len()
                + packet.roce.header_len();
            let end = headers
                + packet.roce.payload.len()
                + packet.roce.pad.len()
                + packet.roce.icrc.len();
            if headers > captured {
                return Read::Unseen;
            }
            Read::Packet { packet: Box::new(packet), whole: end <= captured }
        }
        // What is wrong with any filling is wrong with what is there.
        Err(error) if other_filling == Some(error) => match error {
            ParseError::NotRoce(_) => Read::Other,
            ParseError::Bad(error) => Read::Bad(error),
        },
        Err(_) => Read::Unseen,
    }
}

fn fill(scratch: &mut Vec<u8>, bytes: &[u8], len: usize, filling: u8) {
    scratch.clear();
    scratch.extend_from_slice(bytes);
    scratch.resize(len, filling);
}
