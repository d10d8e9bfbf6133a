//! What a raw port does with its link: neighbours, gateways, groups, and the kernel beside it.

use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;

use socket2::{Domain, SockAddr, SockAddrStorage, Socket, Type};
use urxe_net::raw::{RawConfig, RawPort};
use urxe_net::udp::{UdpConfig, UdpPort};
use urxe_net::{IcrcMode, Port, PortError, RxBatch, TxBatch};
use urxe_wire::Verdict;

use crate::namespace::{Namespace, pair};
use crate::pairs::address;
use crate::traffic::{Listener, collect, flow, packet, send, wait};

fn raw(space: &Namespace, address: IpAddr) -> RawPort {
    space.run(move || RawPort::open(&RawConfig::new(address)).unwrap())
}

/// The listener that the other tests trust to see no ICMP does see some: where no port is open.
#[test]
fn a_closed_port_is_answered_with_an_error_and_a_raw_port_is_not() {
    let Some((a, b)) = pair() else { return };
    for v6 in [false, true] {
        let (listener, there) = (Listener::new(&a), address(v6, 2));
        let poke = move || {
            let any = if there.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
            let socket = UdpSocket::bind(any).unwrap();
            socket.connect((there, 4791)).unwrap();
            socket.send(&[0; 64]).unwrap();
            // The error arrives at the socket, too.
            wait(&[socket.as_fd()]).then(|| socket.take_error().unwrap()).flatten()
        };
        let refused = a.run(poke).expect("an error within five seconds");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(listener.icmp_errors(), 1);
        let port = raw(&b, there);
        a.run(move || {
            let any = if there.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
            UdpSocket::bind(any).unwrap().send_to(&[0; 64], (there, 4791)).unwrap();
        });
        assert!(wait(&[port.fd()]), "it is the raw port's");
        assert_eq!(port.recv(&mut RxBatch::new(1)).unwrap(), 1);
        assert_eq!(listener.icmp_errors(), 0);
    }
}

#[test]
fn a_taken_port_and_missing_rights_are_told_apart() {
    let Some((a, _b)) = pair() else { return };
    let here = address(false, 1);
    let _first = raw(&a, here);
    let again = a.run(move || RawPort::open(&RawConfig::new(here)).unwrap_err());
    assert!(matches!(again, PortError::Taken(x) if x == here), "{again}");
    let udp = a.run(move || UdpPort::open(&UdpConfig::new(here)).unwrap_err());
    assert!(matches!(udp, PortError::Taken(x) if x == here), "{udp}");
    let bare = a.run(|| {
        // Version 3 of the call, for this thread alone; no rights of any kind.
        let (header, none) = ([0x2008_0522_u32, 0], [0_u32; 6]);
        // SAFETY: both are as the call wants them, and live through it; the thread ends soon.
        let rc = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
        assert_eq!(rc, 0);
        RawPort::open(&RawConfig::new(address(true, 1))).unwrap_err()
    });
    assert!(matches!(&bare, PortError::NoRights(name) if name == "veth"), "{bare}");
    assert!(bare.to_string().contains("CAP_NET_RAW"), "{bare}");
}

#[test]
fn a_neighbour_that_does_not_answer_costs_its_packets_and_no_others() {
    let Some((a, b)) = pair() else { return };
    for v6 in [false, true] {
        let (here, there) = (address(v6, 1), address(v6, 2));
        let (tx, rx) = (raw(&a, here), raw(&b, there));
        send(&tx, flow(here, address(v6, 77)), &[64; 20]);
        send(&tx, flow(here, there), &[64; 3]);
        assert_eq!(collect(&tx, &rx, 3).len(), 3);
        // 16 wait, and are given up after four questions.
        let mut batch = RxBatch::new(1);
        while tx.next_deadline().is_some() {
            assert!(wait(&[tx.fd()]), "the timer wakes the port");
            tx.recv(&mut batch).unwrap();
        }
        assert_eq!(tx.stats().snapshot().tx_no_neighbour, 20);
    }
}

