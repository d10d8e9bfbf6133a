//! What a UDP port asks of its host: offloads, routes, descriptors.

use std::net::IpAddr;
use std::process::Command;

use urxe_net::raw::{IpId, RawConfig, RawPort};
use urxe_net::udp::{UdpConfig, UdpPort};
use urxe_net::{IcrcMode, Port, RxBatch};
use urxe_wire::Verdict;

use crate::namespace::{Namespace, pair};
use crate::pairs::address;
use crate::traffic::{collect, flow, send, wait_for};

fn udp(space: &Namespace, address: IpAddr, gso: Option<bool>) -> UdpPort {
    let config = UdpConfig { gso, ..UdpConfig::new(address) };
    space.run(move || UdpPort::open(&config).unwrap())
}

/// Runs a shell command in a namespace.
fn sh(space: &Namespace, command: &str) {
    let command = command.to_owned();
    let out = space.run(move || Command::new("sh").args(["-c", &command]).output().unwrap());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// Sets an offload of the interface `veth` by the command that `ethtool` uses (Linux
/// include/uapi/linux/ethtool.h).
fn set_offload(space: &Namespace, command: u32, on: bool) {
    space.run(move || {
        let mut value = [command, u32::from(on)];
        // SAFETY: a request of zeros is a valid one.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (place, byte) in request.ifr_name.iter_mut().zip(b"veth") {
            *place = byte.cast_signed();
        }
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
        // SAFETY: the socket is open; the request and what it points to live through the call.
        let rc = unsafe { libc::ioctl(fd, libc::SIOCETHTOOL, &raw mut request) };
        assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
    });
}

/// ETHTOOL_STSO and ETHTOOL_SGRO.
const TSO: u32 = 0x1f;
const GRO: u32 = 0x2c;

/// The host gathers packets that were sent one by one, each with identification 0.
#[test]
fn gathered_packets_of_identification_0_are_right_and_nothing_was_solved_for() {
    let Some((a, b)) = pair() else { return };
    set_offload(&a, TSO, false);
    set_offload(&b, GRO, true);
    // The namespace's own /sys, in a mount namespace of the shell's.
    let keep = "mount -t sysfs none /sys && cd /sys/class/net/veth && \
                echo 500000 > gro_flush_timeout && echo 10 > napi_defer_hard_irqs";
    sh(&b, &format!("unshare -m sh -c 'mount --make-rprivate / && {keep}'"));
    let (here, there) = (address(false, 1), address(false, 2));
    let (tx, rx) = (udp(&a, here, None), udp(&b, there, None));
    let mut batch = RxBatch::new(16);
    for (mode, from) in [(IcrcMode::Strict, 0), (IcrcMode::Solve, 200)] {
        send(&tx, flow(here, there), &[256; 200]);
        let mut got = 0;
        while got < 200 {
            assert!(wait_for(&[rx.fd()], 5000), "{got} came");
            rx.recv(&mut batch).unwrap();
            batch.for_each(mode, rx.stats(), |p| {
                assert_eq!(p.verdict, Verdict::Ok, "packet {got}");
                got += 1;
            });
        }
        let stats = rx.stats().snapshot();
        assert_eq!((stats.rx_packets, stats.rx_icrc_bad, stats.rx_icrc_solved), (from + 200, 0, 0));
    }
    let stats = rx.stats().snapshot();
    assert!(stats.rx_runs < stats.rx_packets, "nothing was gathered: {stats:?}");
}

/// What a UDP port cannot see, it solves for, and counts; unless it is to be strict.
#[test]
fn an_identification_that_was_not_expected_is_solved_for_and_counted() {
    let Some((a, b)) = pair() else { return };
    let (here, there) = (address(false, 1), address(false, 2));
    let config = RawConfig { ip_id: IpId::Fixed(0xbeef), ..RawConfig::new(here) };
    let (tx, rx) = (a.run(move || RawPort::open(&config).unwrap()), udp(&b, there, None));
    send(&tx, flow(here, there), &[64; 3]);
    let got = collect(&tx, &rx, 3);
    assert!(got.iter().all(|g| g.2 == Verdict::OkSolvedId(0xbeef)), "{got:?}");
    assert_eq!(rx.stats().snapshot().rx_icrc_solved, 3);
    send(&tx, flow(here, there), &[64; 3]);
    let (mut batch, mut bad) = (RxBatch::new(8), 0);
    while bad < 3 {
        assert!(wait_for(&[rx.fd()], 5000), "{bad} came");
        rx.recv(&mut batch).unwrap();
        batch.for_each(IcrcMode::Strict, rx.stats(), |p| bad += u64::from(!p.verdict.is_ok()));
    }
    let stats = rx.stats().snapshot();
    assert_eq!((stats.rx_icrc_solved, stats.rx_icrc_bad), (3, 3));
}

