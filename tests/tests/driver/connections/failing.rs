//! Attempts that come to nothing, and what each side is told.

use std::thread;

use urxe::cm::{Listener, Message, Options, PathParams, RejReason, Timing};
use urxe::{Error, Mtu, QpKind};

use super::{Host, code, connected, soon, talk};
use crate::rig::PATIENCE;

#[test]
fn a_port_that_nobody_listens_to_refuses() {
    let (a, b) = (Host::open(), Host::open());
    let listener = b.listen();
    let nobody = b.addr(listener.local_addr().port().wrapping_sub(1));
    match a.connect(nobody, &soon()).unwrap_err() {
        Error::Refused { peer, reason: RejReason::InvalidServiceId, .. } => {
            assert_eq!(peer, Some(nobody));
        }
        other => panic!("{other}"),
    }
    a.is_idle();
    b.is_idle();
}

/// A program that tries again on the same CQ finds nothing of the first attempt.
#[test]
fn a_refused_attempt_leaves_no_completions() {
    let (a, b) = (Host::open(), Host::open());
    let listener = b.listen();
    let nobody = b.addr(listener.local_addr().port().wrapping_sub(1));
    let qp = a.qp(QpKind::Rc);
    qp.post_recv(1, &[a.mr.sge(0..10)]).unwrap();
    let tried = urxe::cm::Connection::connect(&a.context, nobody, qp, &soon());
    assert!(matches!(tried, Err(Error::Refused { .. })));
    assert_eq!(a.cq.poll_one().unwrap(), None);
}

#[test]
fn a_program_refuses_with_a_word() {
    let (a, b) = (Host::open(), Host::open());
    let listener = b.listen();
    thread::scope(|scope| {
        scope.spawn(|| listener.incoming().unwrap().reject(b"not you").unwrap());
        match a.connect(listener.local_addr(), &soon()).unwrap_err() {
            Error::Refused { reason: RejReason::ConsumerDefined, private_data, .. } => {
                assert!(private_data.starts_with(b"not you\0") && private_data.len() == 148);
            }
            other => panic!("{other}"),
        }
    });
    a.is_idle();
    b.is_idle();
}

/// Of a program that takes a request and forgets it the peer need not wait for.
#[test]
fn a_request_that_is_dropped_is_refused() {
    let (a, b) = (Host::open(), Host::open());
    let listener = b.listen();
    thread::scope(|scope| {
        scope.spawn(|| drop(listener.incoming().unwrap()));
        let why = a.connect(listener.local_addr(), &soon()).unwrap_err();
        assert!(matches!(why, Error::Refused { .. }), "{why}");
    });
    // And of one that waits when its listener goes.
    let to = listener.local_addr();
    thread::scope(|scope| {
        let near = scope.spawn(|| a.connect(to, &soon()).unwrap_err());
        crate::rig::eventually("a request", || (b.context.cm_stats().backlog == 1).then_some(()));
        drop(listener);
        let why = near.join().unwrap();
        assert!(matches!(why, Error::Refused { .. }), "{why}");
    });
    a.is_idle();
    b.is_idle();
}

#[test]
fn a_qp_of_another_kind_is_not_taken_and_the_peer_is_refused() {
    let (a, b) = (Host::open(), Host::open());
    let listener = b.listen();
    thread::scope(|scope| {
        scope.spawn(|| {
            let incoming = listener.incoming().unwrap();
            let why = incoming.accept(b.qp(QpKind::Uc), &soon()).unwrap_err().to_string();
            assert!(why.contains("UC") && why.contains("RC"), "{why}");
        });
        let why = a.connect(listener.local_addr(), &soon()).unwrap_err();
        assert!(matches!(why, Error::Refused { .. }), "{why}");
    });
}

/// Its device is there but has no connection manager, as a host without the module.
#[test]
fn who_does_not_answer_is_unreachable() {
    let (a, b) = (Host::open(), Host::open());
    let timing = Timing { remote_response: code(10), max_retries: 3, ..Timing::default() };
    let path = PathParams { packet_lifetime: code(8), ..PathParams::default() };
    let options = Options { timing, path: Some(path), ..Options::default() };
    match a.connect(b.addr(7), &options).unwrap_err() {
        Error::Unreachable { peer, message: Message::Req } => assert_eq!(peer, Some(b.addr(7))),
        other => panic!("{other}"),
    }
    assert_eq!(a.count("retried"), 3);
    a.is_idle();
}

