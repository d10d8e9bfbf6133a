//! Objects of Rust may be dropped in any order; nothing leaks, nothing is used after its end.

use std::any::Any;
use std::net::IpAddr;
use std::time::Duration;

use urxe::{
    Access, Address, AhAttr, AsyncEvent, AttrMask, Config, Context, MwType, ObjectCounts, QpAttr,
    QpKind, SendOp, Srq, SrqAttr, WcStatus,
};

use crate::rig::{ALL, PATIENCE, QKEY, Side, alone, connect, connected, eventually, open};

type Objects = Vec<Box<dyn Any>>;

const SRQ: SrqAttr = SrqAttr { max_wr: 4, max_sge: 1, limit: 0 };

/// A region with two windows bound to it, one of each type, and what binding them takes.
fn windows(context: &Context) -> Objects {
    let side = Side::new(context, QpKind::Rc);
    side.qp.connect(&side.qp.endpoint()).unwrap();
    let mut all: Objects = Vec::new();
    for (n, kind) in [MwType::Type1, MwType::Type2B].into_iter().enumerate() {
        let mw = side.pd.alloc_mw(kind).unwrap();
        let key = side.qp.bind_mw(n as u64, &mw, &side.mr, 0..64, Access::REMOTE_READ).unwrap();
        side.done();
        assert_eq!(mw.rkey(), key);
        all.push(Box::new(mw));
    }
    assert_eq!(side.mr.query().unwrap().windows, 2);
    let Side { pd, mr, cq, qp } = side;
    all.extend([Box::new(pd) as Box<dyn Any>, Box::new(mr), Box::new(cq), Box::new(qp)]);
    all
}

/// QPs with and without an SRQ, an address handle, a channel.
fn queues(context: &Context) -> Objects {
    let pd = context.alloc_pd().unwrap();
    let channel = context.create_comp_channel().unwrap();
    let cq = context.create_cq_on(4, &channel).unwrap();
    let srq = pd.create_srq(SRQ).unwrap();
    let shared = pd.qp(QpKind::Rc).cq(&cq).srq(&srq).build().unwrap();
    let ah = pd.create_ah(&AhAttr { dst: context.address(), ..AhAttr::default() }).unwrap();
    let plain = pd.qp(QpKind::Ud).cq(&cq).build().unwrap();
    plain.ready(QKEY).unwrap();
    plain.attach_mcast("239.1.2.3".parse().unwrap()).unwrap();
    vec![
        Box::new(pd),
        Box::new(channel),
        Box::new(cq),
        Box::new(srq),
        Box::new((shared, ah)),
        Box::new(plain),
    ]
}

/// XRC: a target, its domain and the SRQ of that.
fn xrc(context: &Context) -> Objects {
    let pd = context.alloc_pd().unwrap();
    let (cq, xrcd) = (context.create_cq(4).unwrap(), context.alloc_xrcd().unwrap());
    let srq = Srq::xrc(&pd, SRQ, &xrcd, &cq).unwrap();
    let target = pd.qp(QpKind::XrcTarget).xrcd(&xrcd).build().unwrap();
    let source = pd.qp(QpKind::XrcInit).cq(&cq).build().unwrap();
    vec![
        Box::new(pd),
        Box::new(cq),
        Box::new(xrcd),
        Box::new(srq),
        Box::new(target),
        Box::new(source),
    ]
}

/// The `n`th of all orders of `len` objects.
fn order(mut n: usize, len: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..len).collect();
    (0..len)
        .map(|_| {
            let nth = n % left.len();
            n /= left.len();
            left.remove(nth)
        })
        .collect()
}

#[test]
fn every_order_of_dropping_leaves_nothing_behind() {
    let context = open();
    for make in [windows, queues, xrc] {
        let len = make(&context).len();
        for n in 0..(1..=len).product() {
            let mut all: Vec<_> = make(&context).into_iter().map(Some).collect();
            for i in order(n, len) {
                all[i] = None;
            }
            assert_eq!(context.counts(), ObjectCounts::default(), "{:?}", order(n, len));
        }
    }
}

