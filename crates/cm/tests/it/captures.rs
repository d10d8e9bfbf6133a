//! The exchanges of two kernels (`tests/captures`), with one of them replaced by us: we send the
//! messages that it sent, field by field.

use std::net::SocketAddr;
use std::time::Duration;

use urxe_cm::{Accept, Cm, Config, Connect, Event, Listen, Mad, Route, SidrAnswer, SidrAsk};
use urxe_wire::cm::{CmMessage, CommId, PortSpace};
use urxe_wire::{MAD_LEN, MadHeader, Psn, Qpn};

use crate::world::parse;

const RPING: &[u8] = include_bytes!("../../../../tests/captures/rping.pcap");
const UDADDY: &[u8] = include_bytes!("../../../../tests/captures/udaddy.pcap");

const PASSIVE: &str = "10.77.0.11:7174";

/// The MADs of a capture: pcap file header 24, record header 16, Ethernet 14, IPv4 20, UDP 8,
/// BTH 12 (the destination QP is its bytes 5 to 7), DETH 8, MAD 256, ICRC 4.
fn mads(pcap: &[u8]) -> Vec<Mad> {
    let mut found = vec![];
    let mut rest = &pcap[24..];
    while let Some((record, after)) = rest.split_at_checked(16) {
        let len = u32::from_le_bytes(record[8..12].try_into().unwrap()) as usize;
        let (frame, after) = after.split_at(len);
        rest = after;
        if frame[42] == 0x64 && frame[47..50] == [0, 0, 1] {
            found.push(frame[62..62 + MAD_LEN].try_into().unwrap());
        }
    }
    found
}

/// One end, and what it has sent.
struct End {
    cm: Cm,
    route: Route,
    sent: Vec<Mad>,
}

impl End {
    fn new(ca_guid: u64, local: &str, remote: &str) -> Self {
        let route = Route::new(local.parse().unwrap(), remote.parse().unwrap());
        Self { cm: Cm::new(Config::new(ca_guid, 3)), route, sent: vec![] }
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut Cm, &mut dyn urxe_cm::Sink) -> T) -> T {
        let sent = &mut self.sent;
        call(&mut self.cm, &mut |route: &Route, mad: &Mad| {
            assert_eq!(*route, self.route);
            sent.push(*mad);
        })
    }

    fn receive(&mut self, (header, message): &(MadHeader, CmMessage)) {
        let mut mad = [0; MAD_LEN];
        message.emit(header, &mut mad).unwrap();
        let route = self.route;
        self.call(|cm, out| cm.receive(Duration::ZERO, &route, &mad, out));
    }

    /// What was sent, the only one since the last call.
    fn sent(&mut self) -> (MadHeader, CmMessage) {
        assert_eq!(self.sent.len(), 1);
        parse(&self.sent.pop().unwrap())
    }
}

/// Names another id in place of the kernel's.
fn with_ids(
    (header, message): &(MadHeader, CmMessage),
    ids: [CommId; 2],
) -> (MadHeader, CmMessage) {
    let [local, remote] = ids;
    let mut message = *message;
    match &mut message {
        CmMessage::Req(m) => m.local_comm_id = local,
        CmMessage::Rep(m) => (m.local_comm_id, m.remote_comm_id) = (local, remote),
        CmMessage::Rtu(m) => (m.local_comm_id, m.remote_comm_id) = (local, remote),
        CmMessage::Dreq(m) => (m.local_comm_id, m.remote_comm_id) = (local, remote),
        CmMessage::Drep(m) => (m.local_comm_id, m.remote_comm_id) = (local, remote),
        CmMessage::SidrReq(m) => m.request_id = local,
        CmMessage::SidrRep(m) => m.request_id = remote,
        other => panic!("{other:?}"),
    }
    (*header, message)
}

/// All of a MAD but its transaction id, which each side chooses as it likes.
fn same(ours: (MadHeader, CmMessage), theirs: (MadHeader, CmMessage)) {
    assert_eq!(ours.1, theirs.1);
    let transaction_id = theirs.0.transaction_id;
    assert_eq!(MadHeader { transaction_id, ..ours.0 }, theirs.0);
}

