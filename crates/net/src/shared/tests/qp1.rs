//! MADs, which all come to QP1, reach the process that they are for.

use urxe_wire::cm::{CmMessage, CommId, Rep, Req, ServiceId, SidrRep, SidrReq};
use urxe_wire::{Deth, MAD_LEN, QKey};

use super::*;

/// The upper bits of the ids that a port gives.
fn id(port: &UdpPort, n: u32) -> CommId {
    CommId(u32::from(slot(port)) << 26 | n)
}

fn send_mad(from: &UdpPort, dst: IpAddr, message: &CmMessage, transaction: u64) {
    let mut mad = [0; MAD_LEN];
    message.emit(&message.header(transaction), &mut mad).unwrap();
    send_datagram(from, dst, &mad);
}

fn send_datagram(from: &UdpPort, dst: IpAddr, payload: &[u8]) {
    let src = from.caps().address;
    let flow = Flow { src, dst, src_port: 0xc001, traffic_class: 2, hop_limit: 9, flow_label: 0 };
    let mut header = [0; 20];
    Bth::new(Opcode(0x64), Qpn::GSI, Psn::new(1)).emit(&mut header).unwrap();
    let deth = Deth { qkey: QKey::GSI, reserved: 0, src_qp: Qpn::GSI };
    deth.emit(&mut header[12..]).unwrap();
    let mut batch = TxBatch::new(1, 4200);
    batch.push(flow, &header, |out| out.extend_from_slice(payload), 0);
    from.send(&mut batch).unwrap();
}

/// The next CM message, which must come from `from`.
fn mad(port: &UdpPort, from: IpAddr) -> CmMessage {
    let mut rx = RxBatch::new(4);
    let mut found = None;
    eventually("a MAD", || {
        port.recv(&mut rx).unwrap();
        rx.for_each(IcrcMode::Solve, port.stats(), |p| {
            assert!(p.verdict.is_ok());
            assert_eq!((p.flow.src, p.flow.dst), (from, port.caps().address));
            assert_eq!((p.flow.traffic_class, p.flow.hop_limit), (2, 9));
            assert!(found.is_none(), "one at a time");
            found = Some(CmMessage::parse(&p.bytes[20..20 + MAD_LEN]).unwrap().1);
        });
        found
    })
}

fn req(service: ServiceId, local: CommId) -> CmMessage {
    CmMessage::Req(Req { service_id: service, local_comm_id: local, ..Req::default() })
}

/// Each of these gets nothing, as a packet that comes behind it shows.
fn get_nothing(ports: &[&UdpPort], peer: &UdpPort) {
    for port in ports {
        send(peer, port.caps().address, qpn(slot(port)), &[64]);
        assert_eq!(collect(port, 1), [(qpn(slot(port)).value(), 0)]);
    }
}

#[test]
fn an_exchange_is_whose_the_service_is() {
    let (here, there) = (address(40), address(41));
    let [a, b, c] = [shared(here), shared(here), shared(here)];
    let peer = UdpPort::open(&UdpConfig::new(there)).unwrap();
    let (one, two) = (ServiceId::tcp(7174), ServiceId::udp(7174));
    a.serve(one.0, true).unwrap();
    b.serve(two.0, true).unwrap();
    let error = c.serve(one.0, true).unwrap_err();
    assert!(matches!(error, PortError::ServiceTaken { .. }), "{error}");
    a.serve(one.0, true).unwrap();
    send_mad(&peer, here, &req(one, CommId(5)), 1);
    assert_eq!(mad(&a, there), req(one, CommId(5)));
    let sidr = SidrReq { service_id: two, request_id: CommId(6), ..SidrReq::default() };
    send_mad(&peer, here, &CmMessage::SidrReq(sidr), 2);
    assert_eq!(mad(&b, there), CmMessage::SidrReq(sidr));
    // From one of the processes to another, and the answer.
    send_mad(&c, here, &req(one, id(&c, 3)), 3);
    assert_eq!(mad(&a, here), req(one, id(&c, 3)));
    let rep = CmMessage::Rep(Rep {
        remote_comm_id: id(&c, 3),
        local_comm_id: id(&a, 1),
        ..Rep::default()
    });
    send_mad(&a, here, &rep, 3);
    assert_eq!(mad(&c, here), rep);
    // To one that serves nothing: its ids are its own.
    let rep = CmMessage::SidrRep(SidrRep { request_id: id(&c, 9), ..SidrRep::default() });
    send_mad(&peer, here, &rep, 4);
    assert_eq!(mad(&c, there), rep);
    get_nothing(&[&a, &b, &c], &peer);
    assert_eq!(who_shares(here).unwrap().unwrap().unrouted, 0);
}

