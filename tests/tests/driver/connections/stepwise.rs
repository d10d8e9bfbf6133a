//! Each step its own, as a C library takes them.

use std::time::Duration;

use urxe::cm::{
    Channel, Closed, ConnInfo, ConnParam, How, Id, PathParams, PortSpace, RejReason, State, Timing,
    What,
};
use urxe::{Error, Qp, QpKind, QpState, SendOp};

use super::{Host, code};
use crate::rig::PATIENCE;

fn next(channel: &Channel) -> What {
    channel.wait_event(Some(PATIENCE)).unwrap().expect("an event").what
}

fn nothing(channel: &Channel) {
    assert!(channel.take_event().is_none());
}

struct End {
    host: Host,
    channel: Channel,
}

impl End {
    fn new() -> Self {
        Self { host: Host::open(), channel: Channel::new().unwrap() }
    }

    fn id(&self) -> Id {
        let id = Id::new(&self.host.context, &self.channel, PortSpace::Tcp, QpKind::Rc).unwrap();
        id.set_timing(Timing {
            remote_response: code(15),
            local_response: code(15),
            max_retries: 15,
        })
        .unwrap();
        id.set_path(PathParams { packet_lifetime: code(13), ..PathParams::default() }).unwrap();
        id
    }

    fn listening(&self) -> Id {
        let id = self.id();
        id.listen(16).unwrap();
        id
    }

    /// An id that has asked with a QP.
    fn asking(&self, to: &Id, qp: &Qp) -> Id {
        let id = self.id();
        id.resolve_addr(None, to.local_addr().unwrap()).unwrap();
        id.resolve_route().unwrap();
        assert!(matches!(next(&self.channel), What::AddrResolved));
        assert!(matches!(next(&self.channel), What::RouteResolved));
        id.connect(&ConnParam::new(qp.qpn())).unwrap();
        id
    }

    fn request(&self) -> (Id, Box<ConnInfo>) {
        match next(&self.channel) {
            What::ConnectRequest(id, info) => (id, info),
            other => panic!("{other:?}"),
        }
    }

    fn response(&self) -> Box<ConnInfo> {
        match next(&self.channel) {
            What::ConnectResponse(info) => info,
            other => panic!("{other:?}"),
        }
    }
}

/// Sets a QP as `ibv_modify_qp` would.
fn up(qp: &Qp, id: &Id, states: &[QpState]) {
    for &state in states {
        let (attr, mask) = id.qp_attr(state).unwrap();
        qp.modify(&attr, mask).unwrap();
    }
}

const ALL: [QpState; 3] = [QpState::Init, QpState::Rtr, QpState::Rts];

/// Both ends, each with its QP in RTS; the passive one has accepted.
fn accepted(a: &End, b: &End, passive: &[QpState]) -> (Id, Qp, Id, Qp) {
    let listener = b.listening();
    let qp_a = a.host.pd.qp(QpKind::Rc).cq(&a.host.cq).build().unwrap();
    let qp_b = b.host.pd.qp(QpKind::Rc).cq(&b.host.cq).build().unwrap();
    let near = a.asking(&listener, &qp_a);
    let (far, info) = b.request();
    assert_eq!(info.qpn, qp_a.qpn());
    up(&qp_b, &far, passive);
    far.accept(&ConnParam::new(qp_b.qpn())).unwrap();
    assert_eq!(a.response().qpn, qp_b.qpn());
    up(&qp_a, &near, &ALL);
    (near, qp_a, far, qp_b)
}

