//! Memory windows through QPs: bound by a work request, used by the peer, taken away.

use urxe_engine::{AsyncEvent, QpId, QpState, SendFlags, SendOp, SendWr, WcOpcode, WcStatus};
use urxe_memory::{Access, MwId, MwType};

use crate::ask::{inv, reth};
use crate::lab::{BASE, Node, lab};

const OK: WcStatus = WcStatus::Success;
const RIGHTS: Access = Access::REMOTE_WRITE.union(Access::REMOTE_READ);

fn bind(n: &Node, mw: MwId, rkey: Option<u32>, length: u64) -> SendOp {
    let (lkey, addr, access) = (n.mr.lkey, BASE + 256, RIGHTS);
    SendOp::BindMw { mw, rkey, lkey, addr, length, access }
}

fn post(n: &mut Node, qp: QpId, wr_id: u64, op: SendOp) {
    n.send(qp, &SendWr::new(wr_id, op, &[]));
}

/// What a WRITE of 4 bytes under `rkey` is answered.
fn write(n: &mut Node, qp: QpId, va: u64, rkey: u32) -> String {
    let psn = n.nic.query_qp(qp).unwrap().attr.rq_psn.value();
    n.arrive_request(qp, "RC_RDMA_WRITE_ONLY", psn, reth(va, rkey, 4), b"data");
    let line = n.sent().pop().unwrap();
    line.split(' ').nth(3).map_or(line.clone(), str::to_owned)
}

#[test]
fn a_type_1_window_opens_its_range_to_all_qps_of_the_pd() {
    let mut n = lab();
    let (a, b) = (n.rc256(), n.rc256());
    let (mw, unbound) = n.nic.memory().alloc_mw(n.pd, MwType::Type1).unwrap();
    let op = bind(&n, mw, None, 512);
    post(&mut n, a, 1, op);
    let got = n.completions();
    assert_eq!((got[0].status, got[0].opcode), (OK, WcOpcode::BindMw));
    let key = n.nic.memory().query_mw(mw).unwrap().rkey;
    assert_ne!(key, unbound);
    assert_eq!(write(&mut n, a, BASE + 256, key), "credits=0");
    assert_eq!(write(&mut n, b, BASE + 764, key), "credits=0");
    assert_eq!(n.bytes(764, 4), b"data");
    // Bound again, the old key is stale.
    let op = bind(&n, mw, None, 256);
    post(&mut n, a, 2, op);
    assert_eq!(write(&mut n, a, BASE + 256, key), "RemoteAccess");
    let key = n.nic.memory().query_mw(mw).unwrap().rkey;
    assert_eq!(write(&mut n, b, BASE + 764, key), "RemoteAccess", "out of its range");
    // Bound to nothing, it opens nothing.
    let (a, b) = (n.rc256(), n.rc256());
    let op = bind(&n, mw, None, 0);
    post(&mut n, a, 3, op);
    let key = n.nic.memory().query_mw(mw).unwrap().rkey;
    assert_eq!(write(&mut n, b, BASE + 256, key), "RemoteAccess");
}

#[test]
fn a_type_2b_window_is_of_one_qp() {
    let mut n = lab();
    let (a, b) = (n.rc256(), n.rc256());
    let (mw, key) = n.nic.memory().alloc_mw(n.pd, MwType::Type2B).unwrap();
    let key = key ^ 0x55;
    let op = bind(&n, mw, Some(key), 512);
    post(&mut n, a, 1, op);
    assert_eq!(n.done(), [(1, OK)]);
    assert_eq!(write(&mut n, a, BASE + 256, key), "credits=0");
    assert_eq!(write(&mut n, b, BASE + 256, key), "RemoteAccess");
    assert_eq!(n.async_events(), [AsyncEvent::QpAccessErr(b)]);
}

