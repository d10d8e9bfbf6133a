use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use urxe_wire::{Bth, Opcode, Psn, Qpn, ROCE_UDP_PORT, Repr};

use super::*;
use crate::udp::{UdpConfig, UdpPort};
use crate::{Flow, IcrcMode, Port, PortError, RxBatch, TxBatch, sys};

/// Addresses of these tests, so that runs beside each other do not meet; `udp` has the first ten.
/// Not where the tests of ports that are not shared are.
fn address(last: u8) -> IpAddr {
    let [.., c, d] = std::process::id().to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, c.clamp(1, 254), d.clamp(1, 254), 128 + last))
}

fn shared(address: IpAddr) -> UdpPort {
    UdpPort::open(&UdpConfig { shared: true, ..UdpConfig::new(address) }).unwrap()
}

fn slot(port: &UdpPort) -> u8 {
    port.caps().slot.unwrap()
}

/// Longer than anything takes that is going to happen, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
        std::thread::yield_now();
    }
}

/// The first QPN but one of a slot.
fn qpn(slot: u8) -> Qpn {
    Qpn::new(u32::from(slot) << 18 | 1)
}

fn push(batch: &mut TxBatch, src: IpAddr, dst: IpAddr, to: Qpn, psn: u32, len: usize) {
    let flow = Flow { src, dst, src_port: 0xc001, traffic_class: 2, hop_limit: 9, flow_label: 0 };
    let mut header = [0; 12];
    Bth::new(Opcode(0x04), to, Psn::new(psn)).emit(&mut header).unwrap();
    batch.push(flow, &header, |out| out.resize(out.len() + len, 0x5a), 0);
}

/// Sends packets of these lengths, PSN 0 and on, to a QPN.
fn send(from: &UdpPort, dst: IpAddr, to: Qpn, lens: &[usize]) {
    let mut batch = TxBatch::new(64, 4200);
    for (psn, &len) in (0..).zip(lens) {
        push(&mut batch, from.caps().address, dst, to, psn, len);
    }
    from.send(&mut batch).unwrap();
    assert!(batch.is_empty());
}

/// The next packets, `n` at least: QPN and PSN.
fn collect(port: &UdpPort, n: usize) -> Vec<(u32, u32)> {
    let mut rx = RxBatch::new(16);
    let mut all = Vec::new();
    while all.len() < n {
        let ready = sys::wait_readable(port.fd(), 60_000).unwrap();
        assert!(ready, "{} of {n} came", all.len());
        port.recv(&mut rx).unwrap();
        rx.for_each(IcrcMode::Solve, port.stats(), |p| {
            assert!(p.verdict.is_ok());
            let (bth, _) = Bth::parse(p.bytes).unwrap();
            all.push((bth.dest_qp.value(), bth.psn.value()));
        });
    }
    all
}

#[test]
fn each_packet_and_each_run_reaches_the_socket_of_its_slot() {
    let (here, there) = (address(20), address(21));
    let ports: Vec<_> = (0..8).map(|_| shared(here)).collect();
    let peer = UdpPort::open(&UdpConfig::new(there)).unwrap();
    let runs: [&[usize]; 3] = [&[64], &[1024; 40], &[1024, 1024, 100]];
    for lens in runs {
        for port in ports.iter().rev() {
            send(&peer, here, qpn(slot(port)), lens);
        }
        for port in &ports {
            let wanted: Vec<_> =
                (0..).take(lens.len()).map(|n| (qpn(slot(port)).value(), n)).collect();
            assert_eq!(collect(port, lens.len()), wanted);
        }
    }
    let stats = ports[0].stats().snapshot();
    assert!(stats.rx_runs < stats.rx_packets || !ports[0].caps().gro, "{stats:?}");
    // Each to the next, from and to one address.
    for (n, port) in ports.iter().enumerate() {
        send(port, here, qpn(slot(&ports[(n + 1) % 8])), &[512; 5]);
    }
    for port in &ports {
        assert_eq!(collect(port, 5).len(), 5);
    }
}

