//! What two QPs must know of each other, as a value and as a line of text.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use urxe_wire::{Psn, Qpn};

use crate::Error;

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

#[cfg(test)]
mod tests;