#[test]
fn the_device_closes_when_its_last_object_is_dropped_whichever_it_is() {
    if !alone("lifetimes::the_device_closes_when_its_last_object_is_dropped_whichever_it_is") {
        return;
    }
    // None that a device is given of itself.
    let address = Address::Of("127.0.1.1".parse().unwrap());
    let config = Config { address, ..Config::default() };
    for make in [windows, queues, xrc] {
        let len = make(&open()).len();
        for last in 0..len {
            let context = Context::open(&config).unwrap();
            let mut all = make(&context);
            let last = all.remove(last);
            drop(context);
            drop(all);
            assert!(Context::open(&config).is_err(), "it is still in use");
            drop(last);
            assert!(Context::open(&config).is_ok(), "{address:?} is free again");
        }
    }
}

#[test]
fn a_region_outlives_its_handle_for_its_windows_only() {
    let (a, b) = (open(), open());
    let (a, b) = connected(&a, &b, QpKind::Rc);
    let window = b.pd.alloc_mw(MwType::Type2B).unwrap();
    let rkey = b.qp.bind_mw(1, &window, &b.mr, 0..64, Access::REMOTE_WRITE).unwrap();
    b.done();
    let (remote, region_key) = (b.mr.addr(), b.mr.rkey());
    let buffer = b.mr.buffer().clone();
    drop(b.mr);
    a.mr.write(0, b"through the window").unwrap();
    let write = |rkey| SendOp::Write { remote, rkey, imm: None };
    a.qp.post_send(2, write(rkey), &[a.mr.sge(0..18)]).unwrap();
    a.done();
    let mut got = [0; 18];
    buffer.read(0, &mut got).unwrap();
    assert_eq!(&got, b"through the window");
    drop(window);
    for key in [rkey, region_key] {
        a.qp.post_send(3, write(key), &[a.mr.sge(0..1)]).unwrap();
        let done = a.cq.wait_for(PATIENCE).unwrap();
        assert_eq!(done.status, WcStatus::RemAccessErr, "{}", done.explain());
        a.qp.reset().unwrap();
        b.qp.reset().unwrap();
        a.qp.connect(&b.qp.endpoint()).unwrap();
        b.qp.connect(&a.qp.endpoint()).unwrap();
    }
}

#[test]
fn events_of_what_is_gone_are_gone() {
    let (near, far) = (open(), open());
    let channel = near.create_comp_channel().unwrap();
    let a = Side::with(&near, QpKind::Rc, Some(&channel), crate::rig::quick);
    let b = Side::new(&far, QpKind::Rc);
    connect(&a, &b);
    // Refused by a's device, which tells its program so.
    let remote = a.mr.addr();
    let write = SendOp::Write { remote, rkey: a.mr.rkey() ^ 1, imm: None };
    b.qp.post_send(1, write, &[b.mr.sge(0..8)]).unwrap();
    assert_eq!(b.cq.wait_for(PATIENCE).unwrap().status, WcStatus::RemAccessErr);
    let event = near.wait_async_event(PATIENCE).unwrap();
    assert_eq!(event, Some(AsyncEvent::QpAccessErr(a.qp.qpn())));
    // Once more, and not taken this time.
    a.qp.reset().unwrap();
    b.qp.reset().unwrap();
    connect(&a, &b);
    a.cq.req_notify(urxe::Arm::Next).unwrap();
    a.qp.post_recv(9, &[]).unwrap();
    b.qp.post_send(2, write, &[b.mr.sge(0..8)]).unwrap();
    assert_eq!(b.cq.wait_for(PATIENCE).unwrap().status, WcStatus::RemAccessErr);
    let Side { qp, cq, .. } = a;
    drop(qp);
    assert_eq!(near.take_async_event(), None);
    drop(cq);
    assert_eq!(channel.take_event(), None);
    assert_eq!(channel.wait_event(Duration::ZERO).unwrap(), None);
}

