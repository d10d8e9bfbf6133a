use std::net::Ipv4Addr;

use urxe_wire::{Bth, Opcode, Psn, Qpn, Repr, Verdict};

use super::*;
use crate::{Flow, IcrcMode};

/// Addresses of tests, so that runs beside each other do not meet.
fn loopback(last: u8) -> IpAddr {
    let [a, b, ..] = std::process::id().to_be_bytes();
    let [.., c, d] = std::process::id().to_be_bytes();
    let _ = (a, b);
    IpAddr::V4(Ipv4Addr::new(127, c.clamp(1, 254), d.clamp(1, 254), last))
}

fn flow(src: IpAddr, dst: IpAddr) -> Flow {
    Flow { src, dst, src_port: 0xc001, traffic_class: 2, hop_limit: 9, flow_label: 0 }
}

fn push(batch: &mut TxBatch, flow: Flow, psn: u32, len: usize) {
    let mut header = [0; 12];
    let bth = Bth::new(Opcode(0x04), Qpn::new(2), Psn::new(psn));
    bth.emit(&mut header).unwrap();
    batch.push(flow, &header, |out| out.resize(out.len() + len, 0x5a), 0);
}

/// Whether this host has IPv6 at all: ::1 on its loopback interface, as the kernel lists it.
fn has_ipv6() -> bool {
    let listed = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let loopback = format!("{:032x} ", 1);
    let has = listed.lines().any(|line| line.starts_with(&loopback));
    if !has {
        eprintln!("skipped: this host has no IPv6");
    }
    has
}

/// All packets that come until `n` have: PSN, length, verdict.
fn collect(port: &UdpPort, n: usize, mode: IcrcMode) -> Vec<(u32, usize, Verdict, Flow)> {
    let mut rx = RxBatch::new(4);
    let mut all = Vec::new();
    while all.len() < n {
        sys::wait_readable(port.fd(), 5000).unwrap();
        assert_ne!(port.recv(&mut rx).unwrap(), 0, "{} of {n} came", all.len());
        rx.for_each(mode, port.stats(), |p| {
            let (bth, _) = Bth::parse(p.bytes).unwrap();
            all.push((bth.psn.value(), p.bytes.len(), p.verdict, p.flow));
        });
    }
    all
}

#[test]
fn runs_and_single_packets_arrive_in_order_with_a_right_icrc() {
    let (a, b) = (loopback(1), loopback(2));
    let tx = UdpPort::open(&UdpConfig::new(a)).unwrap();
    let rx = UdpPort::open(&UdpConfig::new(b)).unwrap();
    let mut batch = TxBatch::new(64, 4200);
    let sizes = [1024, 1024, 1024, 1024, 100, 1024, 64, 64, 64];
    for (psn, &len) in sizes.iter().enumerate() {
        push(&mut batch, flow(a, b), u32::try_from(psn).unwrap(), len);
    }
    tx.send(&mut batch).unwrap();
    assert!(batch.is_empty());
    let got = collect(&rx, sizes.len(), IcrcMode::Solve);
    for (psn, (got, len)) in got.iter().zip(sizes).enumerate() {
        assert_eq!((got.0, got.1), (u32::try_from(psn).unwrap(), len + 16));
        assert!(got.2.is_ok(), "PSN {psn}: {:?}", got.2);
        assert_eq!((got.3.src, got.3.dst), (a, b));
        assert_eq!((got.3.traffic_class, got.3.hop_limit), (2, 9));
    }
    assert_eq!(tx.stats().snapshot().tx_packets, sizes.len() as u64);
}

#[test]
fn without_segmentation_each_packet_is_right_under_identification_0() {
    let (a, b) = (loopback(3), loopback(4));
    let tx = UdpPort::open(&UdpConfig { gso: Some(false), ..UdpConfig::new(a) }).unwrap();
    let rx = UdpPort::open(&UdpConfig::new(b)).unwrap();
    let mut batch = TxBatch::new(64, 4200);
    for psn in 0..5 {
        push(&mut batch, flow(a, b), psn, 256);
    }
    tx.send(&mut batch).unwrap();
    let got = collect(&rx, 5, IcrcMode::Solve);
    assert!(got.iter().all(|p| p.2.is_ok()), "{got:?}");
    assert_eq!(tx.stats().snapshot().tx_calls, 5);
}

#[test]
fn ipv6_carries_class_hops_and_icrc() {
    if !has_ipv6() {
        return;
    }
    let here: IpAddr = "::1".parse().unwrap();
    let port = UdpPort::open(&UdpConfig::new(here)).unwrap();
    let mut batch = TxBatch::new(64, 4200);
    for psn in 0..3 {
        push(&mut batch, flow(here, here), psn, 512);
    }
    port.send(&mut batch).unwrap();
    let got = collect(&port, 3, IcrcMode::Strict);
    assert!(got.iter().all(|p| p.2 == Verdict::Ok), "{got:?}");
    assert_eq!((got[0].3.traffic_class, got[0].3.hop_limit), (2, 9));
}