/// IBA 12.6.7.2, reason 26.
#[test]
fn a_path_mtu_that_the_device_does_not_have_is_refused_before_it_is_asked_for() {
    let config = urxe::Config { mtu: Some(Mtu::B1024), ..crate::rig::patient() };
    let small = Host::on(urxe::Context::open(&config).unwrap());
    let large = Host::open();
    let path = PathParams { mtu: Mtu::B4096, ..soon().path.unwrap() };
    let options = Options { path: Some(path), ..soon() };
    let listener = small.listen();
    match large.connect(listener.local_addr(), &options).unwrap_err() {
        Error::Refused { reason: RejReason::InvalidMtu, .. } => {}
        other => panic!("{other}"),
    }
    let why = small.connect(large.addr(1), &options).unwrap_err().to_string();
    assert!(why.contains("mtu"), "{why}");
}

#[test]
fn addresses_that_cannot_be_are_named() {
    let a = Host::open();
    let why = a.connect("[::1]:7174".parse().unwrap(), &soon()).unwrap_err().to_string();
    assert!(why.contains("::1") && why.contains("same family"), "{why}");
    let foreign = "10.1.2.3:7174".parse().unwrap();
    let why = Listener::bind(&a.context, foreign).unwrap_err().to_string();
    assert!(why.contains("10.1.2.3") && why.contains(&a.context.address().to_string()), "{why}");
    let first = a.listen();
    let why = Listener::bind(&a.context, first.local_addr()).unwrap_err().to_string();
    assert!(why.contains(&format!("port {}", first.local_addr().port())), "{why}");
    drop(first);
    let any = Listener::bind(&a.context, "0.0.0.0:7174".parse().unwrap()).unwrap();
    assert_eq!(any.local_addr(), "0.0.0.0:7174".parse().unwrap());
}

/// What the backlog has no room for is dropped and counted; its senders ask again, and come.
#[test]
fn requests_beyond_the_backlog_wait_at_their_senders() {
    let (a, b) = (Host::open(), Host::open());
    let listener = Listener::with(&b.context, b.addr(0), urxe::cm::PortSpace::Tcp, 2).unwrap();
    thread::scope(|scope| {
        let near: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| a.connect(listener.local_addr(), &soon()).unwrap()))
            .collect();
        crate::rig::eventually("a full backlog", || {
            (b.count("drop_backlog_full") > 0).then_some(())
        });
        assert_eq!(b.context.cm_stats().backlog, 2);
        let far: Vec<_> = near
            .iter()
            .map(|_| {
                let incoming = listener.incoming_within(PATIENCE).unwrap().expect("a request");
                b.accept(incoming, &soon()).unwrap()
            })
            .collect();
        let near: Vec<_> = near.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!((near.len(), far.len()), (6, 6));
    });
}

/// A flood of requests costs no more than the backlog holds, and who is connected stays so.
#[test]
fn a_flood_of_requests_is_bounded() {
    let (a, b) = (Host::open(), Host::open());
    let (near, far) = connected(&a, &b, &soon());
    let listener = Listener::with(&b.context, b.addr(0), urxe::cm::PortSpace::Tcp, 4).unwrap();
    let channel = urxe::cm::Channel::new().unwrap();
    let ids: Vec<_> = (0..200u32)
        .map(|n| {
            use urxe::cm::{ConnParam, Id, PortSpace};
            let id = Id::new(&a.context, &channel, PortSpace::Tcp, QpKind::Rc).unwrap();
            id.resolve_addr(None, listener.local_addr()).unwrap();
            id.connect(&ConnParam::new(urxe::Qpn::new(0x10_0000 + n))).unwrap();
            id
        })
        .collect();
    crate::rig::eventually("the flood's end", || {
        (b.count("drop_backlog_full") >= 196).then_some(())
    });
    assert_eq!(b.context.cm_stats().backlog, 4);
    assert_eq!(b.context.cm_stats().connecting, 4);
    talk((&a, &near), (&b, &far));
    drop((ids, near, far, listener));
    a.is_idle();
    b.is_idle();
}
