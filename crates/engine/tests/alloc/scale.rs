//! Many QPs: what each costs at rest, and how their numbers come back.

use urxe_engine::{Path, Payload, QpCaps, QpId, QpKind, Time, Transmit};

use crate::link::{Node, address};
use crate::{allocations, kept_bytes};

const SMALL: QpCaps = QpCaps {
    max_send_wr: 16,
    max_recv_wr: 16,
    max_send_sge: 1,
    max_recv_sge: 1,
    max_inline_data: 0,
};

/// What the verbs API gives a program that asks for nothing else.
const USUAL: QpCaps = QpCaps {
    max_send_wr: 128,
    max_recv_wr: 128,
    max_send_sge: 4,
    max_recv_sge: 4,
    max_inline_data: 64,
};

/// A sink that nothing may be handed to.
struct Silent;

impl Transmit for Silent {
    fn room(&self) -> usize {
        64
    }

    fn packet(&mut self, _: &Path, header: &[u8], _: Payload<'_>, _: usize) {
        panic!("sent {header:x?}");
    }
}

fn connected(node: &Node, caps: QpCaps) -> QpId {
    let qp = node.create(QpKind::Rc, false, caps);
    node.connect(qp, address(2), QpId::new(0x77));
    qp
}

#[test]
fn a_qp_at_rest_takes_few_bytes() {
    const QPS: usize = 10_000;
    for (name, caps, most) in [("small", SMALL, SMALL_MOST), ("usual", USUAL, USUAL_MOST)] {
        let node = Node::new(1);
        let bytes = kept_bytes(|| (0..QPS).for_each(|_| _ = connected(&node, caps))) / QPS;
        assert!(bytes <= most, "{name}: {bytes} bytes per QP, at most {most} wanted");
    }
}

/// Bytes of a connected QP, with what it takes in the NIC's tables.
const SMALL_MOST: usize = 2_048;
const USUAL_MOST: usize = 3_072;

#[test]
fn qps_at_rest_have_no_deadline_and_nothing_to_do() {
    let node = Node::new(1);
    (0..1_000).for_each(|_| _ = connected(&node, SMALL));
    let now = Time::from_nanos(1);
    // A QP that comes to RTS has a first turn.
    node.nic.pump(now, &mut Silent);
    assert!(!node.nic.has_work());
    assert_eq!(node.nic.next_deadline(), None);
    assert!(!node.nic.timers_armed());
    let used = allocations(|| {
        node.nic.pump(now, &mut Silent);
        node.nic.expire(Time::from_nanos(u64::MAX / 2), &mut Silent);
    });
    assert_eq!(used, 0);
    assert_eq!((node.nic.has_work(), node.nic.next_deadline()), (false, None));
}

#[test]
fn a_hundred_thousand_qps_come_and_go_and_numbers_return_late() {
    const QPS: usize = 100_000;
    let node = Node::new(1);
    let qps: Vec<QpId> = (0..QPS).map(|_| node.create(QpKind::Rc, false, SMALL)).collect();
    let numbers: Vec<u32> = qps.iter().map(|qp| qp.value()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "no number twice");
    qps.iter().for_each(|&qp| node.nic.destroy_qp(qp).unwrap());
    // The numbers never used come first, then the one that has been free for longest.
    let unused = node.nic.config().caps.max_qp as usize - QPS;
    let next: Vec<QpId> = (0..=unused).map(|_| node.create(QpKind::Rc, false, SMALL)).collect();
    assert!(next[..unused].iter().all(|qp| qp.value() > numbers[QPS - 1]));
    assert_eq!(next[unused], qps[0]);
    next.iter().for_each(|&qp| node.nic.destroy_qp(qp).unwrap());
    assert!(node.nic.query_qp(qps[0]).is_err());
}