/// A route into nowhere gives the same error as a host without segmentation.
#[test]
fn a_destination_that_is_refused_does_not_end_segmentation() {
    let Some((a, b)) = pair() else { return };
    let (here, there) = (address(false, 1), address(false, 2));
    let (tx, rx) = (udp(&a, here, Some(true)), udp(&b, there, None));
    a.ip("route add blackhole 10.50.0.0/16");
    send(&tx, flow(here, "10.50.0.1".parse().unwrap()), &[1024; 5]);
    let before = tx.stats().snapshot();
    assert_eq!((before.tx_packets, before.tx_unreachable), (0, 5), "{before:?}");
    send(&tx, flow(here, there), &[256; 5]);
    let after = tx.stats().snapshot();
    assert_eq!((after.tx_packets, after.tx_calls - before.tx_calls), (5, 1), "{after:?}");
    assert!(wait_for(&[rx.fd()], 5000), "they arrive");
}

/// What the host knows of a path beyond its interface, for both families and kinds of port.
#[test]
fn a_route_can_carry_less_than_its_interface() {
    let Some((a, _b)) = pair() else { return };
    a.ip("route add 10.9.0.2/32 dev veth mtu 600");
    a.ip("route add fd09::2/128 dev veth mtu 1300");
    a.ip("addr add 10.9.0.7/24 dev veth");
    a.ip("addr add fd09::7/64 dev veth nodad");
    for (v6, mtu) in [(false, 600), (true, 1300)] {
        let port = udp(&a, address(v6, 1), None);
        assert_eq!(port.route_mtu(address(v6, 2)), Some(mtu));
        assert_eq!(port.route_mtu(address(v6, 3)), None, "the interface's");
        let port = a.run(move || RawPort::open(&RawConfig::new(address(v6, 7))).unwrap());
        assert_eq!(port.route_mtu(address(v6, 2)), Some(mtu));
    }
}

/// A process without free descriptors, and one whose address is gone, are told apart.
#[test]
fn a_port_can_be_checked_without_a_free_descriptor() {
    if !alone("host::a_port_can_be_checked_without_a_free_descriptor") {
        return;
    }
    let Some((a, _b)) = pair() else { return };
    let port = udp(&a, address(false, 1), None);
    let check = |port: UdpPort| a.run(move || (port.check(), port));
    let few = |n| {
        let limit = libc::rlimit { rlim_cur: n, rlim_max: 1024 };
        // SAFETY: the limit lives through the call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    };
    few(0);
    let (checked, port) = check(port);
    few(1024);
    checked.unwrap();
    // An address with a label is listed under that.
    a.ip("addr add 10.9.0.5/24 dev veth label veth:1");
    let (labelled, _) = check(udp(&a, address(false, 5), None));
    labelled.unwrap();
    a.ip("link set veth down");
    let (down, port) = check(port);
    assert!(matches!(&down, Err(urxe_net::PortError::Down(name)) if name == "veth"), "{down:?}");
    a.ip("link set veth up");
    let (up, port) = check(port);
    up.unwrap();
    a.ip("addr del 10.9.0.1/24 dev veth");
    let (moved, port) = check(port);
    assert!(matches!(moved, Err(urxe_net::PortError::NotOurs(_))), "{moved:?}");
    a.ip("link del veth");
    let (gone, _port) = check(port);
    assert!(gone.is_err());
}

/// As the tests of the driver have it: whether this test is alone in its process. If not, it is
/// started once more, in a process of its own, and must succeed there.
fn alone(name: &str) -> bool {
    const MARK: &str = "URXE_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", name, "--nocapture", "--test-threads=1"];
    let out = Command::new(program).args(arguments).env(MARK, "1").output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.contains("1 passed"), "{text}\n{errors}");
    false
}