#[test]
fn an_address_that_is_no_hosts_own_is_refused_for_what_it_is() {
    for (address, wanted) in [
        ("0.0.0.0", "stands for any address"),
        ("::", "stands for any address"),
        ("224.0.0.1", "is a multicast group"),
        ("ff02::1", "is a multicast group"),
        ("::ffff:127.0.0.1", "give 127.0.0.1"),
        ("255.255.255.255", "is a broadcast address"),
        ("127.255.255.255", "is a broadcast address"),
    ] {
        let address = address.parse().unwrap();
        for shared in [false, true] {
            let udp = UdpPort::open(&UdpConfig { shared, ..UdpConfig::new(address) });
            let error = udp.unwrap_err().to_string();
            assert!(error.starts_with(&address.to_string()) && error.contains(wanted), "{error}");
        }
        // Before any right is asked for.
        let raw = crate::raw::RawPort::open(&crate::raw::RawConfig::new(address));
        let error = raw.unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn errors_say_what_to_do() {
    let b = loopback(5);
    let port = UdpPort::open(&UdpConfig::new(b)).unwrap();
    let again = UdpPort::open(&UdpConfig::new(b)).unwrap_err();
    assert!(matches!(again, PortError::Taken(x) if x == b), "{again}");
    let foreign = UdpPort::open(&UdpConfig::new("192.0.2.1".parse().unwrap())).unwrap_err();
    assert!(matches!(foreign, PortError::NotOurs(_)), "{foreign}");
    if has_ipv6() {
        let link = UdpPort::open(&UdpConfig::new("fe80::1".parse().unwrap())).unwrap_err();
        assert!(matches!(link, PortError::LinkLocal(_)), "{link}");
    }
    let group = port.join("10.1.2.3".parse().unwrap()).unwrap_err();
    assert!(matches!(group, PortError::NotAGroup { .. }), "{group}");
    assert!(port.leave("239.1.2.3".parse().unwrap()).is_err());
}

/// Whoever sends to a port that urxe only sends from fills no buffer with it.
#[test]
fn sockets_that_only_send_take_nothing_in() {
    let a = loopback(7);
    let port = UdpPort::open(&UdpConfig::new(a)).unwrap();
    let stranger = std::net::UdpSocket::bind((loopback(8), 0)).unwrap();
    for (number, socket) in &port.sources {
        stranger.send_to(&[7; 64], (a, *number)).unwrap();
        assert!(!sys::wait_readable(socket.as_fd(), 0).unwrap(), "port {number}");
    }
}

#[test]
fn what_a_full_buffer_loses_is_counted_also_of_groups_that_were_left() {
    let (a, b) = (loopback(9), loopback(10));
    let tx = UdpPort::open(&UdpConfig { gso: Some(false), ..UdpConfig::new(a) }).unwrap();
    let rx = UdpPort::open(&UdpConfig { buffer: 4096, ..UdpConfig::new(b) }).unwrap();
    let mut sent = 0;
    let mut flood = |to| {
        for _ in 0..10 {
            let mut batch = TxBatch::new(64, 4200);
            for psn in 0..20 {
                push(&mut batch, flow(a, to), psn, 1024);
            }
            tx.send(&mut batch).unwrap();
            assert!(batch.is_empty());
            sent += 20;
        }
    };
    flood(b);
    let mut batch = RxBatch::new(64);
    let mut came = 0;
    let mut take = || loop {
        match rx.recv(&mut batch).unwrap() as u64 {
            0 => return came,
            n => came += n,
        }
    };
    let first = take();
    rx.check().unwrap();
    assert_eq!(first + rx.stats().snapshot().rx_overrun, 200);
    let group = IpAddr::V4(Ipv4Addr::new(239, 4, 7, 91));
    rx.join(group).unwrap();
    flood(group);
    let second = take();
    rx.leave(group).unwrap();
    rx.check().unwrap();
    assert_eq!(second + rx.stats().snapshot().rx_overrun, 400);
    assert!(second > first && second < 400, "{first}, {second}");
}

/// A socket that may not compute checksums cannot segment; packets that it does send show that.
#[test]
fn a_host_without_segmentation_is_sent_packets_one_by_one() {
    let (a, b) = (loopback(11), loopback(12));
    let tx = UdpPort::open(&UdpConfig::new(a)).unwrap();
    let rx = UdpPort::open(&UdpConfig::new(b)).unwrap();
    for socket in tx.sources.iter().map(|(_, socket)| socket).chain([&tx.main]) {
        sys::set(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
    }
    let mut batch = TxBatch::new(64, 4200);
    for calls in [6, 5] {
        let before = tx.stats().snapshot().tx_calls;
        for psn in 0..5 {
            push(&mut batch, flow(a, b), psn, 256);
        }
        tx.send(&mut batch).unwrap();
        assert_eq!(tx.stats().snapshot().tx_calls - before, calls);
        assert!(collect(&rx, 5, IcrcMode::Strict).iter().all(|p| p.2 == Verdict::Ok));
    }
}

/// So that a network spreads them over its paths, and a receiver over its queues.
#[test]
fn flows_leave_from_several_ports_each_always_from_the_same() {
    let (a, b) = (loopback(13), loopback(14));
    let tx = UdpPort::open(&UdpConfig::new(a)).unwrap();
    let rx = UdpPort::open(&UdpConfig::new(b)).unwrap();
    let ports = |tx: &UdpPort| {
        let mut batch = TxBatch::new(64, 4200);
        for n in 0..10 {
            let flow = Flow { src_port: 0xc000 + n, ..flow(a, b) };
            push(&mut batch, flow, n.into(), 64);
        }
        tx.send(&mut batch).unwrap();
        let mut got = collect(&rx, 10, IcrcMode::Strict);
        assert!(got.iter().all(|p| p.2 == Verdict::Ok), "{got:?}");
        got.sort_by_key(|p| p.0);
        got.iter().map(|p| p.3.src_port).collect::<Vec<_>>()
    };
    let first = ports(&tx);
    let distinct: std::collections::BTreeSet<_> = first.iter().collect();
    assert_eq!(distinct.len(), SOURCES + 1, "{first:?}");
    assert_eq!(ports(&tx), first);
}
