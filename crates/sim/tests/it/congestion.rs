//! Two flows into one port, marked on the way: DCQCN finds them their shares.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use urxe_engine::dcqcn::{Params, Rate};
use urxe_engine::{
    AhAttr, Count, CqId, NicConfig, QpAttr, QpCaps, QpId, QpInit, QpKind, SendOp, SendWr, WcStatus,
};
use urxe_memory::{Access, Backing, Buffer, MrInfo, Sge};
use urxe_sim::link::{LinkConfig, Marking};
use urxe_sim::{Fabric, FabricConfig, Faithful, Share, Step, Topology};
use urxe_wire::{AckTimeout, Mtu};

/// Of the link to the receiver.
const BOTTLENECK: Rate = Rate::from_mbps(1000);
/// Of the senders' links, where they start.
const LINE: Rate = Rate::from_mbps(10_000);
const WRITE: u32 = 16 << 10;
/// WRITEs each sender keeps posted.
const DEPTH: u32 = 8;

fn address(node: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, u8::try_from(node + 1).unwrap()))
}

struct Flow {
    qp: QpId,
    cq: CqId,
    source: MrInfo,
    target: MrInfo,
    bytes: u64,
}

fn nic(node: usize, dcqcn: bool) -> NicConfig {
    let mut config = NicConfig::new(address(node));
    config.line_rate = LINE;
    config.dcqcn = dcqcn.then(|| Params::paper().checked().unwrap());
    config
}

fn fabric(dcqcn: bool) -> Fabric<()> {
    let link = LinkConfig { rate: Some(LINE), ..LinkConfig::default() };
    let topology = Topology::Star;
    let faults = Vec::new();
    let (room, batches, keep_trace) = (1 << 20, false, false);
    let config = FabricConfig { seed: 1, topology, link, faults, room, batches, keep_trace };
    let nics = (0..3).map(|n| nic(n, dcqcn)).collect();
    let mut fabric = Fabric::new(nics, config, Box::new(Faithful)).unwrap();
    // The paper's kind of marking, its sizes scaled to the rate.
    let marking = Some(Marking { from: 5_000, to: 50_000, most: Share::percent(5) });
    let narrow = LinkConfig { rate: Some(BOTTLENECK), queue: 150_000, marking, ..link };
    fabric.set_link(0, 2, narrow);
    fabric
}

/// Connects node `from` with node 2.
fn flow(fabric: &mut Fabric<()>, from: usize) -> Flow {
    let end = |node: usize| {
        let nic = fabric.nic(node);
        let pd = nic.memory().alloc_pd().unwrap();
        let cq = nic.create_cq(64).unwrap();
        let backing = Backing::buffer(Buffer::zeroed(WRITE as usize).unwrap());
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let mr = nic.memory().reg_mr(pd, backing, 0, access).unwrap();
        let caps = QpCaps {
            max_send_wr: DEPTH,
            max_recv_wr: 1,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        let (send_cq, recv_cq, kind) = (Some(cq), Some(cq), QpKind::Rc);
        let init =
            QpInit { kind, pd, send_cq, recv_cq, srq: None, xrcd: None, caps, sig_all: true };
        (nic.create_qp(&init).unwrap(), cq, mr)
    };
    let ((qp, cq, source), (peer, _, target)) = (end(from), end(2));
    for (node, own, other, at) in [(from, qp, peer, 2), (2, peer, qp, from)] {
        let attr = QpAttr {
            path_mtu: Mtu::B1024,
            dest_qp: other,
            access: Access::REMOTE_WRITE,
            ah: AhAttr { dst: address(at), traffic_class: 2, ..AhAttr::default() },
            timeout: AckTimeout::new(10).unwrap(),
            retry_cnt: 7,
            rnr_retry: 7,
            ..QpAttr::default()
        };
        fabric.call(node, |nic, _, _| nic.connect_qp(own, &attr)).unwrap();
    }
    Flow { qp, cq, source, target, bytes: 0 }
}

fn post(fabric: &mut Fabric<()>, from: usize, flow: &Flow) {
    let sges = [Sge { addr: 0, length: WRITE, lkey: flow.source.lkey }];
    let op = SendOp::Write { remote: 0, rkey: flow.target.rkey, imm: None };
    fabric.call(from, |nic, now, out| {
        nic.post_send(now, flow.qp, &SendWr::new(1, op, &sges), out).unwrap();
    });
}

/// Packets that the senders sent again.
fn again(fabric: &Fabric<()>) -> u64 {
    (0..2).map(|n| fabric.nic(n).counters().get(Count::Retransmitted)).sum()
}

/// What each of two senders got through in the last 40 ms of 100, bits a second; CNPs sent, and
/// packets sent again in those 40 ms.
fn rates(dcqcn: bool) -> ([u64; 2], u64, u64) {
    let mut fabric = fabric(dcqcn);
    let mut flows = [flow(&mut fabric, 0), flow(&mut fabric, 1)];
    for (from, flow) in flows.iter().enumerate() {
        (0..DEPTH).for_each(|_| post(&mut fabric, from, flow));
    }
    let (start, mut before) = (fabric.now(), None);
    let measured = Duration::from_millis(60)..Duration::from_millis(100);
    while fabric.now().saturating_since(start) < measured.end {
        if fabric.now().saturating_since(start) >= measured.start {
            before.get_or_insert_with(|| again(&fabric));
        }
        match fabric.step() {
            Step::Node(from @ 0..2) => {
                while let Some(c) = fabric.nic(from).poll_one(flows[from].cq).unwrap() {
                    assert_eq!(c.status, WcStatus::Success);
                    let late = fabric.now().saturating_since(start) >= measured.start;
                    flows[from].bytes += if late { WRITE.into() } else { 0 };
                    post(&mut fabric, from, &flows[from]);
                }
            }
            Step::Node(_) | Step::Event(()) => {}
            Step::Rest => panic!("the flows stopped"),
        }
    }
    let bits = |f: &Flow| f.bytes * 8 * 1000 / 40;
    let cnps = fabric.nic(2).counters().get(Count::CnpSent);
    (flows.each_ref().map(bits), cnps, again(&fabric) - before.unwrap_or_default())
}

/// With DCQCN the flows come to equal shares of nearly all of the port, and next to nothing is
/// lost there any more; without it the queue overflows all the time.
#[test]
fn two_flows_share_a_bottleneck() {
    let ([a, b], cnps, lost) = rates(true);
    let (_, _, lost_without) = rates(false);
    assert!(cnps > 20, "{cnps} CNPs");
    let (sum, apart) = (a + b, a.abs_diff(b));
    assert!(sum > 700_000_000, "{a} and {b} of {BOTTLENECK}");
    assert!(apart * 10 < sum, "{a} and {b} are far apart");
    assert!(lost * 4 < lost_without, "{lost} packets sent again, {lost_without} without");
}
