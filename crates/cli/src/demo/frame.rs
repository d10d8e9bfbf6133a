//! What passed a device, as the IP packet it was on its link.

use std::net::IpAddr;

use urxe::{Flow, Passage};
use urxe_wire::{ICRC_LEN, IcrcPrefix, Ipv4, Ipv6, Repr, Udp};

/// The IP packet around a transport packet; without IP identification, as urxe sends alone.
pub(crate) fn ip_packet(passage: &Passage<'_>) -> Vec<u8> {
    let flow = &passage.flow;
    let transport = passage.bytes.len();
    let udp_len = u16::try_from(transport + Udp::LEN).unwrap_or(u16::MAX);
    let mut out = ip_header(flow, udp_len);
    let udp = Udp { len: udp_len, ..Udp::roce(flow.src_port) };
    let at = out.len();
    out.resize(at + Udp::LEN, 0);
    let fits = udp.emit(&mut out[at..]);
    debug_assert!(fits.is_ok(), "room was made");
    out.extend_from_slice(passage.bytes);
    seal(&mut out, at + Udp::LEN, flow, transport);
    out
}

fn ip_header(flow: &Flow, udp_len: u16) -> Vec<u8> {
    let mut out = vec![0; Ipv6::LEN];
    match (flow.src, flow.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut ip = Ipv4 {
                tos: flow.traffic_class,
                ttl: flow.hop_limit,
                total_len: udp_len.saturating_add(20),
                ..Ipv4::udp(src, dst)
            };
            ip.checksum = ip.right_checksum(&[]);
            let len = ip.emit(&mut out).unwrap_or(0);
            out.truncate(len);
        }
        (src, dst) => {
            let v6 = |addr: IpAddr| match addr {
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            };
            let ip = Ipv6 {
                traffic_class: flow.traffic_class,
                flow_label: flow.flow_label,
                hop_limit: flow.hop_limit,
                payload_len: udp_len,
                ..Ipv6::udp(v6(src), v6(dst))
            };
            let len = ip.emit(&mut out).unwrap_or(0);
            out.truncate(len);
        }
    }
    out
}

/// Computes the ICRC anew: what was sent as a segment had another IP identification.
fn seal(out: &mut [u8], start: usize, flow: &Flow, transport: usize) {
    let len = u16::try_from(transport).unwrap_or(u16::MAX);
    if let Some(prefix) = IcrcPrefix::socket(flow.src, flow.dst, flow.src_port, 0, len)
        && let Some((covered, icrc)) = out[start..].split_last_chunk_mut::<ICRC_LEN>()
    {
        *icrc = prefix.compute(covered);
    }
}
