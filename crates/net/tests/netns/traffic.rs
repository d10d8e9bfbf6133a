//! Packets through ports, and what else is on the link.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use socket2::{Domain, Socket, Type};
use urxe_net::{Flow, IcrcMode, Port, RxBatch, TxBatch};
use urxe_wire::{Bth, Opcode, Psn, Qpn, Repr, Verdict};

use crate::namespace::Namespace;

/// Waits until one of `fds` has something; false if none has for five seconds.
pub fn wait(fds: &[BorrowedFd<'_>]) -> bool {
    wait_for(fds, 5000)
}

/// As [`wait`], for so many milliseconds.
pub fn wait_for(fds: &[BorrowedFd<'_>], timeout_ms: i32) -> bool {
    let mut polls: Vec<_> = fds
        .iter()
        .map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    let n = libc::nfds_t::try_from(polls.len()).unwrap();
    // SAFETY: `polls` are initialised and live through the call.
    unsafe { libc::poll(polls.as_mut_ptr(), n, timeout_ms) > 0 }
}

/// A flow whose fields are all of note.
pub fn flow(src: IpAddr, dst: IpAddr) -> Flow {
    let flow_label = if src.is_ipv6() { 0x54321 } else { 0 };
    Flow { src, dst, src_port: 0xd00d, traffic_class: 0x6a, hop_limit: 9, flow_label }
}

/// The packet of a PSN, BTH to pad.
pub fn packet(psn: u32, len: usize) -> Vec<u8> {
    let mut packet = vec![0; 12];
    Bth::new(Opcode(0x04), Qpn::new(2), Psn::new(psn)).emit(&mut packet).unwrap();
    packet.extend((0..len).map(|i| u8::try_from((i + psn as usize) % 251).unwrap()));
    packet
}

/// Sends packets of these payload lengths, PSNs from 0.
pub fn send(port: &dyn Port, flow: Flow, lengths: &[usize]) {
    let mut batch = TxBatch::new(lengths.len(), 4200);
    for (psn, &len) in lengths.iter().enumerate() {
        let packet = packet(u32::try_from(psn).unwrap(), len);
        batch.push(flow, &packet, |_| (), 0);
    }
    while !batch.is_empty() {
        port.send(&mut batch).unwrap();
        port.wait_writable(1000).unwrap();
    }
}

/// What came: flow, BTH to pad, verdict.
pub type Got = (Flow, Vec<u8>, Verdict);

/// Drives both ports until `n` packets came at `to`.
pub fn collect(from: &dyn Port, to: &dyn Port, n: usize) -> Vec<Got> {
    let mut all: Vec<Got> = Vec::new();
    let (mut rx, mut other) = (RxBatch::new(8), RxBatch::new(1));
    while all.len() < n {
        assert!(wait(&[from.fd(), to.fd()]), "{} of {n} came: {:?}", all.len(), to.stats());
        from.recv(&mut other).unwrap();
        to.recv(&mut rx).unwrap();
        rx.for_each(IcrcMode::Solve, to.stats(), |p| {
            all.push((p.flow, p.bytes[..p.bytes.len() - 4].to_vec(), p.verdict));
        });
    }
    all
}

/// Listens to all that an interface of a namespace carries.
pub struct Listener(Socket);

impl Listener {
    pub fn new(space: &Namespace) -> Self {
        let listen = || {
            let all = libc::ETH_P_ALL.to_be() >> 16;
            let domain = Domain::from(libc::AF_PACKET);
            Socket::new(domain, Type::RAW.nonblocking(), Some(all.into()))
        };
        Self(space.run(listen).unwrap())
    }

    /// The next frame of those that have come.
    pub fn next(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 70_000];
        match io::Read::read(&mut &self.0, &mut frame) {
            Ok(n) => {
                frame.truncate(n);
                Some(frame)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => None,
            Err(e) => panic!("{e}"),
        }
    }

    /// How many of them are ICMP or ICMPv6 errors.
    pub fn icmp_errors(&self) -> usize {
        let is_error = |f: &Vec<u8>| match (&f[12..14], f[14] >> 4) {
            ([8, 0], 4) => f[23] == 1 && f[34] == 3,
            ([0x86, 0xdd], 6) => f[20] == 58 && f[54] < 128,
            _ => false,
        };
        std::iter::from_fn(|| self.next()).filter(is_error).count()
    }
}
