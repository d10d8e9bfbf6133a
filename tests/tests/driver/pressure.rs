//! What runs out: completions, QPs again and again.

use urxe::{AsyncEvent, Caps, Config, Context, CqCause, QpKind, QpState, SendOp, WcStatus};

use crate::rig::{ALL, PATIENCE, Side, alone, open, patient, quick};

#[test]
fn a_full_cq_is_told_of_and_its_qp_goes_to_error() {
    let (near, far) = (open(), open());
    let pd = near.alloc_pd().unwrap();
    let (mr, cq) = (pd.register(4096, ALL).unwrap(), near.create_cq(4).unwrap());
    let qp = pd.qp(QpKind::Rc).cq(&cq).attr(quick).build().unwrap();
    let peer = Side::new(&far, QpKind::Rc);
    qp.connect(&peer.qp.endpoint()).unwrap();
    peer.qp.connect(&qp.endpoint()).unwrap();
    for n in 0..6 {
        let op = SendOp::Write { remote: peer.mr.addr(), rkey: peer.mr.rkey(), imm: None };
        qp.post_send(n, op, &[mr.sge(0..8)]).unwrap();
    }
    let event = near.wait_async_event(PATIENCE).unwrap();
    assert_eq!(event, Some(AsyncEvent::CqErr(cq.id(), CqCause::Overflow)));
    assert!(cq.query().unwrap().overflowed);
    // What was in it before is still there.
    for n in 0..4 {
        let done = cq.wait_for(PATIENCE).unwrap();
        assert_eq!((done.wr_id, done.status), (n, WcStatus::Success));
    }
    assert_eq!(qp.query().unwrap().attr.qp_state, QpState::Err);
    let event = near.wait_async_event(PATIENCE).unwrap();
    assert_eq!(event, Some(AsyncEvent::QpFatal(qp.qpn())));
}

/// Descriptors and threads of this process, and kilobytes of its memory that are resident.
fn usage() -> (usize, usize, usize) {
    let count = |what: &str| std::fs::read_dir(what).unwrap().count();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes = rss.trim().trim_end_matches(" kB").parse().unwrap();
    (count("/proc/self/fd"), count("/proc/self/task"), kilobytes)
}

/// A thousand connections made, used and undone, a hundred times.
#[test]
fn a_thousand_connections_come_and_go_a_hundred_times() {
    if !alone("pressure::a_thousand_connections_come_and_go_a_hundred_times") {
        return;
    }
    // So that QPNs are used again: a table grows until all have been.
    let caps = Caps { max_qp: 1200, ..Caps::default() };
    let config = Config { caps, ..patient() };
    let (near, far) = (Context::open(&config).unwrap(), Context::open(&config).unwrap());
    let (pd, far_pd) = (near.alloc_pd().unwrap(), far.alloc_pd().unwrap());
    let (mr, far_mr) = (pd.register(64, ALL).unwrap(), far_pd.register(64, ALL).unwrap());
    let (cq, far_cq) = (near.create_cq(2048).unwrap(), far.create_cq(16).unwrap());
    let mut settled = None;
    for round in 0..100 {
        let pairs: Vec<_> = (0..1000_u64)
            .map(|n| {
                let a = pd.qp(QpKind::Rc).cq(&cq).attr(quick).build().unwrap();
                let b = far_pd.qp(QpKind::Rc).cq(&far_cq).access(ALL).build().unwrap();
                a.connect(&b.endpoint()).unwrap();
                b.connect(&a.endpoint()).unwrap();
                let op = SendOp::Write { remote: far_mr.addr(), rkey: far_mr.rkey(), imm: None };
                a.post_send(n, op, &[mr.sge(0..64)]).unwrap();
                (a, b)
            })
            .collect();
        let mut done = vec![false; 1000];
        for _ in 0..1000 {
            let one = cq.wait_for(PATIENCE).unwrap();
            assert_eq!(one.status, WcStatus::Success, "round {round}: {}", one.explain());
            done[one.wr_id as usize] = true;
        }
        assert!(done.iter().all(|d| *d));
        drop(pairs);
        assert_eq!((near.counts().qps, far.counts().qps), (0, 0));
        let now = usage();
        // The first rounds fill the allocator's and the tables' stores.
        if round == 20 {
            settled = Some(now);
        }
        if let Some((fds, threads, rss)) = settled {
            assert_eq!((now.0, now.1), (fds, threads), "descriptors and threads, round {round}");
            assert!(now.2 <= rss + 4096, "round {round}: {} kB, after {rss} kB", now.2);
        }
    }
}