/// A MAD that came before the broker's answer lies in no socket: the port says that it is there.
#[test]
fn a_mad_that_comes_while_a_service_is_asked_for_wakes_whoever_waits() {
    let (here, there) = (address(48), address(49));
    let a = shared(here);
    let peer = UdpPort::open(&UdpConfig::new(there)).unwrap();
    let (one, two) = (ServiceId::tcp(1), ServiceId::tcp(2));
    a.serve(one.0, true).unwrap();
    send_mad(&peer, here, &req(one, CommId(5)), 1);
    assert!(sys::wait_readable(a.fd(), 60_000).unwrap(), "the broker has handed it on");
    a.serve(two.0, true).unwrap();
    assert!(!sys::wait_readable(a.fd(), 0).unwrap());
    assert_eq!(a.next_deadline(), Some(Duration::ZERO));
    assert_eq!(mad(&a, there), req(one, CommId(5)));
    assert_eq!(a.next_deadline(), None);
}

#[test]
fn an_opening_that_comes_again_goes_where_it_went() {
    let (here, there) = (address(42), address(43));
    let [a, b] = [shared(here), shared(here)];
    let peer = UdpPort::open(&UdpConfig::new(there)).unwrap();
    let service = ServiceId::tcp(1);
    a.serve(service.0, true).unwrap();
    send_mad(&peer, here, &req(service, CommId(5)), 1);
    mad(&a, there);
    a.serve(service.0, false).unwrap();
    b.serve(service.0, true).unwrap();
    send_mad(&peer, here, &req(service, CommId(5)), 1);
    mad(&a, there);
    // With another transaction id it is another one.
    send_mad(&peer, here, &req(service, CommId(5)), 2);
    mad(&b, there);
    get_nothing(&[&a, &b], &peer);
}

#[test]
fn what_is_for_nobody_is_counted_and_what_nobody_serves_is_for_one_to_reject() {
    let (here, there) = (address(44), address(45));
    let [a, b] = [shared(here), shared(here)];
    let peer = UdpPort::open(&UdpConfig::new(there)).unwrap();
    let unknown = req(ServiceId::tcp(2), CommId(5));
    send_mad(&peer, here, &unknown, 1);
    send_datagram(&peer, here, &[0; MAD_LEN]);
    send_datagram(&peer, here, &[0; 12]);
    send_datagram(&peer, here, &[0; 2000]);
    let nobody = CmMessage::Rep(Rep { remote_comm_id: CommId(u32::MAX), ..Rep::default() });
    send_mad(&peer, here, &nobody, 1);
    // A QPN of slot 0, and no packet at all.
    send(&peer, here, Qpn::new(17), &[64]);
    let plain = UdpSocket::bind((there, 0)).unwrap();
    plain.send_to(&[], (here, ROCE_UDP_PORT)).unwrap();
    plain.send_to(&[0xff; 3], (here, ROCE_UDP_PORT)).unwrap();
    eventually("eight for nobody", || {
        (who_shares(here).unwrap().unwrap().unrouted == 8).then_some(())
    });
    b.serve(ServiceId::tcp(3).0, true).unwrap();
    send_mad(&peer, here, &unknown, 2);
    assert_eq!(mad(&b, there), unknown);
    // Who goes takes the services along.
    drop(b);
    a.serve(ServiceId::tcp(3).0, true).unwrap();
    get_nothing(&[&a], &peer);
}

#[test]
fn a_broker_that_comes_after_one_that_was_killed_knows_the_services() {
    let (here, there) = (address(46), address(47));
    let [a, b] = [shared(here), shared(here)];
    let peer = UdpPort::open(&UdpConfig::new(there)).unwrap();
    let [one, two] = [ServiceId::tcp(1), ServiceId::tcp(2)];
    a.serve(one.0, true).unwrap();
    b.serve(two.0, true).unwrap();
    let before = who_shares(here).unwrap().unwrap().broker;
    kill(before);
    eventually("a broker that knows all", || {
        attend(&[&a, &b]);
        let now = who_shares(here).unwrap().filter(|s| s.broker != before)?;
        (now.holders.len() == 2).then_some(())
    });
    for (port, service) in [(&b, two), (&a, one)] {
        send_mad(&peer, here, &req(service, CommId(5)), 1);
        assert_eq!(mad(port, there), req(service, CommId(5)));
    }
}