#[test]
fn a_run_is_for_one_slot() {
    let (here, there) = (address(22), address(23));
    let ports = [shared(here), shared(here)];
    let peer = UdpPort::open(&UdpConfig::new(there)).unwrap();
    let mut batch = TxBatch::new(64, 4200);
    for psn in 0..20 {
        push(&mut batch, there, here, qpn(slot(&ports[psn as usize % 2])), psn, 256);
    }
    peer.send(&mut batch).unwrap();
    for (odd, port) in (0..).zip(&ports) {
        let psns: Vec<_> = collect(port, 10).iter().map(|p| p.1).collect();
        assert_eq!(psns, (0..10).map(|n| n * 2 + odd).collect::<Vec<_>>());
        assert_eq!(port.stats().snapshot().rx_other_slot, 0);
    }
}

/// A peer's card, or the host, may gather packets of one flow whatever their QPN.
#[test]
fn what_was_gathered_with_anothers_is_counted_and_ends_the_gathering() {
    let (here, there) = (address(24), address(25));
    let ports = [shared(here), shared(here)];
    if !ports[0].caps().gro {
        return;
    }
    let socket = socket2::Socket::from(UdpSocket::bind((there, 0)).unwrap());
    sys::set(&socket, libc::IPPROTO_UDP, libc::UDP_SEGMENT, 116).unwrap();
    let mut run = Vec::new();
    for psn in 0..6 {
        let mut header = [0; 12];
        let to = qpn(slot(&ports[psn as usize % 2]));
        Bth::new(Opcode(0x04), to, Psn::new(psn)).emit(&mut header).unwrap();
        run.extend_from_slice(&header);
        run.resize(run.len() + 104, 0);
    }
    let to = std::net::SocketAddr::new(here, ROCE_UDP_PORT);
    socket.send_to(&run, &to.into()).unwrap();
    let mut rx = RxBatch::new(16);
    eventually("the run", || (ports[0].recv(&mut rx).unwrap() != 0).then_some(()));
    assert_eq!(ports[0].stats().snapshot().rx_other_slot, 3);
    // The broker has heard of it when it answers.
    let third = eventually("no more gathering", || {
        let port = shared(here);
        (!port.caps().gro).then_some(port)
    });
    send(&ports[1], here, qpn(slot(&third)), &[300; 9]);
    assert_eq!(collect(&third, 9).len(), 9);
    assert_eq!(third.stats().snapshot().rx_runs, 9);
}

#[test]
fn an_address_is_free_when_its_last_port_is_closed() {
    let here = address(26);
    for _ in 0..20 {
        assert_eq!(who_shares(here).unwrap(), None);
        let ports = [shared(here), shared(here)];
        let sharing = who_shares(here).unwrap().unwrap();
        let pid = std::process::id();
        let wanted = ports.each_ref().map(|port| Holder { slot: slot(port), pid });
        assert_eq!(sharing.holders, wanted);
        assert_ne!(sharing.broker, pid);
        drop(ports);
        // A broker that another test starts has all descriptors until it is one: an address that
        // is closed may be taken for a little longer.
        eventually("the address", || UdpPort::open(&UdpConfig::new(here)).ok());
    }
}

#[test]
fn what_another_has_is_taken() {
    let here = address(27);
    let foreign = UdpSocket::bind((here, ROCE_UDP_PORT)).unwrap();
    let open = || UdpPort::open(&UdpConfig { shared: true, ..UdpConfig::new(here) });
    let error = open().unwrap_err();
    assert!(matches!(error, PortError::Taken(x) if x == here), "{error}");
    // One that could be joined as well.
    drop(foreign);
    let socket = crate::udp::socket_for(here, 4096).unwrap();
    socket.set_reuse_port(true).unwrap();
    crate::udp::bind(&socket, (here, ROCE_UDP_PORT).into()).unwrap();
    let error = open().unwrap_err();
    assert!(matches!(error, PortError::Taken(x) if x == here), "{error}");
    assert_eq!(who_shares(here).unwrap(), None);
    drop(socket);
    open().unwrap();
    // And ours is taken for those who do not share.
    let _port = open().unwrap();
    let alone = UdpPort::open(&UdpConfig::new(here)).unwrap_err();
    assert!(matches!(alone, PortError::Taken(x) if x == here), "{alone}");
}

