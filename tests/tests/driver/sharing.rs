//! Processes that share an address.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::process::Child;

use urxe::{Address, Config, Context, QpKind, SendOp, Sharing, who_shares};

use crate::namespace::{Namespace, pair};
use crate::operations::{self, Link};
use crate::peer::{Peer, command, hex};
use crate::rig::{Side, alone, eventually, patient};

/// An address of one test, so that runs beside each other do not meet.
fn own(last: u8) -> IpAddr {
    let [.., c, d] = std::process::id().to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, c.clamp(1, 254), d.clamp(1, 254), last))
}

fn spawn(address: IpAddr) -> Child {
    let address = address.to_string();
    command(&[("URXE_ADDR", &address), ("URXE_SHARED", "on")]).spawn().unwrap()
}

fn start(address: IpAddr) -> Peer {
    Peer::greet(spawn(address)).unwrap()
}

fn config(address: IpAddr) -> Config {
    Config { address: Address::Of(address), shared: Some(true), ..patient() }
}

fn sharing(address: IpAddr) -> Option<Sharing> {
    who_shares(address).unwrap()
}

fn two(peers: &mut [Peer], a: usize, b: usize) -> (&mut Peer, &mut Peer) {
    let [a, b] = peers.get_disjoint_mut([a, b]).unwrap();
    (a, b)
}

/// A message over a new connection, with bytes that tell whose it is.
fn send(from: &mut Peer, to: &mut Peer, byte: usize) {
    let (a, b) = (from.make("rc"), to.make("rc"));
    from.order(&format!("connect {}", b.end));
    to.order(&format!("connect {}", a.end));
    to.order("receive 3 5000");
    from.order(&format!("write 100 {byte} 5000"));
    from.order("send 100 5000");
    from.done("request 77");
    to.done("request 3");
    let byte = u8::try_from(byte).unwrap();
    assert_eq!(to.say("read 12288 5000"), hex(&[byte; 5000]));
}

/// A datagram to `group`, or to one of them, which all of `to` get.
fn datagram(from: &mut Peer, to: &mut [Peer], group: Option<&str>, byte: usize) {
    let (mut address, mut qpn) = (group.unwrap_or_default().to_owned(), 0x00ff_ffff);
    for peer in &mut *to {
        let end = peer.make("ud").end;
        match group {
            Some(group) => peer.order(&format!("join {group}")),
            None => (address, qpn) = (end.address.to_string(), end.qpn.value()),
        }
        peer.order("receive 5 1040");
    }
    from.make("ud");
    from.order(&format!("write 100 {byte} 1000"));
    from.order(&format!("sendto {address} {qpn} 100 1000"));
    from.done("request 77");
    for peer in to {
        peer.done("request 5");
        let byte = u8::try_from(byte).unwrap();
        assert_eq!(peer.say("read 20520 1000"), hex(&[byte; 1000]));
    }
}

/// Each to each, the last of which may be on another host.
fn everyone_to_everyone(peers: &mut [Peer], group: &str) {
    let count = peers.len();
    let mut byte = 0;
    for a in 0..count {
        for b in (0..count).filter(|&b| b != a) {
            let (a, b) = two(peers, a, b);
            byte += 1;
            send(a, b, byte);
            datagram(a, std::slice::from_mut(b), None, byte + 90);
        }
    }
    for _ in 0..2 {
        let (from, to) = peers.split_last_mut().unwrap();
        datagram(from, to, Some(group), byte + 91);
        // And from one of those who share it.
        peers.rotate_right(1);
        byte += 1;
    }
    peers.rotate_left(2);
}

fn each_has_qpns_of_its_own(peers: &[Peer]) {
    let mut slots: Vec<_> = peers.iter().map(|peer| peer.end.qpn.value() >> 18).collect();
    assert!(!slots.contains(&0), "slot 0 is the broker's: {slots:?}");
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots.len(), peers.len());
}

/// Eight that start at once, on an address that nobody has yet.
#[test]
fn eight_processes_on_one_address() {
    let here = own(70);
    let started: Vec<_> = (0..8).map(|_| spawn(here)).collect();
    let mut peers: Vec<_> = started.into_iter().map(|p| Peer::greet(p).unwrap()).collect();
    each_has_qpns_of_its_own(&peers);
    let mut pids: Vec<_> = peers.iter().map(|peer| peer.process.id()).collect();
    let mut holders: Vec<_> = sharing(here).unwrap().holders.iter().map(|h| h.pid).collect();
    pids.sort_unstable();
    holders.sort_unstable();
    assert_eq!(pids, holders);
    everyone_to_everyone(&mut peers, "239.70.0.1");
    drop(peers);
    eventually("the broker's end", || sharing(here).is_none().then_some(()));
}

