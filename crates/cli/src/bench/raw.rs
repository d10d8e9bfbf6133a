//! The baselines: UDP and TCP as fast as plain sockets get.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};

use super::case::Datagrams;
use super::peer::{Orders, Peer, Took};
use super::side::{PATIENCE, pattern, spin};
use super::stats::{count, float};
use super::work::{Counts, Run, Sample, round_trips};
use crate::command::Failure;

/// Bytes that may wait in a socket: as many as a device asks for.
const BUFFER: usize = 4 << 20;
/// What one call sends at most: one IPv4 datagram's bytes, and the segments that kernels take.
const MOST: (usize, usize) = (65_507, 64);
/// Bytes of a call on a TCP stream.
const CHUNK: usize = 128 << 10;
/// Calls between two looks at the clock.
const CALLS: u32 = 16;
/// What the datagrams are made from.
const SEED: u64 = 7;

/// A socket on loopback.
pub(super) fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    // As large as we may; else as large as the host lets anyone.
    if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
    }
    if setsockopt(&socket, sockopt::SndBufForce, &BUFFER).is_err() {
        setsockopt(&socket, sockopt::SndBuf, &BUFFER)?;
    }
    Ok(socket)
}

/// A sender of datagrams.
pub(super) struct Sending {
    pub(super) datagrams: Datagrams,
    pub(super) counts: Counts,
}

impl Sending {
    /// Sends for so long; what arrived.
    fn send(&self, peer: &mut Peer, time: Duration) -> Result<Took, Failure> {
        let Datagrams { bytes, offload, .. } = self.datagrams;
        let to = peer.take_datagrams(bytes, offload)?;
        let socket = socket()?;
        socket.connect(to)?;
        let mut each_call = 1;
        if offload {
            let segment = i32::try_from(bytes)?;
            setsockopt(&socket, sockopt::UdpGsoSegment, &segment)
                .map_err(|e| format!("this host has no UDP_SEGMENT ({e}), so no baseline"))?;
            each_call = (MOST.0 / bytes).min(MOST.1);
        }
        let run = pattern(SEED, bytes).repeat(each_call);
        let start = Instant::now();
        while start.elapsed() < time {
            for _ in 0..CALLS {
                match socket.send(&run) {
                    Ok(_) => {}
                    // What finds no room is lost, as on any link.
                    Err(e) if e.raw_os_error() == Some(Errno::ENOBUFS as i32) => {}
                    Err(e) => return Err(format!("raw UDP: {e}").into()),
                }
            }
        }
        peer.stop_taking()
    }
}

impl Run for Sending {
    fn round(&mut self, peer: &mut Peer, time: Duration) -> Result<Sample, Failure> {
        let Datagrams { payload, bytes, .. } = self.datagrams;
        let (start, mut time) = (Instant::now(), time);
        let Took { bytes: all, nanos } = loop {
            let took = self.send(peer, time)?;
            if took.nanos != 0 {
                break took;
            }
            // The receiver hardly ran in that time, or in none of it.
            if start.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                return Err(format!("raw UDP: too little arrived within {seconds} s").into());
            }
            time = time.max(Duration::from_millis(1)) * 2;
        };
        let datagrams_per_second = float(all) / count(bytes) / (float(nanos) / 1e9);
        let value = match self.counts {
            Counts::Bytes => datagrams_per_second * count(payload),
            Counts::Messages => datagrams_per_second,
        };
        Ok(Sample { value, more: Vec::new() })
    }
}

/// A receiver of datagrams of one size.
pub(super) struct Sink {
    socket: UdpSocket,
    bytes: usize,
}

impl Sink {
    pub(super) fn open(bytes: usize, offload: bool) -> Result<Self, Failure> {
        let socket = socket()?;
        if offload {
            setsockopt(&socket, sockopt::UdpGroSegment, &true)
                .map_err(|e| format!("this host has no UDP_GRO ({e}), so no baseline"))?;
        }
        socket.set_read_timeout(Some(Duration::from_millis(10)))?;
        Ok(Self { socket, bytes })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Takes what comes until it is told to stop, and nothing more waits. Of too little to tell
    /// how fast it came, nothing is told.
    pub(super) fn take(&self, orders: &Orders) -> Result<Took, Failure> {
        let (mut buffer, mut stopped) = (vec![0; 1 << 16], false);
        let (mut bytes, mut calls, mut start) = (0, 0, None);
        // What the rate is made of: the last look at the clock.
        let mut took = Took::default();
        loop {
            let got = match self.socket.recv(&mut buffer) {
                Ok(got) => got,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if stopped {
                        break;
                    }
                    stopped = orders.stopped();
                    continue;
                }
                Err(e) => return Err(format!("raw UDP: {e}").into()),
            };
            let Some(start) = start else {
                self.look_at(&buffer[..got])?;
                start = Some(Instant::now());
                continue;
            };
            bytes += got as u64;
            calls += 1;
            if calls % CALLS == 0 {
                took = Took { bytes, nanos: u64::try_from(start.elapsed().as_nanos())? };
            }
        }
        Ok(took)
    }