#[test]
fn the_port_is_in_a_group_as_long_as_a_qp_is() {
    let context = open();
    let group: IpAddr = "239.1.2.77".parse().unwrap();
    let (a, b) = (Side::new(&context, QpKind::Ud), Side::new(&context, QpKind::Ud));
    // Each group has a socket of its own, bound to it. The list is no snapshot: it may miss one.
    let expect = |joined: bool, what: &str| {
        eventually(what, || {
            let sockets = std::fs::read_to_string("/proc/self/net/udp").unwrap();
            (sockets.contains(" 4D0201EF:12B7 ") == joined).then_some(())
        });
    };
    expect(false, "nobody is in it");
    a.qp.attach_mcast(group).unwrap();
    a.qp.attach_mcast(group).unwrap();
    b.qp.attach_mcast(group).unwrap();
    expect(true, "both are in it");
    a.qp.detach_mcast(group).unwrap();
    assert!(a.qp.detach_mcast(group).is_err(), "it is not in it");
    expect(true, "b is still in it");
    drop(b);
    expect(false, "nobody is in it any more");
    assert_eq!(context.counts().groups, 0);
    a.qp.attach_mcast(group).unwrap();
    expect(true, "a is in it again");
}

#[test]
fn objects_of_two_devices_do_not_go_together() {
    let (a, b) = (open(), open());
    let (pd, cq, far) = (a.alloc_pd().unwrap(), a.create_cq(4).unwrap(), b.create_cq(4).unwrap());
    let xrcd = b.alloc_xrcd().unwrap();
    let channel = b.create_comp_channel().unwrap();
    let text = |e: urxe::Error| e.to_string();
    let wrong = [
        text(pd.qp(QpKind::Rc).cq(&far).build().unwrap_err()),
        text(pd.qp(QpKind::Rc).cq(&cq).recv_cq(&far).build().unwrap_err()),
        text(pd.qp(QpKind::XrcTarget).xrcd(&xrcd).build().unwrap_err()),
        text(Srq::xrc(&pd, SRQ, &xrcd, &cq).unwrap_err()),
        text(a.create_cq_on(4, &channel).unwrap_err()),
    ];
    for (text, what) in wrong.iter().zip(["CQ", "CQ", "XRC domain", "XRC domain", "channel"]) {
        assert!(text.contains(what) && text.contains("another device"), "{text}");
    }
    let mut mr = pd.register(8, ALL).unwrap();
    let other = b.alloc_pd().unwrap();
    let change = urxe::Reregister { pd: Some(&other), ..Default::default() };
    assert!(mr.reregister(change).is_err());
}

/// No packet can go from IPv4 to IPv6; to blame the peer's silence for it would mislead.
#[test]
fn a_peer_of_the_other_ip_version_is_refused_at_once() {
    let version_6 = Config { address: Address::Of("::1".parse().unwrap()), ..Config::default() };
    let (near, far) = (open(), Context::open(&version_6));
    let Ok(far) = far else { return eprintln!("skipped: no ::1 here") };
    let (a, b) = (Side::new(&near, QpKind::Rc), Side::new(&far, QpKind::Rc));
    for (from, to) in [(&a, &b), (&b, &a)] {
        let refused = from.qp.connect(&to.qp.endpoint()).unwrap_err().to_string();
        assert!(refused.contains("one is IPv4, the other IPv6"), "{refused}");
        assert!(refused.contains("--addr"), "{refused}");
        let attr = AhAttr { dst: to.qp.endpoint().address, ..AhAttr::default() };
        assert!(from.pd.create_ah(&attr).is_err());
        let attr = QpAttr { ah: attr, ..QpAttr::default() };
        assert!(from.qp.modify(&attr, AttrMask::AV).is_err());
    }
}