fn start_in(space: &Namespace, address: &'static str) -> Peer {
    Peer::greet(space.run(move || command(&[("URXE_ADDR", address)]).spawn().unwrap())).unwrap()
}

/// Without being asked to share: that is what happens on an address that is not loopback's.
#[test]
fn two_and_eight_processes_on_one_address_and_one_on_another_host() {
    let Some((here, there)) = pair() else { return };
    for (v6, count) in [(false, 2), (false, 8), (true, 2)] {
        let (near, far, group) = match v6 {
            false => ("10.9.0.1", "10.9.0.2", "239.70.0.2"),
            true => ("fd09::1", "fd09::2", "ff05::7002"),
        };
        let mut peers: Vec<_> = (0..count).map(|_| start_in(&here, near)).collect();
        each_has_qpns_of_its_own(&peers);
        peers.push(start_in(&there, far));
        everyone_to_everyone(&mut peers, group);
    }
}

#[test]
fn every_operation_between_two_devices_of_one_address() {
    let here = own(71);
    let (a, b) = (Context::open(&config(here)).unwrap(), Context::open(&config(here)).unwrap());
    operations::all(&a, &b, Link::Clean);
    let stats = a.port_stats();
    if a.port_caps().gso && a.port_caps().gro {
        assert!(stats.tx_calls < stats.tx_packets, "{stats:?}");
        assert!(stats.rx_runs < stats.rx_packets, "{stats:?}");
    }
    assert_eq!(stats.rx_other_slot, 0);
}

#[test]
fn every_operation_from_a_shared_address_to_one_that_is_not_over_a_faulty_link() {
    let faults = "tx.loss=5%,tx.duplicate=5%,tx.reorder=5%,tx.corrupt=1%,seed=7";
    let faulty = |config: Config| Config { faults: faults.into(), ..config };
    let a = Context::open(&faulty(config(own(72)))).unwrap();
    let b = Context::open(&faulty(patient())).unwrap();
    operations::all(&a, &b, Link::Faulty);
}

#[test]
fn a_killed_process_frees_its_slot() {
    let here = own(73);
    let mut peers = [start(here), start(here), start(here)];
    let before = sharing(here).unwrap();
    peers[1].kill();
    let pid = peers[1].process.id();
    let after =
        eventually("its slot", || sharing(here).filter(|s| s.holders.iter().all(|h| h.pid != pid)));
    assert_eq!((after.broker, after.holders.len()), (before.broker, 2));
    peers[1] = start(here);
    everyone_to_everyone(&mut peers, "239.70.0.3");
}

/// As many as there are places, and some more.
#[test]
fn the_64th_process_is_told_that_there_is_no_place() {
    let here = own(74);
    let started: Vec<_> = (0..70).map(|_| spawn(here)).collect();
    let all: Vec<_> = started.into_iter().map(Peer::greet).collect();
    let (mut peers, mut refused) = (Vec::new(), Vec::new());
    for peer in all {
        match peer {
            Ok(peer) => peers.push(peer),
            Err(why) => refused.push(why),
        }
    }
    assert_eq!((peers.len(), refused.len()), (63, 7), "{refused:?}");
    let wanted = format!("all 63 places on {here} are taken");
    assert!(refused.iter().all(|why| why.contains(&wanted)), "{refused:?}");
    let (a, b) = two(&mut peers, 7, 62);
    send(a, b, 1);
    // One goes, one comes.
    peers.pop();
    peers.push(eventually("a place", || Peer::greet(spawn(here)).ok()));
    let (a, b) = two(&mut peers, 62, 0);
    send(a, b, 2);
}

#[test]
fn a_program_that_has_the_port_is_in_the_way_of_all() {
    let here = own(75);
    let foreign = UdpSocket::bind((here, 4791)).unwrap();
    let started = [spawn(here), spawn(here), spawn(here)];
    for process in started {
        let why = Peer::greet(process).unwrap_err();
        assert!(why.contains(&format!("UDP port 4791 of {here} is taken")), "{why}");
    }
    drop(foreign);
    let mut peers = [start(here), start(here)];
    everyone_to_everyone(&mut peers, "239.70.0.4");
}

