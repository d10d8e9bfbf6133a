//! The bootstrap of ibv_rc_pingpong and its kin: one line each way over TCP.
//!
//! `LID:QPN:PSN:GID` in hexadecimal (4, 6, 6 and 32 digits) and a NUL, 52 bytes; the client speaks
//! first and ends with `done` (rdma-core libibverbs/examples/rc_pingpong.c).

use std::io::{self, Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs,
};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use urxe::Endpoint;
use urxe_wire::{Gid, Psn, Qpn};

use crate::capture::without_code;
use crate::ending;

#[cfg(test)]
mod tests;

/// Bytes of a line with its NUL.
const LEN: usize = 52;
/// Why two sides did not come to know each other.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    /// The host's name means nothing.
    #[error("{host}: {why}; give a name or an address of the host where the server waits")]
    Unknown {
        /// Whom we looked for.
        host: String,
        /// Why not.
        why: String,
    },
    /// No connection.
    #[error(
        "{host}, TCP port {port}: {why}; is a pingpong server waiting there? --tcp-port says where"
    )]
    Connect {
        /// Whom we asked.
        host: String,
        /// Where.
        port: u16,
        /// Why not.
        why: String,
    },
    /// The server's port cannot be had.
    #[error("cannot wait on TCP port {port}: {why}; give another by --tcp-port, 0 for any")]
    Listen {
        /// The port.
        port: u16,
        /// Why not.
        why: String,
    },
    /// The connection broke.
    #[error("exchanging addresses: {}; the peer's own message may say more", without_code(.0))]
    Broken(#[from] io::Error),
    /// The peer ended the connection.
    #[error("the peer hung up before it said who it is; its own message may say why")]
    HungUp,
    /// The peer says nothing.
    #[error("the peer said nothing for {0} s; is it a pingpong? --timeout waits longer")]
    Silent(u64),
    /// What came is no address.
    #[error("the peer sent `{0}`; wanted LID:QPN:PSN:GID, as ibv_rc_pingpong sends")]
    Line(String),
    /// The peer has no GID.
    #[error("the peer sent no GID; start it with -g and the index of its RoCEv2 GID (often 1)")]
    NoGid,
}

/// The line of an endpoint.
pub(crate) fn line(end: &Endpoint) -> [u8; LEN] {
    let mut out = [0; LEN];
    let gid = u128::from_be_bytes(Gid::from(end.address).0);
    let text = format!("0000:{:06x}:{:06x}:{gid:032x}", end.qpn.value(), end.psn.value());
    out[..text.len()].copy_from_slice(text.as_bytes());
    out
}

/// The endpoint of a line.
pub(crate) fn parse(bytes: &[u8]) -> Result<Endpoint, ExchangeError> {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let text = bytes[..end].escape_ascii().to_string();
    let fields: Vec<_> = text.split(':').collect();
    let parsed = match fields.as_slice() {
        [lid, qpn, psn, gid] if gid.len() == 32 => (|| {
            u16::from_str_radix(lid, 16).ok()?;
            let number = |t: &str| u32::from_str_radix(t, 16).ok().filter(|n| n >> 24 == 0);
            let gid = u128::from_str_radix(gid, 16).ok()?;
            Some((number(qpn)?, number(psn)?, gid))
        })(),
        _ => None,
    };
    let Some((qpn, psn, gid)) = parsed else {
        return Err(ExchangeError::Line(text));
    };
    if gid == 0 {
        return Err(ExchangeError::NoGid);
    }
    let address: IpAddr = Gid(gid.to_be_bytes()).ip();
    Ok(Endpoint { address, qpn: Qpn::new(qpn), psn: Psn::new(psn) })
}

/// The connection to the other side, and how long it may be silent.
pub(crate) struct Talk {
    stream: TcpStream,
    patience: Duration,
}

