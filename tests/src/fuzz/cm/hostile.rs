//! Messages that fit well enough to get past the first checks, and are wrong somewhere.

use std::net::SocketAddr;

use urxe_wire::cm::{
    Apr, CmAttribute, CmMessage, CmTimeout, CommId, Drep, Dreq, IpHeader, Lap, Mra, MraMessage,
    MtuCode, Rej, RejMessage, RejReason, Rep, Req, ReqPath, RetryCount, Rtu, ServiceId, SidrRep,
    SidrReq, SidrStatus, TransportService,
};
use urxe_wire::{AckTimeout, Gid, MAD_LEN, PKey, Psn, QKey, Qpn};

use super::world::{HOSTILE, PORT, US, World};
use crate::fuzz::choices::Choices;

/// A MAD: one that we sent, or one that a peer could send.
pub(super) fn mad(world: &World, c: &mut Choices<'_>) -> Vec<u8> {
    if c.below(16) == 0
        && let Some(mad) = world.heard.get(c.below(world.heard.len()))
    {
        return mad.to_vec();
    }
    let message = message(world, c);
    let mut mad = [0; MAD_LEN];
    let mut header = message.header(u64::from(c.byte()));
    if c.below(32) == 0 {
        header.class_version = c.byte();
    }
    message.emit(&header, &mut mad).expect("a MAD holds any message");
    if c.below(8) == 0 {
        let at = usize::from(c.byte());
        mad[at] = c.byte();
    }
    mad.to_vec()
}

/// An id of ours: one that the peer was told, one of some connection, or any.
fn ours(world: &World, c: &mut Choices<'_>) -> CommId {
    match c.below(4) {
        0 => CommId(c.number()),
        1 => world.bad.get(c.below(world.bad.len())).copied().unwrap_or_default(),
        _ => {
            let mad = world.heard.get(c.below(world.heard.len()));
            let message = mad.and_then(|mad| CmMessage::parse(mad).ok());
            message.and_then(|(_, message)| message.local_comm_id()).unwrap_or_default()
        }
    }
}

/// An id of the peer's: one of few, so that they meet again.
fn theirs(c: &mut Choices<'_>) -> CommId {
    CommId(u32::from(c.byte() % 8))
}

fn timeout(c: &mut Choices<'_>) -> CmTimeout {
    CmTimeout::new(c.byte() % 32).unwrap_or_default()
}

fn retries(c: &mut Choices<'_>) -> RetryCount {
    RetryCount::new(c.byte() % 8).unwrap_or_default()
}

fn qpn(c: &mut Choices<'_>) -> Qpn {
    Qpn::new(match c.below(4) {
        0 => c.number(),
        // Ours, the friend's, and what is given out.
        1 => 0x11 + u32::from(c.byte() % 2),
        2 => 0x100 + u32::from(c.byte() % 16),
        _ => 0x40 + u32::from(c.byte() % 4),
    })
}

/// Mostly what it should be.
fn address(right: std::net::IpAddr, c: &mut Choices<'_>) -> Gid {
    match c.byte() % 16 {
        0 => Gid::from(US),
        1 => Gid::from(HOSTILE),
        _ => Gid::from(right),
    }
}

fn req(c: &mut Choices<'_>) -> Req {
    let source = SocketAddr::new(HOSTILE, 9);
    let ip = IpHeader::new(source, US).expect("two IPv4 addresses");
    let path = ReqPath {
        local_gid: address(HOSTILE, c),
        remote_gid: address(US, c),
        local_ack_timeout: AckTimeout::new(c.byte() % 32).unwrap_or_default(),
        ..ReqPath::default()
    };
    Req {
        local_comm_id: theirs(c),
        service_id: ServiceId::tcp(PORT + u16::from(c.below(16) == 0)),
        local_qpn: qpn(c),
        responder_resources: c.byte(),
        initiator_depth: c.byte(),
        remote_cm_response_timeout: timeout(c),
        transport_service: TransportService::from_code(c.byte() % 16 / 4 % 4),
        extended_transport: c.byte() % 2,
        starting_psn: Psn::new(u32::from(c.byte() % 2)),
        local_cm_response_timeout: timeout(c),
        retry_count: retries(c),
        pkey: PKey(if c.below(16) == 0 { 1 } else { 0xffff }),
        mtu: MtuCode(c.byte() % 7),
        rnr_retry_count: retries(c),
        max_cm_retries: c.byte() % 16,
        primary: path,
        alternate: if c.below(16) == 0 { path } else { ReqPath::default() },
        private_data: ip.with_data(b"").expect("it fits"),
        ..Req::default()
    }
}

fn message(world: &World, c: &mut Choices<'_>) -> CmMessage {
    let kind = CmAttribute::KNOWN[c.below(CmAttribute::KNOWN.len())];
    let (remote_comm_id, local_comm_id) = (ours(world, c), theirs(c));
    match kind {
        CmAttribute::Mra => {
            let (message, service_timeout) = (MraMessage::from_code(c.byte() % 4), timeout(c));
            Mra { local_comm_id, remote_comm_id, message, service_timeout, ..Mra::default() }.into()
        }
        CmAttribute::Rej => {
            let message = RejMessage::from_code(c.byte() % 4);
            let reason = RejReason::from_code(u16::from(c.byte() % 40));
            let info_length = c.byte() % 128;
            let rej = Rej { local_comm_id, remote_comm_id, message, ..Rej::default() };
            Rej { reason, info_length, ..rej }.into()
        }
        CmAttribute::Rep => Rep {
            local_comm_id,
            remote_comm_id,
            local_qpn: qpn(c),
            local_eecn: qpn(c).value(),
            responder_resources: c.byte(),
            initiator_depth: c.byte(),
            target_ack_delay: timeout(c),
            rnr_retry_count: retries(c),
            ..Rep::default()
        }
        .into(),
        CmAttribute::Rtu => Rtu { local_comm_id, remote_comm_id, ..Rtu::default() }.into(),
        CmAttribute::Dreq => {
            let remote_qpn = qpn(c);
            Dreq { local_comm_id, remote_comm_id, remote_qpn, ..Dreq::default() }.into()
        }
        CmAttribute::Drep => Drep { local_comm_id, remote_comm_id, ..Drep::default() }.into(),
        CmAttribute::Lap => Lap { local_comm_id, remote_comm_id, ..Lap::default() }.into(),
        CmAttribute::Apr => Apr { local_comm_id, remote_comm_id, ..Apr::default() }.into(),
        CmAttribute::SidrReq => {
            let source = SocketAddr::new(HOSTILE, 9);
            let ip = IpHeader::new(source, US).expect("two IPv4 addresses");
            SidrReq {
                request_id: local_comm_id,
                service_id: ServiceId::udp(PORT + u16::from(c.below(16) == 0)),
                private_data: ip.with_data(b"").expect("it fits"),
                ..SidrReq::default()
            }
            .into()
        }
        CmAttribute::SidrRep => SidrRep {
            request_id: remote_comm_id,
            status: SidrStatus::from_code(c.byte() % 8),
            qpn: qpn(c),
            qkey: QKey(c.number()),
            ..SidrRep::default()
        }
        .into(),
        CmAttribute::Req | CmAttribute::Other(_) => req(c).into(),
    }
}
