//! The bootstrap of ibv_rc_pingpong and its kin: one line each way over TCP.
//!
//! `LID:QPN:PSN:GID` in hexadecimal (4, 6, 6 and 32 digits) and a NUL, 52 bytes; the client speaks
//! first and ends with `done` (rdma-core libibverbs/examples/rc_pingpong.c).

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use urxe::Endpoint;
use urxe_wire::{Gid, Psn, Qpn};

#[cfg(test)]
mod tests;

/// Bytes of a line with its NUL.
const LEN: usize = 52;
/// How long the other side may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why two sides did not come to know each other.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    /// No connection.
    #[error("{host}:{port}: {source}; is a pingpong server waiting there?")]
    Connect {
        /// Whom we asked.
        host: String,
        /// Where.
        port: u16,
        /// Why not.
        source: io::Error,
    },
    /// The server's port cannot be had.
    #[error("cannot wait on TCP port {port}: {source}; give another by --tcp-port")]
    Listen {
        /// The port.
        port: u16,
        /// Why not.
        source: io::Error,
    },
    /// The connection broke.
    #[error("while exchanging addresses: {0}")]
    Broken(#[from] io::Error),
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
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
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

fn patient(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)
}

/// The client's part: tells who it is, gives who the server is.
pub(crate) fn client(host: &str, port: u16, own: &Endpoint) -> Result<Client, ExchangeError> {
    let fail = |source| ExchangeError::Connect { host: host.to_owned(), port, source };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut stream = None;
    for address in (host, port).to_socket_addrs().map_err(fail)? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(connected) => {
                stream = Some(connected);
                break;
            }
            Err(e) => last = e,
        }
    }
    let Some(mut stream) = stream else {
        return Err(fail(last));
    };
    patient(&stream)?;
    stream.write_all(&line(own))?;
    let mut got = [0; LEN];
    stream.read_exact(&mut got)?;
    Ok(Client { peer: parse(&got)?, stream })
}

/// A client that knows its server, which waits to hear that it does.
pub(crate) struct Client {
    /// The server.
    pub(crate) peer: Endpoint,
    stream: TcpStream,
}

impl Client {
    /// Tells the server to go on.
    pub(crate) fn done(mut self) -> Result<(), ExchangeError> {
        Ok(self.stream.write_all(b"done\0")?)
    }
}

/// The server's part: waits for a client. `ready` makes the QP ready for it before it is told.
pub(crate) fn server<E>(
    port: u16,
    own: &Endpoint,
    waiting: impl FnOnce(u16),
    ready: impl FnOnce(&Endpoint) -> Result<(), E>,
) -> Result<Endpoint, E>
where
    E: From<ExchangeError>,
{
    let broken = |e: io::Error| ExchangeError::from(e);
    let listen = |source| ExchangeError::Listen { port, source };
    let listener = TcpListener::bind(("0.0.0.0", port)).map_err(listen)?;
    waiting(listener.local_addr().map_err(broken)?.port());
    let (mut stream, _) = listener.accept().map_err(broken)?;
    patient(&stream).map_err(broken)?;
    let mut got = [0; LEN];
    stream.read_exact(&mut got).map_err(broken)?;
    let peer = parse(&got)?;
    ready(&peer)?;
    stream.write_all(&line(own)).map_err(broken)?;
    // Some end the connection instead of saying `done`.
    let mut done = [0; 5];
    let _ = stream.read(&mut done).map_err(broken)?;
    Ok(peer)
}
