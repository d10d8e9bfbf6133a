//! Datagrams that come (IBA 9.8.3).

use std::net::IpAddr;

use urxe_wire::{Ipv4, Ipv6, Opcode, Roce, Transport, ud_header_v4, ud_header_v6};

use super::{Cx, Inner, Source};
use crate::path::{Ecn, Path, Received, Transmit};
use crate::reason::{Cause, Count, Drop, Rule};
use crate::responder::Receives;
use crate::types::{AsyncEvent, Completion, WcFlags, WcOpcode, WcStatus};

/// The bytes before the payload that every datagram takes of its receive WQE.
const GRH_LEN: u64 = 40;

impl Inner {
    pub(super) fn on_datagram<T: Transmit>(
        &mut self,
        cx: &mut Cx<'_, T>,
        received: &Received<'_>,
        pkey_index: u16,
    ) -> Result<(), Drop> {
        let packet = Roce::parse(received.bytes).map_err(|_| Drop::Malformed)?;
        if packet.bth.opcode == Opcode::CNP {
            return Err(Drop::CnpIgnored);
        }
        let info = packet.bth.opcode.info().ok_or(Drop::UnknownOpcode)?;
        let deth = packet.ext.deth.ok_or(Drop::WrongTransport)?;
        if info.transport != Transport::Ud {
            return Err(Drop::WrongTransport);
        }
        // IBA 9.6.1.3: without the QP's key a datagram is dropped.
        if deth.qkey != self.conn.qkey {
            return Err(Drop::BadQKey);
        }
        if Ecn::from_bits(received.traffic_class) == Ecn::Ce && !received.dst.is_multicast() {
            let path = Path {
                src: received.dst,
                dst: received.src,
                src_port: received.src_port,
                traffic_class: 0,
                hop_limit: 64,
                flow_label: 0,
            };
            cx.nic.counters.add(Count::EcnMarked, 1);
            self.notify(cx, deth.src_qp, Some(path));
        }
        self.place_datagram(cx, received, &packet, pkey_index)
    }

    fn place_datagram<T: Transmit>(
        &mut self,
        cx: &mut Cx<'_, T>,
        received: &Received<'_>,
        packet: &Roce<'_>,
        pkey_index: u16,
    ) -> Result<(), Drop> {
        let Inner { responder, rq, conn, .. } = self;
        let srq = cx.qp.srq.as_deref();
        let pd = srq.map_or(conn.pd, |srq| srq.pd);
        let mut source = Source { nic: cx.nic, rq: rq.as_mut(), srq, pd };
        // A WQE that a datagram did not fit in serves the next.
        if !responder.take_for_datagram(&mut source) {
            return Err(Drop::NoReceive);
        }
        let pd = source.pd();
        let (taken, wr_id) = responder.taken();
        let len = GRH_LEN + packet.payload.len() as u64;
        if len > taken.room() {
            return Err(Drop::TooLong);
        }
        let header = grh(received, packet.len());
        let memory = &cx.nic.memory;
        let placed = memory
            .scatter(pd, taken.sges(), 0, &header)
            .and_then(|()| memory.scatter(pd, taken.sges(), GRH_LEN, packet.payload));
        responder.release_taken();
        let (status, cause) = match placed {
            Ok(()) => (WcStatus::Success, None),
            Err(e) => (WcStatus::LocProtErr, Some(Cause::new(Rule::LocalKey(e)))),
        };
        let mut flags = WcFlags::GRH;
        flags.set(WcFlags::WITH_IMM, packet.ext.imm.is_some());
        let completion = Completion {
            wr_id,
            status,
            opcode: WcOpcode::Recv,
            byte_len: u32::try_from(len).unwrap_or(u32::MAX),
            imm: packet.ext.imm.unwrap_or_default().data,
            invalidated: 0,
            qpn: cx.qp.qpn,
            src_qp: packet.ext.deth.unwrap_or_default().src_qp,
            flags,
            pkey_index,
            traffic_class: received.traffic_class,
            at: cx.now,
            cause,
        };
        self.complete_recv(cx, None, completion, packet.bth.solicited);
        if status != WcStatus::Success {
            // IBA 10.3.1: a local error of the receive queue takes the QP to error.
            cx.nic.tell(AsyncEvent::QpFatal(cx.qp.qpn));
            self.enter_error(cx, false);
        }
        Ok(())
    }
}

/// The 40 bytes that stand before a datagram's payload.
fn grh(received: &Received<'_>, transport_len: usize) -> [u8; 40] {
    let udp_len = u16::try_from(transport_len + 8).unwrap_or(u16::MAX);
    match (received.src, received.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut ip = Ipv4::udp(src, dst);
            ip.tos = received.traffic_class;
            ip.ttl = received.hop_limit;
            ip.total_len = udp_len.saturating_add(20);
            ip.checksum = ip.right_checksum(&[]);
            ud_header_v4(&ip)
        }
        (src, dst) => {
            let as_v6 = |addr: IpAddr| match addr {
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            };
            let mut ip = Ipv6::udp(as_v6(src), as_v6(dst));
            ip.traffic_class = received.traffic_class;
            ip.hop_limit = received.hop_limit;
            ip.payload_len = udp_len;
            ud_header_v6(&ip)
        }
    }
}