#[test]
fn there_are_63_places_and_an_error_for_the_next() {
    let here = address(28);
    let mut seats: Vec<_> = (0..SEATS).map(|_| Seat::take(here, 4096).unwrap()).collect();
    let slots: Vec<_> = seats.iter().map(|(_, seat)| seat.slot).collect();
    assert_eq!(slots, (1..=63).collect::<Vec<_>>());
    let error = Seat::take(here, 4096).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("all 63 places") && text.contains(&here.to_string()), "{text}");
    assert!(text.contains(&format!("processes {}:", std::process::id())), "{text}");
    seats.remove(17);
    let (_, again) = Seat::take(here, 4096).unwrap();
    assert_eq!(again.slot, 18);
}

#[test]
fn a_slot_comes_without_what_was_sent_to_its_last_holder() {
    let here = address(29);
    let peer = shared(here);
    let (socket, old) = Seat::take(here, 1 << 20).unwrap();
    let slot = old.slot;
    send(&peer, here, qpn(slot), &[100; 10]);
    drop((socket, old));
    // Some arrive when it is nobody's.
    send(&peer, here, qpn(slot), &[100; 10]);
    let all: Vec<_> = (0..SEATS - 1).map(|_| Seat::take(here, 1 << 20).unwrap()).collect();
    let (socket, _) = all.iter().find(|(_, seat)| seat.slot == slot).unwrap();
    assert!(!sys::wait_readable(socket.as_fd(), 0).unwrap(), "the slot's queue is empty");
    send(&peer, here, qpn(slot), &[100]);
    assert!(sys::wait_readable(socket.as_fd(), 60_000).unwrap());
}

#[test]
fn what_is_no_request_ends_the_connection_and_nothing_else() {
    let here = address(30);
    let port = shared(here);
    for nonsense in [&b"x"[..], &[1, 1], &[255; 64], &[1; 900], &[]] {
        let connection = name::socket().unwrap();
        rustix::net::connect(&connection, &name::of(here).unwrap()).unwrap();
        pass::send(connection.as_fd(), nonsense, &[connection.as_fd()]).unwrap();
        assert!(sys::wait_readable(connection.as_fd(), 60_000).unwrap());
        let got = pass::recv(connection.as_fd(), &mut [0; 8], false, drop);
        assert!(matches!(got, Ok(0) | Err(rustix::io::Errno::CONNRESET)), "{got:?}");
    }
    // Many that say nothing are let go, one for one.
    let silent: Vec<_> = (0..150)
        .map(|_| {
            let connection = name::socket().unwrap();
            eventually("room", || rustix::net::connect(&connection, &name::of(here).unwrap()).ok());
            connection
        })
        .collect();
    let (other, count) = (shared(here), silent.len());
    send(&port, here, qpn(slot(&other)), &[64]);
    assert_eq!(collect(&other, 1).len(), 1, "{count}");
}

fn kill(pid: u32) {
    signal(pid, libc::SIGKILL);
}

