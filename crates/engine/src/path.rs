//! Packets at the engine's edge: where they come from, where they go.

use core::net::IpAddr;

use urxe_memory::Gather;

use crate::line::Held;
use crate::reason::Why;

/// ECN bits of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable = 0,
    /// ECN-capable, ECT(1).
    Ect1 = 1,
    /// ECN-capable, ECT(0).
    Ect0 = 2,
    /// Congestion was met.
    Ce = 3,
}

impl Ecn {
    /// The ECN of the low two bits of a traffic class.
    #[must_use]
    pub const fn from_bits(traffic_class: u8) -> Self {
        match traffic_class & 3 {
            0 => Self::NotCapable,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// How a packet leaves: all that a port needs to put IP and UDP in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// Our address.
    pub src: IpAddr,
    /// The peer's address, or a multicast group.
    pub dst: IpAddr,
    /// UDP source port: the flow's entropy.
    pub src_port: u16,
    /// DSCP and ECN as one byte (IPv4 TOS, IPv6 traffic class).
    pub traffic_class: u8,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limit: u8,
    /// IPv6 flow label, 20 bits.
    pub flow_label: u32,
}

/// What follows a packet's headers.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// Nothing.
    None,
    /// Slices of registered memory, pinned while this lives.
    Memory(&'a Gather),
    /// Bytes the engine holds itself.
    Bytes(&'a [u8]),
}

impl Payload<'_> {
    /// Bytes before the pad.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Memory(gather) => gather.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the bytes to `out`. For ports without scatter-gather.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Memory(gather) => gather.for_each_chunk(|chunk| out.extend_from_slice(chunk)),
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
        }
    }
}

/// Takes the packets that leave.
pub trait Transmit {
    /// How many more packets this sink takes now. The engine stops at 0 and keeps its work.
    fn room(&self) -> usize;

    /// Where a sink that gathers packets notes whose they are: those QPs send through no other sink
    /// until [`crate::Nic::release`], so that their packets leave in order. Each packet lessens the
    /// room of such a sink. `None`: packets leave at once.
    fn held(&mut self) -> Option<&mut Held> {
        None
    }

    /// Why the next packet is sent, where that is no new request's nor a plain answer's doing.
    fn why(&mut self, _why: Why) {}

    /// Whether packets to `dst` were refused as too long for the way there.
    fn is_narrow(&self, _dst: IpAddr) -> bool {
        false
    }

    /// One packet: BTH and extension headers in `header`, then the payload, then `pad` zero bytes
    /// (0 to 3), then an ICRC that the port computes. Called only while [`Self::room`] is not 0.
    fn packet(&mut self, path: &Path, header: &[u8], payload: Payload<'_>, pad: usize);
}

/// A packet that came, its ICRC already checked by the port.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The sender's address.
    pub src: IpAddr,
    /// The address it was sent to: ours, or a multicast group.
    pub dst: IpAddr,
    /// The sender's UDP source port.
    pub src_port: u16,
    /// DSCP and ECN as one byte.
    pub traffic_class: u8,
    /// TTL or hop limit; 0 where the port cannot see it.
    pub hop_limit: u8,
    /// The UDP payload: BTH to ICRC.
    pub bytes: &'a [u8],
}