/// What shows that the peer has it is as good as its RTU (IBA 11.6.3.1).
#[test]
fn the_first_data_stands_for_a_lost_rtu() {
    let (a, b) = (End::new(), End::new());
    let (near, qp_a, far, qp_b) = accepted(&a, &b, &[QpState::Init, QpState::Rtr]);
    qp_b.post_recv(4, &[b.host.mr.sge(0..64)]).unwrap();
    // No RTU is sent.
    qp_a.post_send(1, SendOp::Send { imm: None }, &[a.host.mr.sge(0..8)]).unwrap();
    match next(&b.channel) {
        What::Established { how: How::Data, .. } => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(far.state(), Some(State::Established));
    up(&qp_b, &far, &[QpState::Rts]);
    near.establish(&[]).unwrap();
}

/// In RTS a QP tells of no first packet: the program does.
#[test]
fn a_program_says_that_data_has_come() {
    let (a, b) = (End::new(), End::new());
    let (near, _qp_a, far, _qp_b) = accepted(&a, &b, &ALL);
    assert!(far.notify_established().unwrap());
    assert!(!far.notify_established().unwrap());
    assert!(matches!(next(&b.channel), What::Established { how: How::Data, .. }));
    near.establish(&[]).unwrap();
}

#[test]
fn every_event_of_a_life_comes_once_and_in_order() {
    let (a, b) = (End::new(), End::new());
    let (near, qp_a, far, qp_b) = accepted(&a, &b, &ALL);
    near.establish(b"rtu").unwrap();
    match next(&b.channel) {
        What::Established { private_data, .. } => {
            // If the data came in the RTU; the peer may have seen a packet first.
            assert!(private_data.starts_with(b"rtu") || private_data == [0; 224]);
        }
        other => panic!("{other:?}"),
    }
    qp_a.fail().unwrap();
    near.disconnect(b"bye").unwrap();
    match next(&b.channel) {
        What::DisconnectRequest { private_data } => assert!(private_data.starts_with(b"bye")),
        other => panic!("{other:?}"),
    }
    // It has not agreed yet.
    nothing(&a.channel);
    qp_b.fail().unwrap();
    far.disconnect(&[]).unwrap();
    assert!(matches!(next(&a.channel), What::Disconnected(Closed::Agreed)));
    assert!(matches!(next(&a.channel), What::TimewaitExit));
    assert!(matches!(next(&b.channel), What::TimewaitExit));
    nothing(&a.channel);
    nothing(&b.channel);
    assert_eq!((near.state(), far.state()), (None, None));
    let again = near.disconnect(&[]).unwrap_err().to_string();
    assert!(again.contains("established"), "{again}");
}

#[test]
fn an_acceptance_is_refused_by_who_asked() {
    let (a, b) = (End::new(), End::new());
    let (near, _qp_a, far, _qp_b) = accepted(&a, &b, &[QpState::Init, QpState::Rtr]);
    near.reject(RejReason::ConsumerDefined, b"no more").unwrap();
    match next(&b.channel) {
        What::Rejected { reason: RejReason::ConsumerDefined, private_data, timewait, .. } => {
            assert!(private_data.starts_with(b"no more") && timewait);
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(next(&b.channel), What::TimewaitExit));
    assert_eq!(far.state(), None);
}

#[test]
fn an_id_moves_to_another_channel_with_its_events() {
    let (a, b) = (End::new(), End::new());
    let (near, _qp_a, far, _qp_b) = accepted(&a, &b, &ALL);
    let other = Channel::new().unwrap();
    far.tell(7).unwrap();
    far.migrate(&other).unwrap();
    nothing(&b.channel);
    assert!(matches!(next(&other), What::Told(7)));
    near.establish(&[]).unwrap();
    assert!(matches!(next(&other), What::Established { .. }));
    nothing(&b.channel);
    // Many on one.
    near.migrate(&other).unwrap();
    near.disconnect(&[]).unwrap();
    let event = other.wait_event(Some(PATIENCE)).unwrap().unwrap();
    assert_eq!(event.id, far.number());
    far.disconnect(&[]).unwrap();
    let event = other.wait_event(Some(PATIENCE)).unwrap().unwrap();
    assert_eq!(event.id, near.number());
}

#[test]
fn a_program_that_needs_time_says_so() {
    let (a, b) = (End::new(), End::new());
    let listener = b.listening();
    let qp = a.host.qp(QpKind::Rc);
    let near = a.asking(&listener, &qp);
    let (far, _) = b.request();
    far.mra(code(20), b"a moment").unwrap();
    crate::rig::eventually("its MRA", || (a.host.count("told_to_wait") == 1).then_some(()));
    assert_eq!(near.state(), Some(State::ReqSent));
    far.reject(RejReason::ConsumerDefined, &[]).unwrap();
    assert!(matches!(next(&a.channel), What::Rejected { .. }));
}

#[test]
fn calls_out_of_order_say_what_they_need() {
    let a = End::new();
    let id = a.id();
    let param = ConnParam::new(urxe::Qpn::new(17));
    let calls: [(&str, Result<(), Error>); 7] = [
        ("resolve_route", id.resolve_route()),
        ("connect", id.connect(&param)),
        ("accept", id.accept(&param)),
        ("establish", id.establish(&[])),
        ("reject", id.reject(RejReason::ConsumerDefined, &[])),
        ("mra", id.mra(code(20), &[])),
        ("disconnect", id.disconnect(&[])),
    ];
    for (call, result) in calls {
        let why = result.unwrap_err().to_string();
        assert!(why.starts_with(&format!("{call} needs ")), "{why}");
    }
    assert!(id.qp_attr(QpState::Init).is_ok());
    assert!(id.qp_attr(QpState::Rtr).is_err());
    assert!(id.qp_attr(QpState::Err).is_err());
    id.listen(1).unwrap();
    assert!(id.listen(1).unwrap_err().to_string().starts_with("listen needs "));
    assert!(id.bind(a.host.addr(1)).unwrap_err().to_string().starts_with("bind needs "));
}

/// A channel that is gone takes no requests: their peers are refused.
#[test]
fn requests_to_a_channel_that_is_gone_are_refused() {
    let (a, b) = (End::new(), End::new());
    let listener = b.listening();
    let End { host, channel } = b;
    drop(channel);
    let qp = a.host.qp(QpKind::Rc);
    let _near = a.asking(&listener, &qp);
    assert!(matches!(next(&a.channel), What::Rejected { .. }));
    assert_eq!(a.channel.wait_event(Some(Duration::ZERO)).unwrap().map(|e| e.id), None);
    drop(listener);
    host.is_idle();
}