fn signal(pid: u32, signal: i32) {
    let pid = libc::pid_t::try_from(pid).unwrap();
    // SAFETY: takes no pointers; the broker is ours.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

#[test]
fn a_stopped_broker_is_named_and_holds_up_no_packet() {
    let here = address(33);
    let ports = [shared(here), shared(here)];
    let broker = who_shares(here).unwrap().unwrap().broker;
    signal(broker, libc::SIGSTOP);
    send(&ports[0], here, qpn(slot(&ports[1])), &[700; 7]);
    assert_eq!(collect(&ports[1], 7).len(), 7);
    let error = Seat::take(here, 4096).unwrap_err().to_string();
    assert!(error.contains(&format!("process {broker}, does not answer")), "{error}");
    signal(broker, libc::SIGCONT);
    Seat::take(here, 4096).unwrap();
}

/// A terminal's signals, and those of a program's group, are not the broker's.
#[test]
fn only_signals_that_are_meant_for_it_end_the_broker() {
    let here = address(34);
    let _port = shared(here);
    let broker = who_shares(here).unwrap().unwrap().broker;
    for ignored in [libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGUSR1] {
        signal(broker, ignored);
    }
    assert_eq!(who_shares(here).unwrap().unwrap().broker, broker);
    let stat = std::fs::read_to_string(format!("/proc/{broker}/stat")).unwrap();
    let fields: Vec<_> = stat.split_whitespace().collect();
    assert_eq!((fields[1], fields[5]), ("(urxe-broker)", broker.to_string().as_str()), "{stat}");
    // It has what it needs open, and nothing of ours: 64 sockets, its name, the sockets kept, a
    // connection, and /dev/null three times.
    let all = if std::path::Path::new("/dev/null").exists() { 70 } else { 67 };
    eventually("what it has open", || {
        let open = std::fs::read_dir(format!("/proc/{broker}/fd")).unwrap().count();
        (open == all).then_some(())
    });
    signal(broker, libc::SIGTERM);
}

/// As the driver does, all the time.
fn attend(ports: &[impl std::borrow::Borrow<UdpPort>]) {
    let mut rx = RxBatch::new(1);
    for port in ports {
        port.borrow().recv(&mut rx).unwrap();
    }
}

#[test]
fn the_end_of_the_broker_changes_nothing_for_those_who_are_there() {
    let here = address(31);
    let mut ports: Vec<_> = (0..5).map(|_| shared(here)).collect();
    for _ in 0..3 {
        let before = who_shares(here).unwrap().unwrap();
        kill(before.broker);
        // Nobody looks after a broker yet: the group is whole all the same.
        for port in &ports {
            send(&ports[0], here, qpn(slot(port)), &[700; 7]);
            assert_eq!(collect(port, 7).len(), 7);
        }
        // Then there is another, with the same sockets.
        let after = eventually("a broker that knows all", || {
            attend(&ports);
            who_shares(here).unwrap().filter(|s| s.holders.len() == ports.len())
        });
        assert_ne!(after.broker, before.broker);
        assert_eq!(after.holders, before.holders);
        assert!(ports.iter().all(|port| port.next_deadline().is_none()));
        ports.push(shared(here));
        for port in &ports {
            send(&ports[0], here, qpn(slot(port)), &[700; 7]);
            assert_eq!(collect(port, 7).len(), 7);
        }
    }
    drop(ports);
    eventually("the address", || UdpPort::open(&UdpConfig::new(here)).ok());
}

#[test]
fn a_slot_whose_holder_has_not_come_back_yet_is_not_given_out() {
    let here = address(32);
    let (ports, sleeper) = ([shared(here), shared(here)], Seat::take(here, 4096).unwrap());
    kill(who_shares(here).unwrap().unwrap().broker);
    eventually("a broker", || {
        attend(&ports);
        who_shares(here).unwrap().filter(|s| s.holders.len() == 2)
    });
    let rest: Vec<_> = (0..SEATS - 3).map(|_| Seat::take(here, 4096).unwrap()).collect();
    assert!(rest.iter().all(|(_, seat)| seat.slot != sleeper.1.slot));
    assert!(matches!(Seat::take(here, 4096), Err(PortError::NoSlot { .. })));
}

/// Whoever can guess a name could take it, to keep the slot from those who share the address.
#[test]
fn a_slots_name_cannot_be_taken_by_who_does_not_share_the_address() {
    let here = address(35);
    let squatters: Vec<_> = (1..=63)
        .map(|slot| {
            let socket = name::socket().unwrap();
            name::show(socket.as_fd(), here, slot).unwrap();
            socket
        })
        .collect();
    let first = shared(here);
    assert_eq!(slot(&first), 1);
    // Nor can those that have been seen be told to be ours.
    assert!(!name::is_leased(here, 1, 0) && name::is_shown(here, 1));
    drop(squatters);
}

mod codes;
mod qp1;
