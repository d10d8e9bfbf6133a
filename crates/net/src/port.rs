//! What all ports can do.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::time::Duration;

use urxe_wire::Mtu;

use crate::{PortError, PortStats, RxBatch, TxBatch};

/// A way for packets to leave and arrive.
pub trait Port: Send + Sync + fmt::Debug {
    /// What this port is and can.
    fn caps(&self) -> &PortCaps;

    /// Sends from the front of `batch` and removes what was sent or cannot ever be. What is left
    /// found no room: try again when [`Self::wait_writable`] says so.
    ///
    /// # Errors
    /// Where the port itself is broken; a packet that cannot be sent is counted instead.
    fn send(&self, batch: &mut TxBatch) -> io::Result<()>;

    /// Fills `batch` with what has arrived, without waiting; gives how many packets that is, before
    /// any ICRC is looked at.
    ///
    /// # Errors
    /// Where the port itself is broken.
    fn recv(&self, batch: &mut RxBatch) -> io::Result<usize>;

    /// A descriptor that is readable when [`Self::recv`] has something.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Waits until the port can send again, or `timeout_ms` have passed.
    ///
    /// # Errors
    /// Where waiting fails.
    fn wait_writable(&self, timeout_ms: i32) -> io::Result<()>;

    /// Lets packets to a multicast group in.
    ///
    /// # Errors
    /// Where the address is no group of this port's family, or the host refuses.
    fn join(&self, group: IpAddr) -> Result<(), PortError>;

    /// Lets packets to a multicast group in no longer.
    ///
    /// # Errors
    /// Where the group was not joined.
    fn leave(&self, group: IpAddr) -> Result<(), PortError>;

    /// Bytes of the largest IP packet that the way to `to` carries, where the host knows more of it
    /// than the interface's MTU: a route's own, or what a router has said.
    fn route_mtu(&self, to: IpAddr) -> Option<u32> {
        let _ = to;
        None
    }

    /// Whether packets to `to` were refused as too long for the way there.
    fn is_narrow(&self, to: IpAddr) -> bool {
        let _ = to;
        false
    }

    /// How long until the port has something to do though nothing arrives; `None`: no such thing is
    /// waiting. [`Self::recv`] does it; that [`Self::fd`] is readable then is not promised.
    fn next_deadline(&self) -> Option<Duration> {
        None
    }

    /// Lets the MADs to QP1 that open an exchange for `service` (a service id: CM REQ, SIDR REQ)
    /// in, or no longer. Only a port whose address is shared must be told: others get all MADs. The
    /// rest of an exchange comes to whoever's [`PortCaps::slot`] is the upper six bits of the
    /// communication or request id that the receiver gave it.
    ///
    /// # Errors
    /// Where the service is another process's, or the broker does not answer.
    fn serve(&self, service: u64, on: bool) -> Result<(), PortError> {
        let _ = (service, on);
        Ok(())
    }

    /// What it counts.
    fn stats(&self) -> &PortStats;

    /// Whether the port could carry packets now: its interface is there and up, and has its
    /// address.
    ///
    /// # Errors
    /// What is in the way.
    fn check(&self) -> Result<(), PortError>;
}

/// Passes methods of [`Port`] on to the port below, each by its name: a port that stands on another
/// names all that it does not do itself, so that none is forgotten to a default.
macro_rules! pass_on {
    ($this:ident => $below:expr; $($method:ident)*) => {
        $(crate::port::pass_on!(@$method $this, $below);)*
    };
    (@caps $this:ident, $below:expr) => {
        fn caps(&$this) -> &$crate::PortCaps {
            $below.caps()
        }
    };
    (@send $this:ident, $below:expr) => {
        fn send(&$this, batch: &mut $crate::TxBatch) -> std::io::Result<()> {
            $below.send(batch)
        }
    };
    (@recv $this:ident, $below:expr) => {
        fn recv(&$this, batch: &mut $crate::RxBatch) -> std::io::Result<usize> {
            $below.recv(batch)
        }
    };
    (@fd $this:ident, $below:expr) => {
        fn fd(&$this) -> std::os::fd::BorrowedFd<'_> {
            $below.fd()
        }
    };
    (@wait_writable $this:ident, $below:expr) => {
        fn wait_writable(&$this, timeout_ms: i32) -> std::io::Result<()> {
            $below.wait_writable(timeout_ms)
        }
    };
    (@join $this:ident, $below:expr) => {
        fn join(&$this, group: std::net::IpAddr) -> Result<(), $crate::PortError> {
            $below.join(group)
        }
    };
    (@leave $this:ident, $below:expr) => {
        fn leave(&$this, group: std::net::IpAddr) -> Result<(), $crate::PortError> {
            $below.leave(group)
        }
    };
    (@route_mtu $this:ident, $below:expr) => {
        fn route_mtu(&$this, to: std::net::IpAddr) -> Option<u32> {
            $below.route_mtu(to)
        }
    };
    (@is_narrow $this:ident, $below:expr) => {
        fn is_narrow(&$this, to: std::net::IpAddr) -> bool {
            $below.is_narrow(to)
        }
    };
    (@next_deadline $this:ident, $below:expr) => {
        fn next_deadline(&$this) -> Option<std::time::Duration> {
            $below.next_deadline()
        }
    };
    (@serve $this:ident, $below:expr) => {
        fn serve(&$this, service: u64, on: bool) -> Result<(), $crate::PortError> {
            $below.serve(service, on)
        }
    };
    (@stats $this:ident, $below:expr) => {
        fn stats(&$this) -> &$crate::PortStats {
            $below.stats()
        }
    };
    (@check $this:ident, $below:expr) => {
        fn check(&$this) -> Result<(), $crate::PortError> {
            $below.check()
        }
    };
}
pub(crate) use pass_on;

impl<P: Port + ?Sized> Port for Box<P> {
    pass_on! {
        self => (**self);
        caps send recv fd wait_writable join leave route_mtu is_narrow next_deadline serve stats
        check
    }
}

/// What a port is and can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortCaps {
    /// `udp` or `raw`.
    pub kind: &'static str,
    /// Our address on it.
    pub address: IpAddr,
    /// The interface the address is on; empty where it is not known.
    pub interface: String,
    /// MTU of that interface, bytes.
    pub link_mtu: u32,
    /// The largest path MTU whose packets fit.
    pub mtu: Mtu,
    /// Whether one call sends many packets of one size (UDP_SEGMENT).
    pub gso: bool,
    /// Whether one call brings many packets of one size (UDP_GRO).
    pub gro: bool,
    /// Whether all of a packet that the ICRC covers can be seen.
    pub sees_ip_header: bool,
    /// Which slot of its address it has, where several processes share it: the upper six bits of
    /// its QPNs.
    pub slot: Option<u8>,
}

/// How the ICRC of what arrives is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IcrcMode {
    /// Right, or right under the one IP identification that would make it so.
    #[default]
    Solve,
    /// Right under an identification that is expected, no other: 0, or the packet's place in the
    /// run that it came in, as the host numbers segments.
    Strict,
    /// Not at all.
    Off,
}

/// Not the name of an [`IcrcMode`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no way to check the ICRC; wanted strict, solve or off")]
pub struct NotAnIcrcMode(String);

impl FromStr for IcrcMode {
    type Err = NotAnIcrcMode;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "solve" => Ok(Self::Solve),
            "strict" => Ok(Self::Strict),
            "off" => Ok(Self::Off),
            _ => Err(NotAnIcrcMode(name.to_owned())),
        }
    }
}