impl Talk {
    fn new(stream: TcpStream, patience: Duration) -> Result<Self, ExchangeError> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream, patience })
    }

    /// Reads until `buf` is full or the other side ends the connection; all of it within the
    /// patience, however small the pieces are in which it comes.
    fn fill(&mut self, buf: &mut [u8]) -> Result<usize, ExchangeError> {
        let until = Instant::now() + self.patience;
        let mut len = 0;
        while len < buf.len() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ExchangeError::Silent(self.patience.as_secs()));
            }
            if !ending::readable(self.stream.as_fd(), Some(until))? {
                continue;
            }
            match self.stream.read(&mut buf[len..]) {
                Ok(0) => break,
                Ok(n) => len += n,
                Err(e) if is_wait(&e) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(len)
    }

    /// Who the other side is.
    fn peer(&mut self) -> Result<Endpoint, ExchangeError> {
        let mut got = [0; LEN];
        match self.fill(&mut got)? {
            LEN => parse(&got),
            0 => Err(ExchangeError::HungUp),
            n => Err(ExchangeError::Line(got[..n].escape_ascii().to_string())),
        }
    }

    /// Says that the game is over here, and waits until it is over there: until then the other
    /// side may still need an answer of our device. A stock tool has ended the connection long
    /// before, and is not waited for.
    pub(crate) fn over(mut self) {
        if self.stream.shutdown(Shutdown::Write).is_ok() {
            // What comes of it is the other side's to tell.
            let _ = self.fill(&mut [0; 1]);
        }
    }
}

/// Whether a read came to nothing for now.
fn is_wait(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// The client's part: tells who it is, learns who the server is, and says `done` once `ready` has
/// made the QP ready.
pub(crate) fn client<E: From<ExchangeError>>(
    (host, port): (&str, u16),
    patience: Duration,
    own: &Endpoint,
    ready: impl FnOnce(&Endpoint) -> Result<(), E>,
) -> Result<(Endpoint, Talk), E> {
    let mut talk = connect(host, port, patience)?;
    talk.stream.write_all(&line(own)).map_err(ExchangeError::from)?;
    let peer = talk.peer()?;
    ready(&peer)?;
    talk.stream.write_all(b"done\0").map_err(ExchangeError::from)?;
    Ok((peer, talk))
}

fn connect(host: &str, port: u16, patience: Duration) -> Result<Talk, ExchangeError> {
    let fail = |e: &io::Error| {
        let why = without_code(e);
        ExchangeError::Connect { host: host.to_owned(), port, why }
    };
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|e| ExchangeError::Unknown { host: host.to_owned(), why: without_code(&e) })?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match connect_to(address, patience) {
            Ok(stream) => return Talk::new(stream, patience),
            Err(e) => last = e,
        }
    }
    Err(fail(&last))
}

/// As [`TcpStream::connect_timeout`], which no signal ends.
fn connect_to(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(e) => return Err(e.into()),
    }
    if !ending::writable(socket.as_fd(), Some(Instant::now() + patience))? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    sockopt::socket_error(&socket)??;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The server's part: waits for a client. `ready` makes the QP ready for it before it is told.
pub(crate) fn server<E: From<ExchangeError>>(
    port: u16,
    patience: Duration,
    own: &Endpoint,
    waiting: impl FnOnce(u16),
    ready: impl FnOnce(&Endpoint) -> Result<(), E>,
) -> Result<(Endpoint, Talk), E> {
    let broken = |e: io::Error| ExchangeError::from(e);
    let listener = listen(port)?;
    waiting(listener.local_addr().map_err(broken)?.port());
    ending::readable(listener.as_fd(), None).map_err(broken)?;
    let (stream, _) = listener.accept().map_err(broken)?;
    drop(listener);
    let mut talk = Talk::new(stream, patience)?;
    let peer = talk.peer()?;
    ready(&peer)?;
    talk.stream.write_all(&line(own)).map_err(broken)?;
    // Some end the connection instead of saying `done`.
    talk.fill(&mut [0; 5])?;
    Ok((peer, talk))
}

/// Waits on all addresses, of both families where the host has both.
fn listen(port: u16) -> Result<TcpListener, ExchangeError> {
    let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port));
    both.or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
        .map_err(|e| ExchangeError::Listen { port, why: without_code(&e) })
}