    /// What came must be what was sent.
    fn look_at(&self, got: &[u8]) -> Result<(), Failure> {
        let sent = pattern(SEED, self.bytes);
        if got.is_empty() || got.chunks(self.bytes).any(|one| one != sent) {
            return Err("raw UDP: wrong data arrived".into());
        }
        Ok(())
    }
}

/// Datagrams there and back.
pub(super) struct Echo {
    pub(super) bytes: usize,
    pub(super) spins: bool,
}

impl Run for Echo {
    fn round(&mut self, peer: &mut Peer, time: Duration) -> Result<Sample, Failure> {
        let to = peer.echo(self.bytes, self.spins)?;
        let socket = socket()?;
        socket.connect(to)?;
        socket.set_nonblocking(self.spins)?;
        if !self.spins {
            socket.set_read_timeout(Some(PATIENCE))?;
        }
        let (mut out, mut back) = (vec![0_u8; self.bytes], vec![0_u8; self.bytes + 1]);
        let (start, mut nanos) = (Instant::now(), Vec::new());
        let mut before = start;
        while before.duration_since(start) < time {
            out[0] = out[0].wrapping_add(1);
            socket.send(&out)?;
            let got = if self.spins {
                spin(|| try_recv(&socket, &mut back), || false)?.unwrap_or(0)
            } else {
                socket.recv(&mut back)?
            };
            if back[..got] != out {
                return Err("raw UDP: wrong data came back".into());
            }
            let now = Instant::now();
            nanos.push(u64::try_from(now.duration_since(before).as_nanos())?);
            before = now;
        }
        socket.set_nonblocking(false)?;
        socket.send(&[])?;
        peer.done_by_itself()?;
        Ok(round_trips(nanos))
    }
}

fn try_recv(socket: &UdpSocket, into: &mut [u8]) -> Result<Option<usize>, Failure> {
    match socket.recv(into) {
        Ok(n) => Ok(Some(n)),
        Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(e) => Err(format!("raw UDP: {e}").into()),
    }
}

/// Sends back what comes, until something of another length does.
pub(super) fn echo(socket: &UdpSocket, bytes: usize, spins: bool) -> Result<(), Failure> {
    let mut buffer = vec![0; bytes + 1];
    let (first, from) = socket.recv_from(&mut buffer)?;
    socket.connect(from)?;
    socket.set_nonblocking(spins)?;
    let mut got = first;
    while got == bytes {
        socket.send(&buffer[..got])?;
        got = if spins {
            spin(|| try_recv(socket, &mut buffer), || false)?.unwrap_or(0)
        } else {
            socket.recv(&mut buffer)?
        };
    }
    Ok(())
}

/// One TCP stream.
pub(super) struct Tcp;

impl Run for Tcp {
    fn round(&mut self, peer: &mut Peer, time: Duration) -> Result<Sample, Failure> {
        let to = peer.take_stream()?;
        let mut stream = TcpStream::connect(to)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (chunk, start) = (pattern(SEED, CHUNK), Instant::now());
        while start.elapsed() < time {
            stream.write_all(&chunk).map_err(|e| format!("TCP: {e}"))?;
        }
        drop(stream);
        let Took { bytes, nanos } = peer.took()?;
        Ok(Sample { value: float(bytes) / (float(nanos) / 1e9), more: Vec::new() })
    }
}

pub(super) fn listen() -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
}

/// Takes a stream to its end.
pub(super) fn take_stream(listener: &TcpListener) -> Result<Took, Failure> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; CHUNK];
    let (start, mut bytes) = (Instant::now(), 0);
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            got => bytes += got as u64,
        }
    }
    if !bytes.is_multiple_of(CHUNK as u64) {
        return Err(format!("TCP: {bytes} bytes came, no multiple of {CHUNK}").into());
    }
    Ok(Took { bytes, nanos: u64::try_from(start.elapsed().as_nanos())?.max(1) })
}