#[test]
fn what_is_off_the_link_goes_to_the_gateway_and_without_a_route_nowhere() {
    let Some((a, b)) = pair() else { return };
    b.ip("addr add 10.77.0.9/32 dev lo");
    b.ip("addr add fd77::9/128 dev lo nodad");
    a.ip("route add 10.77.0.0/16 via 10.9.0.2");
    a.ip("route add fd77::/64 via fd09::2");
    for (v6, far, nowhere) in [(false, "10.77.0.9", "10.78.0.1"), (true, "fd77::9", "fd78::1")] {
        let (here, far): (_, IpAddr) = (address(v6, 1), far.parse().unwrap());
        // The far address is on another interface there, but its packets come in at this one.
        let udp = b.run(move || UdpPort::open(&UdpConfig::new(far)).unwrap());
        let tx = raw(&a, here);
        send(&tx, flow(here, far), &[100; 4]);
        let got = collect(&tx, &udp, 4);
        assert!(got.iter().all(|(f, _, verdict)| f.src == here && verdict.is_ok()), "{got:?}");
        send(&tx, flow(here, nowhere.parse().unwrap()), &[100; 2]);
        let stats = tx.stats().snapshot();
        if v6 {
            assert_eq!(stats.tx_unreachable, 2, "{stats:?}");
        } else {
            // With an interface given, IPv4 takes what has no route to be on the link.
            assert_eq!(stats.tx_unreachable, 0, "{stats:?}");
            assert!(tx.next_deadline().is_some(), "asked for on the link");
        }
    }
}

#[test]
fn groups_are_joined_and_left() {
    let Some((a, b)) = pair() else { return };
    for (v6, group, other) in [(false, "239.9.1.1", "239.9.1.2"), (true, "ff0e::91", "ff0e::92")] {
        let (here, there) = (address(v6, 1), address(v6, 2));
        let (group, other): (IpAddr, IpAddr) = (group.parse().unwrap(), other.parse().unwrap());
        let (tx, rx) = (raw(&a, here), raw(&b, there));
        rx.join(group).unwrap();
        rx.join(group).unwrap();
        send(&tx, flow(here, other), &[8]);
        send(&tx, flow(here, group), &[16]);
        send(&tx, flow(here, there), &[24]);
        let got = collect(&tx, &rx, 2);
        assert_eq!(
            got.iter().map(|g| (g.0.dst, g.1.len())).collect::<Vec<_>>(),
            [(group, 28), (there, 36)]
        );
        assert_eq!(rx.stats().snapshot().rx_other_group, 1);
        rx.leave(group).unwrap();
        send(&tx, flow(here, group), &[16]);
        send(&tx, flow(here, there), &[24]);
        assert_eq!(collect(&tx, &rx, 1)[0].0.dst, there);
        assert!(matches!(rx.leave(group), Err(PortError::NotJoined(g)) if g == group));
        assert!(matches!(rx.join(there), Err(PortError::NotAGroup { .. })));
    }
}