#[test]
fn our_active_side_sends_what_rping_sent() {
    let mads = mads(RPING);
    let [req, rep, rtu, dreq, drep] = mads.iter().map(parse).collect::<Vec<_>>()[..] else {
        panic!()
    };
    let (CmMessage::Req(kernel), CmMessage::Rep(kernel_rep)) = (&req.1, &rep.1) else { panic!() };
    let mut us = End::new(kernel.local_ca_guid, "10.77.0.12", "10.77.0.11");
    let source = SocketAddr::new(us.route.local, 57374);
    let (qpn, psn) = (kernel.local_qpn, kernel.starting_psn);
    let to = PASSIVE.parse().unwrap();
    let want = Connect::ip(PortSpace::Tcp, source, to, qpn, psn).unwrap();
    let id = us.call(|cm, out| cm.connect(Duration::ZERO, &want, out)).unwrap();
    let peer = kernel_rep.local_comm_id;
    same(us.sent(), with_ids(&req, [id, CommId(0)]));

    us.receive(&with_ids(&rep, [peer, id]));
    assert!(matches!(us.cm.poll_event(), Some(Event::ConnectResponse(_))));
    let attrs = us.cm.qp_attrs(id).unwrap();
    // The first packet that the kernel sent to the other had this PSN.
    assert_eq!((attrs.rtr.dest_qpn, attrs.rts.sq_psn), (Qpn::new(0x14), Psn::new(5_571_470)));
    assert_eq!(attrs.rts.timeout.code(), 17);
    us.call(|cm, out| cm.establish(id, b"", out)).unwrap();
    same(us.sent(), with_ids(&rtu, [id, peer]));

    us.call(|cm, out| cm.disconnect(Duration::ZERO, id, b"", out)).unwrap();
    same(us.sent(), with_ids(&dreq, [id, peer]));
    us.receive(&with_ids(&drep, [peer, id]));
    assert!(matches!(us.cm.poll_event(), Some(Event::Disconnected { .. })));
}

#[test]
fn our_passive_side_answers_rping_as_the_kernel_did() {
    let mads = mads(RPING);
    let [req, rep, rtu, dreq, drep] = mads.iter().map(parse).collect::<Vec<_>>()[..] else {
        panic!()
    };
    let (CmMessage::Req(active), CmMessage::Rep(kernel)) = (&req.1, &rep.1) else { panic!() };
    let peer = active.local_comm_id;
    let mut us = End::new(kernel.local_ca_guid, "10.77.0.11", "10.77.0.12");
    us.cm.listen(&Listen::port(PortSpace::Tcp, 7174, 1)).unwrap();
    us.receive(&req);
    let Some(Event::ConnectRequest(request)) = us.cm.poll_event() else { panic!() };
    assert_eq!(request.ip.unwrap().source(), "10.77.0.12:57374".parse().unwrap());
    let id = request.id;
    let with: Accept<'_> = request.accept(kernel.local_qpn, kernel.starting_psn);
    let attrs = us.cm.attrs_for(id, &with).unwrap();
    assert_eq!(attrs.rts.sq_psn, Psn::new(3_456_209));
    us.call(|cm, out| cm.accept(Duration::ZERO, id, &with, out)).unwrap();
    let sent = us.sent();
    assert_eq!(sent.0, rep.0, "the transaction id, too");
    same(sent, with_ids(&rep, [id, peer]));

    us.receive(&with_ids(&rtu, [peer, id]));
    assert!(matches!(us.cm.poll_event(), Some(Event::Established { .. })));
    us.receive(&with_ids(&dreq, [peer, id]));
    assert!(matches!(us.cm.poll_event(), Some(Event::DisconnectRequest { .. })));
    us.call(|cm, out| cm.disconnect(Duration::ZERO, id, b"", out)).unwrap();
    let sent = us.sent();
    assert_eq!(sent.0, drep.0);
    same(sent, with_ids(&drep, [id, peer]));
}

#[test]
fn our_sides_ask_and_answer_as_udaddy_did() {
    let mads = mads(UDADDY);
    let [req, rep] = mads.iter().map(parse).collect::<Vec<_>>()[..] else { panic!() };
    let mut active = End::new(1, "10.77.0.12", "10.77.0.11");
    let source = SocketAddr::new(active.route.local, 33753);
    let ask = SidrAsk::ip(PortSpace::Udp, source, PASSIVE.parse().unwrap()).unwrap();
    let id = active.call(|cm, out| cm.sidr_ask(Duration::ZERO, &ask, out)).unwrap();
    same(active.sent(), with_ids(&req, [id, id]));
    active.receive(&with_ids(&rep, [id, id]));
    let Some(Event::SidrResponse(response)) = active.cm.poll_event() else { panic!() };
    assert_eq!(response.qpn, Qpn::new(0x20));

    let mut passive = End::new(2, "10.77.0.11", "10.77.0.12");
    passive.cm.listen(&Listen::port(PortSpace::Udp, 7174, 1)).unwrap();
    passive.receive(&req);
    let Some(Event::SidrRequest(request)) = passive.cm.poll_event() else { panic!() };
    let answer = SidrAnswer::qp(Qpn::new(0x20));
    let sidr_answer = |cm: &mut Cm, out: &mut dyn urxe_cm::Sink| {
        cm.sidr_answer(Duration::ZERO, request.id, &answer, out)
    };
    passive.call(sidr_answer).unwrap();
    let sent = passive.sent();
    assert_eq!(sent, rep, "byte for byte, but for what answers never choose");
}
