//! Who shares an address.

use std::fmt;
use std::net::IpAddr;
use std::thread::sleep;
use std::time::Instant;

use rustix::io::Errno;

use super::message::{Answer, Pids, Request, UNSEEN};
use super::talk::{self, PATIENCE, PAUSE};
use super::{GSI_SLOT, name};
use crate::PortError;

/// A process that has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The slot: the upper six bits of its QPNs.
    pub slot: u8,
    /// The process; 0 where it is not to be seen from the broker's namespace.
    pub pid: u32,
}

/// Who shares an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The broker's process.
    pub broker: u32,
    /// Those who have a slot, by slot.
    pub holders: Vec<Holder>,
    /// Packets to QP1 that were for none of them.
    pub unrouted: u32,
}

impl Sharing {
    pub(super) fn new(pids: &Pids, unrouted: u32) -> Self {
        let all = (0..).zip(*pids).filter(|&(slot, pid)| slot != GSI_SLOT && pid != 0);
        let seen = |pid| if pid == UNSEEN { 0 } else { pid };
        let holders = all.map(|(slot, pid)| Holder { slot, pid: seen(pid) }).collect();
        Self { broker: pids[usize::from(GSI_SLOT)], holders, unrouted }
    }
}

/// Who shares `address` with this process or could: those of this user. `None` where nobody does.
///
/// # Errors
/// Where there is a broker that does not answer, or the host refuses.
pub fn who_shares(address: IpAddr) -> Result<Option<Sharing>, PortError> {
    let until = Instant::now() + PATIENCE;
    let fail = |e: Errno| PortError::socket("connection to the broker", address)(e.into());
    let to = name::of(address).map_err(fail)?;
    loop {
        let connection = match talk::connect(&to) {
            Ok(connection) => connection,
            Err(Errno::CONNREFUSED) => return Ok(None),
            Err(Errno::AGAIN) if Instant::now() < until => {
                sleep(PAUSE);
                continue;
            }
            Err(e) => return Err(fail(e)),
        };
        talk::check_peer(&connection, address)?;
        match talk::ask(&connection, Request::Who, until, drop) {
            Ok(Answer::Who(pids, unrouted)) => return Ok(Some(Sharing::new(&pids, unrouted))),
            // It ended meanwhile.
            Ok(_) | Err(Errno::CONNRESET | Errno::PIPE) if Instant::now() < until => sleep(PAUSE),
            Ok(_) | Err(_) => {
                let broker = talk::pid(&connection);
                return Err(PortError::NoAnswer { address, broker });
            }
        }
    }
}

/// Process numbers, in words.
#[derive(Debug)]
pub struct Holders(pub(super) Vec<u32>);

impl fmt::Display for Holders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// As many as help.
        const SHOWN: usize = 5;
        let mut all = self.0.clone();
        all.sort_unstable();
        all.dedup();
        let shown: Vec<_> = all.iter().take(SHOWN).map(u32::to_string).collect();
        if all.is_empty() {
            return f.write_str("processes whose broker is gone: wait until they have another");
        }
        write!(f, "the processes {}", shown.join(", "))?;
        match all.len().saturating_sub(SHOWN) {
            0 => {}
            more => write!(f, " and {more} more")?,
        }
        f.write_str(": end one")
    }
}