/// A user without any rights, and another one who comes too late.
#[test]
fn users_share_an_address_with_themselves_alone() {
    // SAFETY: takes nothing.
    if unsafe { libc::geteuid() } != 0 {
        // The other tests are an unprivileged user's then.
        return;
    }
    let here = own(76).to_string();
    // Where the build's folder is root's alone, others start a copy.
    let copy = std::env::temp_dir().join(format!("urxe-peer-{}", std::process::id()));
    std::fs::copy(env!("CARGO_BIN_EXE_urxe-peer"), &copy).unwrap();
    let start = |user: u32| {
        eventually("the copy, written", || {
            let mut command = std::process::Command::new(&copy);
            command.envs([("URXE_ADDR", here.as_str()), ("URXE_SHARED", "on")]);
            command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
            // A program that another test starts may have it open to be written to.
            command.uid(user).gid(user).spawn().ok()
        })
    };
    let mut peers: Vec<_> = (0..3).map(|_| Peer::greet(start(65_534)).unwrap()).collect();
    everyone_to_everyone(&mut peers, "239.70.0.5");
    let why = Peer::greet(start(65_533)).unwrap_err();
    // Whose it is, if the kernel's table of sockets, which is no snapshot, shows it.
    let general = why.contains("is taken") && why.contains("program or user");
    assert!(why.contains("shared by the processes of user 65534") || general, "{why}");
    std::fs::remove_file(copy).unwrap();
}

#[test]
fn a_killed_broker_costs_those_who_are_there_nothing() {
    let here = own(77);
    let mut peers: Vec<_> = (0..4).map(|_| start(here)).collect();
    let broker = libc::pid_t::try_from(sharing(here).unwrap().broker).unwrap();
    let context = Context::open(&config(here)).unwrap();
    let side = Side::new(&context, QpKind::Rc);
    peers[0].connect(&side);
    // SAFETY: takes no pointers; the broker is this test's.
    assert_eq!(unsafe { libc::kill(broker, libc::SIGKILL) }, 0);
    everyone_to_everyone(&mut peers, "239.70.0.6");
    let (remote, rkey) = (peers[0].remote, peers[0].rkey);
    side.mr.write(0, b"still here").unwrap();
    side.qp.post_send(1, SendOp::Write { remote, rkey, imm: None }, &[side.mr.sge(0..10)]).unwrap();
    side.done();
    assert_eq!(peers[0].say("read 0 10"), hex(b"still here"));
    // They see to it that there is a broker again, and more can come.
    let all = eventually("a broker that knows all", || {
        sharing(here).filter(|s| s.holders.len() == peers.len() + 1)
    });
    assert_ne!(all.broker, broker.cast_unsigned());
    peers.push(start(here));
    each_has_qpns_of_its_own(&peers);
    everyone_to_everyone(&mut peers, "239.70.0.6");
}

/// All at once: those who are there start a broker while others want one.
#[test]
fn processes_come_while_the_broker_is_killed() {
    let here = own(78);
    let mut peers: Vec<_> = (0..4).map(|_| start(here)).collect();
    for _ in 0..5 {
        let Some(sharing) = sharing(here) else { continue };
        let broker = libc::pid_t::try_from(sharing.broker).unwrap();
        // SAFETY: takes no pointers; the broker is this test's, if it is not gone already.
        unsafe { libc::kill(broker, libc::SIGKILL) };
        let started = [spawn(here), spawn(here)];
        peers.extend(started.map(|process| Peer::greet(process).unwrap()));
    }
    each_has_qpns_of_its_own(&peers);
    let count = peers.len();
    for n in 0..count {
        let (a, b) = two(&mut peers, n, (n + 1) % count);
        send(a, b, n + 1);
    }
}

/// Of descriptors on their way between processes a user may have as many as `ulimit -n` says; each
/// shared address keeps 64.
#[test]
fn too_many_descriptors_on_their_way_are_told_with_what_to_do() {
    if !alone("sharing::too_many_descriptors_on_their_way_are_told_with_what_to_do") {
        return;
    }
    let limit = libc::rlimit { rlim_cur: 256, rlim_max: 256 };
    // SAFETY: the limit lives through the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    // Version 3 of the call, for this thread alone; no rights of any kind.
    let (header, none) = ([0x2008_0522_u32, 0], [0_u32; 6]);
    // SAFETY: both are as the call wants them, and live through it.
    let rc = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    assert_eq!(rc, 0);
    let mut all = Vec::new();
    let error = loop {
        let n = u8::try_from(60 + all.len()).unwrap();
        match Context::open(&config(own(n))) {
            Ok(context) => all.push(context),
            Err(error) => break error,
        }
        assert!(all.len() < 6, "six addresses keep 384 descriptors");
    };
    let text = error.to_string();
    assert!(text.contains("ulimit -n") && text.contains("--shared off"), "{text}");
}
