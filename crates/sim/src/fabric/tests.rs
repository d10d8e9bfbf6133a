use std::time::Duration;

use urxe_engine::{
    AhAttr, CqId, Drop, QpAttr, QpCaps, QpId, QpInit, QpKind, RecvWr, SendOp, SendWr,
};
use urxe_memory::{Access, Backing, Buffer, Sge};
use urxe_wire::{AckTimeout, Mtu, Opcode, Psn};

use super::*;
use crate::fault::FaultKind;
use crate::{Faithful, Share};

struct End {
    qp: QpId,
    cq: CqId,
    sge: Sge,
}

fn config(topology: Topology, link: LinkConfig) -> FabricConfig {
    FabricConfig {
        seed: 1,
        topology,
        link,
        faults: Vec::new(),
        room: 64,
        batches: false,
        keep_trace: true,
    }
}

fn address(node: usize) -> IpAddr {
    IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, u8::try_from(node + 1).unwrap()))
}

/// Two nodes and a pair of RC QPs between them.
fn pair(config: FabricConfig) -> (Fabric<u32>, [End; 2]) {
    let nics = (0..2).map(|n| NicConfig::new(address(n))).collect();
    let fabric = Fabric::new(nics, config, Box::new(Faithful)).unwrap();
    let end = |n: usize| {
        let nic = fabric.nic(n);
        let pd = nic.memory().alloc_pd().unwrap();
        let cq = nic.create_cq(64).unwrap();
        let backing = Backing::buffer(Buffer::zeroed(1 << 16).unwrap());
        let mr = nic.memory().reg_mr(pd, backing, 0, Access::LOCAL_WRITE).unwrap();
        let caps = QpCaps {
            max_send_wr: 8,
            max_recv_wr: 8,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        let (send_cq, recv_cq) = (Some(cq), Some(cq));
        let kind = QpKind::Rc;
        let init =
            QpInit { kind, pd, send_cq, recv_cq, srq: None, xrcd: None, caps, sig_all: false };
        let qp = nic.create_qp(&init).unwrap();
        End { qp, cq, sge: Sge { addr: 0, length: 1 << 15, lkey: mr.lkey } }
    };
    let ends = [end(0), end(1)];
    for n in 0..2 {
        let attr = QpAttr {
            path_mtu: Mtu::B1024,
            dest_qp: ends[1 - n].qp,
            ah: AhAttr { dst: address(1 - n), ..AhAttr::default() },
            rq_psn: Psn::new(5),
            sq_psn: Psn::new(5),
            timeout: AckTimeout::new(8).unwrap(),
            retry_cnt: 7,
            max_rd_atomic: 1,
            max_dest_rd_atomic: 1,
            ..QpAttr::default()
        };
        fabric.nic(n).connect_qp(ends[n].qp, &attr).unwrap();
    }
    (fabric, ends)
}

/// Sends 32 KiB from node 0 to node 1 and runs to rest; gives whether it completed at both.
fn send(fabric: &mut Fabric<u32>, ends: &[End; 2]) -> bool {
    let now = fabric.now();
    let wr = RecvWr { wr_id: 1, sges: &[ends[1].sge] };
    fabric.nic(1).post_recv(now, ends[1].qp, &wr).unwrap();
    fabric.call(0, |nic, now, out| {
        let wr = SendWr::new(2, SendOp::Send { imm: None }, std::slice::from_ref(&ends[0].sge));
        nic.post_send(now, ends[0].qp, &wr, out).unwrap();
    });
    while fabric.step() != Step::Rest {}
    let done = |n: usize| {
        let c = fabric.nic(n).poll_one(ends[n].cq).unwrap();
        c.is_some_and(|c| c.status == urxe_engine::WcStatus::Success)
    };
    done(0) && done(1)
}

fn lossy() -> LinkConfig {
    let ten = Share::percent(10);
    LinkConfig { loss: ten, duplicate: ten, reorder: ten, corrupt: ten, ..LinkConfig::default() }
}

#[test]
fn a_message_crosses_a_mesh_and_a_star() {
    for (topology, least) in [(Topology::Mesh, 5_000), (Topology::Star, 10_000)] {
        let (mut fabric, ends) = pair(config(topology, LinkConfig::default()));
        assert!(send(&mut fabric, &ends));
        let records = fabric.trace().records();
        let first = records.iter().find(|r| r.what == What::Arrived).unwrap();
        assert_eq!(first.at.saturating_since(records[0].at), Duration::from_nanos(least));
    }
}

#[test]
fn the_same_seed_sends_the_same_bytes_at_the_same_times() {
    let run = |seed, keep_trace| {
        let config = FabricConfig { seed, keep_trace, ..config(Topology::Mesh, lossy()) };
        let (mut fabric, ends) = pair(config);
        send(&mut fabric, &ends);
        fabric.trace().hash()
    };
    assert_eq!(run(1, true), run(1, true));
    assert_eq!(run(1, true), run(1, false), "keeping the trace changes nothing");
    assert_ne!(run(1, true), run(2, true));
}

#[test]
fn corrupted_packets_are_counted_and_never_reach_the_engine() {
    let link = LinkConfig { corrupt: Share::percent(30), ..LinkConfig::default() };
    let (mut fabric, ends) = pair(config(Topology::Mesh, link));
    assert!(send(&mut fabric, &ends));
    let refused = |why| {
        fabric.trace().records().iter().filter(|r| r.what == What::Refused(why)).count() as u64
    };
    let counted: u64 = (0..2).map(|n| fabric.nic(n).counters().get(Count::BadIcrc)).sum();
    assert!(counted > 5, "{counted}");
    assert_eq!(counted, refused(Refused::Icrc));
    for n in 0..2 {
        assert_eq!(fabric.nic(n).counters().drops(Drop::Malformed), 0);
    }
}

#[test]
fn a_fault_finds_the_packet_it_names() {
    let fault = Fault {
        opcode: Opcode::from_name("RC_SEND_MIDDLE"),
        psn: Some(Psn::new(9)),
        nth: Some(1),
        ..Fault::all(FaultKind::Drop)
    };
    let config =
        FabricConfig { faults: vec![fault], ..config(Topology::Mesh, LinkConfig::default()) };
    let (mut fabric, ends) = pair(config);
    assert!(send(&mut fabric, &ends));
    let lost: Vec<String> = fabric
        .trace()
        .records()
        .iter()
        .filter(|r| matches!(r.what, What::Sent(done) if done.lost.is_some()))
        .map(ToString::to_string)
        .collect();
    let line = format!(
        "0.001000000s 0→1 RC_SEND_MIDDLE qp={} psn=9 len=1024 lost as addressed",
        ends[1].qp
    );
    assert_eq!(lost, [line]);
    assert_eq!(fabric.harm(1, ends[1].qp.value()), 1);
}

#[test]
fn a_cut_longer_than_all_retries_ends_in_an_error_and_a_shorter_one_does_not() {
    for (millis, good) in [(3, true), (100, false)] {
        let (mut fabric, ends) = pair(config(Topology::Star, LinkConfig::default()));
        let now = fabric.now();
        fabric.cut(0, 1, now, now + Duration::from_millis(millis));
        assert_eq!(send(&mut fabric, &ends), good);
        assert!(!fabric.nic(0).timers_armed());
    }
}

#[test]
fn a_nic_without_room_goes_on_when_there_is_some() {
    let config = FabricConfig { room: 2, ..config(Topology::Mesh, LinkConfig::default()) };
    let (mut fabric, ends) = pair(config);
    assert!(send(&mut fabric, &ends));
    let at = |n: usize| fabric.trace().records()[n].at;
    assert_eq!(at(1), at(0));
    assert!(at(2) > at(1), "two packets, then a pause");
}

/// One ACK stands for all that came within the microsecond.
#[test]
fn a_nic_that_takes_batches_answers_them_together() {
    let acks = |batches| {
        let config = FabricConfig { batches, ..config(Topology::Mesh, LinkConfig::default()) };
        let (mut fabric, ends) = pair(config);
        for _ in 0..2 {
            assert!(send(&mut fabric, &ends));
        }
        let line = |r: &crate::trace::Record| r.to_string();
        let all = fabric.trace().records().iter().map(line);
        all.filter(|l| l.contains("1→0 RC_ACKNOWLEDGE")).count()
    };
    assert_eq!(acks(true), 2);
    assert!(acks(false) >= 2);
}

#[test]
fn the_user_is_told_at_the_time_asked_for() {
    let (mut fabric, _) = pair(config(Topology::Mesh, LinkConfig::default()));
    let start = fabric.now();
    fabric.at(start + Duration::from_micros(2), 2);
    fabric.at(start + Duration::from_micros(1), 1);
    fabric.at(Time::ZERO, 0);
    assert_eq!(fabric.step(), Step::Event(0));
    assert_eq!((fabric.step(), fabric.now()), (Step::Event(1), start + Duration::from_micros(1)));
    assert_eq!(fabric.step(), Step::Event(2));
    assert_eq!(fabric.step(), Step::Rest);
}

#[test]
fn a_capture_is_read_back_as_it_was_sent() {
    let (mut fabric, ends) = pair(config(Topology::Mesh, lossy()));
    send(&mut fabric, &ends);
    let mut file = Vec::new();
    fabric.trace().write_pcap(&mut file).unwrap();
    let (header, mut rest) = file.split_at(24);
    assert_eq!(header[..4], 0xa1b2_3c4d_u32.to_le_bytes(), "nanoseconds");
    let mut frames = 0;
    while let Some((head, body)) = rest.split_at_checked(16) {
        let len = u32::from_le_bytes(head[8..12].try_into().unwrap()) as usize;
        assert_eq!(body[..4], [2, 0, 0, 0]);
        rest = &body[len..];
        frames += 1;
    }
    let records = fabric.trace().records();
    let passed =
        |r: &&crate::trace::Record| matches!(r.what, What::Sent(done) if done.lost.is_none());
    assert_eq!(frames, records.len() - records.iter().filter(passed).count());
    assert!(rest.is_empty());
}