#[test]
fn a_window_ends_with_an_invalidation_from_either_side() {
    for remote in [false, true] {
        let mut n = lab();
        let qp = n.rc256();
        let (mw, key) = n.nic.memory().alloc_mw(n.pd, MwType::Type2B).unwrap();
        let op = bind(&n, mw, Some(key ^ 1), 512);
        post(&mut n, qp, 1, op);
        if remote {
            n.recv(qp, 2, 0, 8);
            n.arrive_quiet(qp, "RC_SEND_ONLY_WITH_INVALIDATE", 500, inv(key ^ 1), b"x");
        } else {
            post(&mut n, qp, 2, SendOp::LocalInvalidate { rkey: key ^ 1 });
        }
        assert_eq!(n.done(), [(1, OK), (2, OK)]);
        // It may be bound again, under another key.
        let op = bind(&n, mw, Some(key ^ 2), 512);
        post(&mut n, qp, 3, op);
        assert_eq!(n.done(), [(3, OK)]);
        assert_eq!(write(&mut n, qp, BASE + 256, key ^ 2), "credits=0");
        assert_eq!(write(&mut n, qp, BASE + 256, key ^ 1), "RemoteAccess");
    }
}

/// A window that cannot be bound fails its request, and the QP (IBA 10.6.7).
#[test]
fn a_window_that_cannot_be_bound() {
    type Make = fn(&Node, MwId, u32) -> SendOp;
    let cases: [(MwType, Make); 6] = [
        (MwType::Type2B, |n, mw, _| bind(n, mw, None, 512)),
        (MwType::Type2B, |n, mw, key| bind(n, mw, Some(key ^ 0x100), 512)),
        (MwType::Type2B, |n, mw, key| bind(n, mw, Some(key ^ 1), 0)),
        (MwType::Type1, |n, mw, _| bind(n, mw, None, 1 << 16)),
        (MwType::Type1, |n, mw, _| {
            let (lkey, addr, length) = (n.region(Access::LOCAL_WRITE).lkey, BASE, 8);
            SendOp::BindMw { mw, rkey: None, lkey, addr, length, access: RIGHTS }
        }),
        (MwType::Type1, |n, mw, _| {
            let (lkey, addr, length) = (n.mr.lkey ^ 1, BASE, 8);
            SendOp::BindMw { mw, rkey: None, lkey, addr, length, access: RIGHTS }
        }),
    ];
    for (kind, make) in cases {
        let mut n = lab();
        let qp = n.rc256();
        let (mw, key) = n.nic.memory().alloc_mw(n.pd, kind).unwrap();
        let op = make(&n, mw, key);
        // Not signaled: what fails is told all the same.
        n.send(qp, &SendWr { flags: SendFlags::empty(), ..SendWr::new(1, op, &[]) });
        let got = n.completions();
        assert_eq!((got[0].status, n.state(qp)), (WcStatus::MwBindErr, QpState::Err));
        let text = got[0].cause.unwrap().to_string();
        assert!(text.contains("window"), "{text}");
    }
}

#[test]
fn a_local_invalidation_of_what_cannot_be_invalidated_fails() {
    let mut n = lab();
    let qp = n.rc256();
    let rkey = n.mr.rkey;
    post(&mut n, qp, 1, SendOp::LocalInvalidate { rkey });
    assert_eq!((n.done(), n.state(qp)), (vec![(1, WcStatus::LocQpOpErr)], QpState::Err));
}

/// The windows of a QP end with it: a later QP of its number finds none.
#[test]
fn windows_end_with_their_qp() {
    let mut n = lab();
    let qp = n.rc256();
    let (mw, key) = n.nic.memory().alloc_mw(n.pd, MwType::Type2B).unwrap();
    let op = bind(&n, mw, Some(key ^ 1), 512);
    post(&mut n, qp, 1, op);
    assert!(n.nic.memory().query_mw(mw).unwrap().bound);
    n.nic.destroy_qp(qp).unwrap();
    assert!(!n.nic.memory().query_mw(mw).unwrap().bound);
    n.nic.memory().dealloc_mw(mw).unwrap();
    n.nic.memory().dereg_mr(n.mr.id).unwrap();
}