#[test]
fn an_interface_that_is_down_loses_packets_and_one_that_is_gone_is_an_error() {
    let Some((a, b)) = pair() else { return };
    let (here, there) = (address(false, 1), address(false, 2));
    let (tx, rx) = (raw(&a, here), raw(&b, there));
    send(&tx, flow(here, there), &[64]);
    collect(&tx, &rx, 1);
    a.ip("link set veth down");
    send(&tx, flow(here, there), &[64; 2]);
    assert_eq!(tx.stats().snapshot().tx_unreachable, 2);
    tx.recv(&mut RxBatch::new(1)).unwrap();
    a.ip("link set veth up");
    send(&tx, flow(here, there), &[64]);
    collect(&tx, &rx, 1);
    a.ip("link del veth");
    assert!(wait(&[tx.fd()]), "the driver is woken");
    for _ in 0..2 {
        let gone = tx.recv(&mut RxBatch::new(1)).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        assert_eq!(
            gone.to_string(),
            "interface veth is gone: bring it back and open the port anew"
        );
    }
    let mut batch = TxBatch::new(1, 4200);
    batch.push(flow(here, there), &packet(0, 8), |_| (), 0);
    assert_eq!(tx.send(&mut batch).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn loopback_carries_raw_ports_and_what_a_host_sends_to_itself() {
    let Some((a, _b)) = pair() else { return };
    let (first, second) = ("127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap());
    let (tx, rx) = (raw(&a, first), raw(&a, second));
    send(&tx, flow(first, second), &[1024, 8]);
    assert!(collect(&tx, &rx, 2).iter().all(|g| g.2 == Verdict::Ok));
    // A port on the link, to itself.
    for v6 in [false, true] {
        let here = address(v6, 1);
        let port = raw(&a, here);
        send(&port, flow(here, here), &[512, 4]);
        let got = collect(&tx, &port, 2);
        assert!(got.iter().all(|g| g.2 == Verdict::Ok && g.0.dst == here), "{got:?}");
    }
}

#[test]
fn what_a_full_buffer_loses_is_counted() {
    let Some((a, b)) = pair() else { return };
    let (here, there) = (address(false, 1), address(false, 2));
    let tx = raw(&a, here);
    let config = RawConfig { buffer: 16 << 10, ..RawConfig::new(there) };
    let rx = b.run(move || RawPort::open(&config).unwrap());
    send(&tx, flow(here, there), &[0]);
    collect(&tx, &rx, 1);
    send(&tx, flow(here, there), &[4096; 200]);
    let (mut batch, mut came) = (RxBatch::new(8), 0);
    while wait_for(&rx, &mut batch, &mut came) {}
    // The counter is read every ten milliseconds at most.
    let unread = |_: &u32| rx.stats().snapshot().rx_overrun == 0;
    (0..10_000_000).take_while(unread).for_each(|_| {
        rx.recv(&mut batch).unwrap();
    });
    assert_eq!(came + rx.stats().snapshot().rx_overrun, 200);
}

/// Announcements of a thousand neighbours: one call reads some of them, and the rest wake the next.
#[test]
fn a_flood_of_announcements_is_heard_a_little_at_a_time() {
    let Some((a, b)) = pair() else { return };
    let (here, there) = (address(false, 1), address(false, 2));
    let (tx, rx) = (raw(&a, here), raw(&b, there));
    send(&tx, flow(here, there), &[0]);
    collect(&tx, &rx, 1);
    let mut batch = RxBatch::new(4);
    while wait_now(&rx) {
        rx.recv(&mut batch).unwrap();
    }
    announce(&a, 1000);
    assert!(wait(&[rx.fd()]));
    // The hearer's buffer holds some 150 of them; a call hears 64.
    rx.recv(&mut batch).unwrap();
    assert!(wait_now(&rx), "all were heard in one call");
    let mut calls = 1;
    while wait_now(&rx) {
        rx.recv(&mut batch).unwrap();
        calls += 1;
    }
    assert!(calls < 1000, "{calls}");
    send(&tx, flow(here, there), &[64]);
    assert_eq!(collect(&tx, &rx, 1).len(), 1, "and the port goes on");
}

/// What comes over the loopback interface comes though the link brings more than calls can take.
#[test]
fn a_flood_on_the_link_does_not_starve_loopback() {
    let Some((a, b)) = pair() else { return };
    let (here, there) = (address(false, 1), address(false, 2));
    let (tx, rx) = (raw(&a, here), raw(&b, there));
    send(&tx, flow(here, there), &[0]);
    collect(&tx, &rx, 1);
    send(&tx, flow(here, there), &[64; 100]);
    send(&rx, flow(there, there), &[64]);
    let mut batch = RxBatch::new(4);
    let mut sources = Vec::new();
    for _ in 0..2 {
        assert_eq!(rx.recv(&mut batch).unwrap(), 4);
        batch.for_each(IcrcMode::Strict, rx.stats(), |p| sources.push(p.flow.src));
    }
    assert!(sources.contains(&here) && sources.contains(&there), "{sources:?}");
}

/// Sends gratuitous ARP of so many neighbours from a namespace.
fn announce(space: &Namespace, count: u32) {
    space.run(move || {
        let domain = Domain::from(libc::AF_PACKET);
        let socket = Socket::new(domain, Type::RAW, None).unwrap();
        let index = std::fs::read_to_string("/proc/thread-self/net/dev_mcast").unwrap();
        let index = index.lines().find(|line| line.contains(" veth ")).unwrap();
        let index: i32 = index.split_whitespace().next().unwrap().parse().unwrap();
        for n in 0..count {
            let [_, _, high, low] = n.to_be_bytes();
            let (mac, ip) = ([2, 0, 0, 1, high, low], [10, 9, high + 1, low]);
            let mut frame = [[0xff; 6], mac].concat();
            frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
            frame.extend([&mac[..], &ip, &[0; 6], &ip].concat());
            socket.send_to(&frame, &link(index)).unwrap();
        }
    });
}

/// An interface as an address.
fn link(index: i32) -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: it is one of the types that the storage may be seen as.
    let link = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    link.sll_family = u16::try_from(libc::AF_PACKET).unwrap();
    link.sll_ifindex = index;
    let len = u32::try_from(size_of::<libc::sockaddr_ll>()).unwrap();
    // SAFETY: an address of this family and length was written.
    unsafe { SockAddr::new(storage, len) }
}

/// Whether a port says that it has something, without waiting.
fn wait_now(port: &RawPort) -> bool {
    crate::traffic::wait_for(&[port.fd()], 0)
}

/// Receives once; false if nothing was there.
fn wait_for(port: &RawPort, batch: &mut RxBatch, came: &mut u64) -> bool {
    let n = port.recv(batch).unwrap();
    *came += n as u64;
    n != 0
}
