//! What two QPs must know of each other, as a value and as a line of text.

use std::fmt;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::str::FromStr;

use urxe_wire::{Psn, Qpn};

use crate::{Error, Qp};

/// A QP as its peer needs to know it. Its text, `127.0.0.1 17 99`, can travel over anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address of its device.
    pub address: IpAddr,
    /// Its number.
    pub qpn: Qpn,
    /// The first PSN it sends.
    pub psn: Psn,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.address, self.qpn.value(), self.psn.value())
    }
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |problem| Error::Endpoint { text: text.to_owned(), problem };
        let mut parts = text.split_whitespace();
        let mut next = || parts.next().ok_or(wrong("it has fewer than three parts"));
        let (address, qpn, psn) = (next()?, next()?, next()?);
        if parts.next().is_some() {
            return Err(wrong("it has more than three parts"));
        }
        let number = |text: &str| text.parse().ok().filter(|&n: &u32| n < 1 << 24);
        Ok(Self {
            address: address.parse().map_err(|_| wrong("its address is none"))?,
            qpn: Qpn::new(number(qpn).ok_or(wrong("its QPN is not 0 to 16777215"))?),
            psn: Psn::new(number(psn).ok_or(wrong("its PSN is not 0 to 16777215"))?),
        })
    }
}

/// Bytes of the longest line that is read.
const LONGEST: usize = 128;
/// What a side says once its QP can take packets.
const READY: &str = "ready";

/// Tells a peer of our endpoint and is told of its, over a stream such as a TCP connection: each
/// sends a line and reads one. The stream should have time-outs, or it waits for ever.
///
/// # Errors
/// Where the stream fails or ends, or what comes is no endpoint.
pub fn over(stream: &mut (impl Read + Write), own: &Endpoint) -> Result<Endpoint, Error> {
    write_line(stream, &own.to_string())?;
    read_line(stream)?.parse()
}

/// As [`over`], and connects `qp` with the peer's; when it returns, both sides are ready to
/// receive.
///
/// ```
/// use std::net::{TcpListener, TcpStream};
/// use urxe::{Config, Context, QpKind, exchange};
///
/// let listener = TcpListener::bind("127.0.0.1:0").unwrap();
/// let to = listener.local_addr().unwrap();
/// let far = std::thread::spawn(move || {
///     let context = Context::open(&Config::default())?;
///     let (pd, cq) = (context.alloc_pd()?, context.create_cq(16)?);
///     let qp = pd.qp(QpKind::Rc).cq(&cq).build()?;
///     exchange::connect(&mut listener.accept().unwrap().0, &qp)
/// });
/// let context = Context::open(&Config::default())?;
/// let (pd, cq) = (context.alloc_pd()?, context.create_cq(16)?);
/// let qp = pd.qp(QpKind::Rc).cq(&cq).build()?;
/// exchange::connect(&mut TcpStream::connect(to).unwrap(), &qp)?;
/// assert_eq!(far.join().unwrap()?, qp.endpoint());
/// # Ok::<(), urxe::Error>(())
/// ```
///
/// # Errors
/// As [`over`], and as [`Qp::connect`].
pub fn connect(stream: &mut (impl Read + Write), qp: &Qp) -> Result<Endpoint, Error> {
    let peer = over(stream, &qp.endpoint())?;
    qp.connect(&peer)?;
    write_line(stream, READY)?;
    let got = read_line(stream)?;
    if got == READY { Ok(peer) } else { Err(Error::Exchange { got, wanted: READY }) }
}

fn write_line(stream: &mut impl Write, line: &str) -> Result<(), Error> {
    stream.write_all(format!("{line}\n").as_bytes()).map_err(Error::host("writing to the peer"))
}

/// Byte by byte, so as not to take what comes after the line.
fn read_line(stream: &mut impl Read) -> Result<String, Error> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        stream.read_exact(&mut byte).map_err(Error::host("reading from the peer"))?;
        if byte == *b"\n" {
            return Ok(String::from_utf8_lossy(&line).into_owned());
        }
        line.extend(byte);
        if line.len() > LONGEST {
            let got = String::from_utf8_lossy(&line).into_owned();
            return Err(Error::Exchange { got, wanted: "a short line" });
        }
    }
}

#[cfg(test)]
mod tests;
