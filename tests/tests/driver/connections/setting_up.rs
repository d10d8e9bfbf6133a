//! What an exchange tells both sides.

use std::thread;

use urxe::cm::{Connection, Listener, Options, PortSpace, RetryCount, resolve};
use urxe::{Access, Mtu, QKey, QpKind, QpState, SendOp, SendWr, Srq, SrqAttr, UdDest};

use super::{Host, connected, soon, talk};
use crate::rig::PATIENCE;

#[test]
fn both_qps_are_set_to_what_the_exchange_says() {
    let (a, b) = (Host::open(), Host::open());
    let mut options = soon();
    (options.responder_resources, options.initiator_depth) = (4, 2);
    options.retry_count = RetryCount::new(5).unwrap();
    options.rnr_retry_count = RetryCount::new(3).unwrap();
    let mut path = options.path.unwrap();
    (path.mtu, path.traffic_class) = (Mtu::B512, 0x20);
    options.path = Some(path);
    let (near, far) = connected(&a, &b, &options);
    let [x, y] = [&near, &far].map(|side| side.qp().query().unwrap().attr);
    for (attr, peer, host) in [(x, &far, &b), (y, &near, &a)] {
        assert_eq!(attr.qp_state, QpState::Rts);
        assert_eq!((attr.dest_qp, attr.ah.dst), (peer.qp().qpn(), host.context.address()));
        assert_eq!((attr.path_mtu, attr.ah.traffic_class), (Mtu::B512, 0x20));
        assert_eq!((attr.retry_cnt, attr.rnr_retry), (5, 3));
        assert!(attr.access.contains(Access::REMOTE_WRITE | Access::REMOTE_READ));
        // Twice the lifetime of 34 ms and the device's 134 ms (Linux core/cm.c).
        assert_eq!(attr.timeout.code(), 16);
    }
    assert_eq!((x.sq_psn, x.rq_psn), (y.rq_psn, y.sq_psn));
    // What one has outstanding the other serves: the least of both.
    assert_eq!((x.max_rd_atomic, y.max_dest_rd_atomic), (2, 2));
    assert_eq!((y.max_rd_atomic, x.max_dest_rd_atomic), (2, 2));
    talk((&a, &near), (&b, &far));
}

#[test]
fn private_data_goes_both_ways() {
    let (a, b) = (Host::open(), Host::open());
    let listener = b.listen();
    thread::scope(|scope| {
        let far = scope.spawn(|| {
            let incoming = listener.incoming().unwrap();
            assert_eq!(incoming.info().private_data.len(), 56);
            assert!(incoming.info().private_data.starts_with(&[7; 56]));
            let options = Options { private_data: &[9; 196], ..soon() };
            b.accept(incoming, &options).unwrap()
        });
        let options = Options { private_data: &[7; 56], ..soon() };
        let near = a.connect(listener.local_addr(), &options).unwrap();
        assert_eq!(near.info().private_data, [9; 196]);
        far.join().unwrap();
    });
    let too_long = Options { private_data: &[7; 57], ..soon() };
    let why = a.connect(listener.local_addr(), &too_long).unwrap_err().to_string();
    assert!(why.contains("57 bytes") && why.contains("room for 56"), "{why}");
}

#[test]
fn uc_is_connected_with_uc() {
    let (a, b) = (Host::open(), Host::open());
    let listener = b.listen();
    thread::scope(|scope| {
        let far = scope.spawn(|| {
            let incoming = listener.incoming().unwrap();
            assert_eq!(incoming.kind(), QpKind::Uc);
            incoming.accept(b.qp(QpKind::Uc), &soon()).unwrap()
        });
        let qp = a.qp(QpKind::Uc);
        let near = Connection::connect(&a.context, listener.local_addr(), qp, &soon()).unwrap();
        talk((&a, &near), (&b, &far.join().unwrap()));
    });
}

#[test]
fn xrc_connects_a_sender_with_a_receiver() {
    let (a, b) = (Host::open(), Host::open());
    let listener = b.listen();
    let xrcd = b.context.alloc_xrcd().unwrap();
    let attr = SrqAttr { max_wr: 4, max_sge: 1, limit: 0 };
    let srq = Srq::xrc(&b.pd, attr, &xrcd, &b.cq).unwrap();
    srq.post_recv(3, &[b.mr.sge(0..64)]).unwrap();
    thread::scope(|scope| {
        let far = scope.spawn(|| {
            let incoming = listener.incoming().unwrap();
            assert_eq!(incoming.kind(), QpKind::XrcTarget);
            let qp = b.pd.qp(QpKind::XrcTarget).xrcd(&xrcd).build().unwrap();
            incoming.accept(qp, &soon()).unwrap()
        });
        let qp = a.pd.qp(QpKind::XrcInit).cq(&a.cq).build().unwrap();
        let near = Connection::connect(&a.context, listener.local_addr(), qp, &soon()).unwrap();
        let _far = far.join().unwrap();
        let data = [a.mr.sge(0..8)];
        let wr = SendWr::new(1, SendOp::Send { imm: None }, &data);
        near.qp().post(&SendWr { remote_srqn: srq.number(), ..wr }).unwrap();
        assert_eq!(b.cq.wait_for(PATIENCE).unwrap().wr_id, 3);
    });
}

#[test]
fn a_datagram_service_tells_its_qp() {
    let (a, b) = (Host::open(), Host::open());
    let listener = Listener::bind_datagrams(&b.context, b.addr(0)).unwrap();
    let there = b.pd.qp(QpKind::Ud).cq(&b.cq).build().unwrap();
    there.ready(QKey(0x4321)).unwrap();
    there.post_recv(5, &[b.mr.sge(0..1000)]).unwrap();
    let remote = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let options = Options { private_data: &[7; 180], ..soon() };
            resolve(&a.context, listener.local_addr(), &options).unwrap()
        });
        let incoming = listener.incoming().unwrap();
        assert_eq!(
            (incoming.kind(), &incoming.info().private_data[..]),
            (QpKind::Ud, &[7; 180][..])
        );
        incoming.answer(&there, &[9; 136]).unwrap();
        asking.join().unwrap()
    });
    assert_eq!((remote.info.qpn, remote.info.qkey), (there.qpn(), QKey(0x4321)));
    assert_eq!(remote.info.private_data, [9; 136]);
    let here = a.pd.qp(QpKind::Ud).cq(&a.cq).build().unwrap();
    here.ready(QKey(0x4321)).unwrap();
    let ah = a.pd.create_ah(&remote.ah).unwrap();
    let dest = Some(UdDest { ah: ah.id(), qpn: remote.info.qpn, qkey: remote.info.qkey });
    let data = [a.mr.sge(0..8)];
    let wr = SendWr { dest, ..SendWr::new(1, SendOp::Send { imm: None }, &data) };
    here.post(&wr).unwrap();
    assert_eq!(b.cq.wait_for(PATIENCE).unwrap().wr_id, 5);
}

#[test]
fn port_spaces_do_not_meet() {
    let (a, b) = (Host::open(), Host::open());
    let tcp = b.listen();
    let port = tcp.local_addr().port();
    let ib = Listener::with(&b.context, b.addr(port), PortSpace::Ib, 1).unwrap();
    thread::scope(|scope| {
        let far = scope.spawn(|| b.accept(ib.incoming().unwrap(), &soon()).unwrap());
        let options = Options { space: PortSpace::Ib, ..soon() };
        let near = a.connect(ib.local_addr(), &options).unwrap();
        talk((&a, &near), (&b, &far.join().unwrap()));
    });
}
