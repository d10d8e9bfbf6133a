//! Whole packets as they are on a link: IP to ICRC.

use std::net::IpAddr;

use urxe_engine::{Ecn, Path, Payload, Received};
use urxe_wire::{
    ICRC_LEN, IcrcPrefix, Ipv4, Ipv6, LinkType, Network, Packet, ParseError, ROCE_UDP_PORT, Repr,
    Udp, Verdict,
};

#[cfg(test)]
mod tests;

/// Why a host does not hand a frame to its NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Lengths, version or port are wrong: no RoCE packet.
    NotRoce,
    /// The IPv4 header checksum is wrong.
    IpChecksum,
    /// The UDP checksum is wrong.
    UdpChecksum,
    /// The ICRC is wrong.
    Icrc,
}

/// Bytes of IP and UDP before the BTH.
fn prefix_len(path: &Path) -> usize {
    Udp::LEN + if path.dst.is_ipv4() { Ipv4::LEN } else { Ipv6::LEN }
}

/// Writes the frame of a packet to `frame`, which is overwritten.
///
/// # Panics
/// Where the path mixes IPv4 and IPv6, or the packet is longer than IP can carry: the engine never
/// makes such.
pub fn build(path: &Path, header: &[u8], payload: &Payload<'_>, pad: usize, frame: &mut Vec<u8>) {
    frame.clear();
    let start = prefix_len(path);
    frame.resize(start, 0);
    frame.extend_from_slice(header);
    payload.append_to(frame);
    frame.resize(frame.len() + pad, 0);
    let transport = frame.len() - start + ICRC_LEN;
    let udp_len = u16::try_from(transport + Udp::LEN)
        .unwrap_or_else(|_| panic!("a packet of {transport} bytes does not fit UDP"));
    let udp = Udp { len: udp_len, ..Udp::roce(path.src_port) };
    let (ip, udp_bytes) = frame[..start].split_at_mut(start - Udp::LEN);
    let prefix = match (path.src, path.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut v4 = Ipv4::udp(src, dst);
            (v4.tos, v4.ttl) = (path.traffic_class, path.hop_limit);
            v4.total_len = udp_len.saturating_add(20);
            v4.checksum = v4.right_checksum(&[]);
            emit(&v4, ip);
            IcrcPrefix::ipv4(&v4.to_view(), &[], &udp.to_view())
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut v6 = Ipv6::udp(src, dst);
            (v6.traffic_class, v6.hop_limit) = (path.traffic_class, path.hop_limit);
            (v6.flow_label, v6.payload_len) = (path.flow_label, udp_len);
            emit(&v6, ip);
            IcrcPrefix::ipv6(&v6.to_view(), &udp.to_view())
        }
        (src, dst) => panic!("a path from {src} to {dst}"),
    };
    emit(&udp, udp_bytes);
    let icrc = prefix.compute(&frame[start..]);
    frame.extend_from_slice(&icrc);
}

fn emit(header: &impl Repr, out: &mut [u8]) {
    let done = header.emit(out);
    done.unwrap_or_else(|e| unreachable!("a header that does not fit its own length: {e}"));
}

/// Checks a frame as a host and its NIC do, and says what the engine is to be handed.
///
/// # Errors
/// Where it is dropped before the engine.
pub fn open(frame: &[u8]) -> Result<Received<'_>, Refused> {
    let packet = Packet::parse(LinkType::RawIp, frame).map_err(|_: ParseError| Refused::NotRoce)?;
    let (src, dst, traffic_class, hop_limit, start) = match packet.network {
        Network::Ipv4 { header, options, .. } => {
            if header.checksum != header.right_checksum(options) {
                return Err(Refused::IpChecksum);
            }
            let start = header.header_len() + Udp::LEN;
            (IpAddr::V4(header.src), IpAddr::V4(header.dst), header.tos, header.ttl, start)
        }
        Network::Ipv6 { header, .. } => {
            let (src, dst) = (IpAddr::V6(header.src), IpAddr::V6(header.dst));
            (src, dst, header.traffic_class, header.hop_limit, Ipv6::LEN + Udp::LEN)
        }
        Network::Grh(_) | Network::Local => return Err(Refused::NotRoce),
    };
    let Some(udp) = packet.udp().filter(|udp| udp.dst_port == ROCE_UDP_PORT) else {
        return Err(Refused::NotRoce);
    };
    if udp.checksum != 0 && packet.compute_udp_checksum() != Some(udp.checksum) {
        return Err(Refused::UdpChecksum);
    }
    if matches!(packet.icrc_verdict(), Verdict::Bad { .. }) {
        return Err(Refused::Icrc);
    }
    let end = frame.len() - packet.trailer.len();
    let bytes = &frame[start..end];
    Ok(Received { src, dst, src_port: udp.src_port, traffic_class, hop_limit, bytes })
}

/// The transport packet of a frame this fabric built, BTH to ICRC.
#[must_use]
pub fn transport(frame: &[u8]) -> &[u8] {
    let start = if is_v6(frame) { Ipv6::LEN } else { Ipv4::LEN } + Udp::LEN;
    frame.get(start..).unwrap_or_default()
}

fn is_v6(frame: &[u8]) -> bool {
    frame.first().is_some_and(|b| b >> 4 == 6)
}

/// The ECN bits of a frame.
#[must_use]
pub fn ecn(frame: &[u8]) -> Ecn {
    match (is_v6(frame), frame) {
        (true, &[_, second, ..]) => Ecn::from_bits(second >> 4),
        (false, &[_, tos, ..]) => Ecn::from_bits(tos),
        _ => Ecn::NotCapable,
    }
}

/// Marks a frame as having met congestion (RFC 3168), if it is capable of that; says whether.
pub fn mark_ce(frame: &mut [u8]) -> bool {
    if ecn(frame) == Ecn::NotCapable {
        return false;
    }
    if is_v6(frame) {
        frame[1] |= 0x30;
        return true;
    }
    frame[1] |= 0x03;
    if let Ok((mut header, _)) = Ipv4::parse(frame) {
        header.checksum = header.right_checksum(&[]);
        emit(&header, &mut frame[..Ipv4::LEN]);
    }
    true
}
