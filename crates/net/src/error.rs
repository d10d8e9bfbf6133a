//! Why a port could not be opened or set.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use urxe_wire::Mtu;

use crate::shared::Holders;

/// Why a port could not be opened or set. Says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The address is not of this host.
    #[error("{0} is no address of this host; `ip address` lists them, 127.0.0.1 always is one")]
    NotOurs(IpAddr),
    /// Stands for any address.
    #[error(
        "{0} stands for any address, and a port has one: give one of this host's (`ip address` \
         lists them), or leave it out for the next free one of 127.0.0.0/8"
    )]
    Unspecified(IpAddr),
    /// A multicast group, which no port has for its own.
    #[error(
        "{0} is a multicast group: give an address of this host (`ip address` lists them); its QPs \
         can join groups"
    )]
    Multicast(IpAddr),
    /// An IPv4 address as IPv6 writes it.
    #[error("{0} is an IPv4 address written as IPv6: give {v4}", v4 = .0.to_canonical())]
    Mapped(IpAddr),
    /// For all hosts of a network.
    #[error(
        "{0} is a broadcast address, for all hosts of a network: give one of this host's own (`ip \
         address` lists them)"
    )]
    Broadcast(IpAddr),
    /// Somebody else has UDP port 4791 of this address.
    #[error(
        "UDP port 4791 of {0} is taken: another program or user, a urxe that does not share it, or \
         the kernel's rdma_rxe has it (`urxe doctor` tells); stop it, or give another address (on \
         loopback any of 127.0.0.0/8)"
    )]
    Taken(IpAddr),
    /// Another user shares the address.
    #[error(
        "{address} is shared by the processes of user {user}, and a user's processes share it with \
         nobody else's: give another address, or --port raw:INTERFACE on an address of its own"
    )]
    OtherUser {
        /// The address.
        address: IpAddr,
        /// The other user's number.
        user: u32,
    },
    /// As many processes share the address as can.
    #[error(
        "all {} places on {address} are taken, by {holders}, or give another address (`urxe \
         ports` lists them)",
        crate::shared::SEATS
    )]
    NoSlot {
        /// The address.
        address: IpAddr,
        /// Those who have them.
        holders: Holders,
    },
    /// Another process that shares the address serves the service.
    #[error(
        "service {service:#018x} on {address} is another process's (of rdma_cm: its port is \
         taken); choose another, or end that process (`urxe ports` lists them)"
    )]
    ServiceTaken {
        /// The service id.
        service: u64,
        /// The address.
        address: IpAddr,
    },
    /// The broker of a shared address does not answer.
    #[error(
        "the broker of {address}, process {broker}, does not answer: let it go on if it is \
         stopped (kill -CONT), else end it (kill), and try again"
    )]
    NoAnswer {
        /// The address.
        address: IpAddr,
        /// Its process; 0 where that is not to be seen.
        broker: u32,
    },
    /// The broker of a shared address is gone for good.
    #[error(
        "the broker of {0} is gone and no other could be started, as was told then: open the \
         device anew"
    )]
    NoBroker(IpAddr),
    /// The user has too many descriptors on their way from process to process.
    #[error(
        "{address} cannot be shared: its sockets are kept on their way between processes, and of \
         such descriptors a user may have as many as `ulimit -n` says: raise that, or do not \
         share (--shared off)"
    )]
    TooManyInFlight {
        /// The address.
        address: IpAddr,
    },
    /// The address means an interface too, which a UDP port does not keep.
    #[error(
        "{0} is link-local, and a udp port cannot tell on which link; give another address of the \
         interface, or --port raw:INTERFACE"
    )]
    LinkLocal(IpAddr),
    /// The address is no multicast group of the port's family.
    #[error("{group} is no multicast group that a port of {address} can join")]
    NotAGroup {
        /// The address given.
        group: IpAddr,
        /// The port's own.
        address: IpAddr,
    },
    /// The group was not joined.
    #[error("the group {0} was not joined")]
    NotJoined(IpAddr),
    /// The interface carries no RoCE packet.
    #[error("the MTU of {interface} is {mtu}; the smallest RoCE path MTU needs 344")]
    MtuTooSmall {
        /// The interface.
        interface: String,
        /// Its MTU, bytes.
        mtu: u32,
    },
    /// A path MTU that the interface cannot carry.
    #[error(
        "path MTU {wanted} does not fit {interface}, whose MTU is {mtu}; at most {most} does: \
         give --mtu {most}, or raise the interface's MTU"
    )]
    MtuTooLarge {
        /// The path MTU asked for, bytes.
        wanted: u32,
        /// The interface.
        interface: String,
        /// Its MTU, bytes.
        mtu: u32,
        /// The greatest path MTU that fits, bytes.
        most: u32,
    },
    /// A path MTU that the way to a peer cannot carry, though the interface can.
    #[error(
        "path MTU {wanted} does not fit the path to {to}, which carries packets of {carries} \
         bytes; {}",
        most.map_or_else(
            || "the smallest RoCE path MTU needs 344".to_owned(),
            |most| format!("at most {most} does: give --mtu {most} (URXE_MTU)"),
        )
    )]
    PathTooNarrow {
        /// The peer.
        to: IpAddr,
        /// The path MTU asked for, bytes.
        wanted: u32,
        /// Bytes of the largest IP packet that it carries.
        carries: u32,
        /// The greatest path MTU that fits, bytes, if one does.
        most: Option<u32>,
    },
    /// A peer of the other IP version, to which no packet from here can go.
    #[error(
        "{to} cannot be reached from {from}: one is IPv4, the other IPv6; give an --addr \
         (URXE_ADDR) of the peer's version"
    )]
    OtherVersion {
        /// The peer.
        to: IpAddr,
        /// The port's address.
        from: IpAddr,
    },
    /// There is no interface of this name.
    #[error("there is no interface {0}; `ip link` lists them")]
    NoInterface(String),
    /// The interface is there, the address on another.
    #[error(
        "{address} is no address of {interface}, which has {has}; give one that it has, or leave \
         the interface out"
    )]
    NotOfInterface {
        /// The address given.
        address: IpAddr,
        /// The interface given.
        interface: String,
        /// An address of it.
        has: IpAddr,
    },
    /// The interface is down.
    #[error("the interface {0} is down; `ip link set {0} up` brings it up")]
    Down(String),
    /// The interface carries no Ethernet frames.
    #[error("{0} carries no Ethernet frames, which a raw port sends; use a udp port on it")]
    NotEthernet(String),
    /// The program may not open packet sockets.
    #[error(
        "a raw port on {0} needs the right CAP_NET_RAW: run as root, or give the program the right \
         (`setcap cap_net_raw+ep PROGRAM`), or use a udp port, which needs none"
    )]
    NoRights(String),
    /// A socket call failed.
    #[error("{call} of {address}: {source}; {}", what_to_do(source))]
    Socket {
        /// What failed.
        call: &'static str,
        /// The port's address.
        address: IpAddr,
        /// Why.
        source: io::Error,
    },
}

/// What to do about a call that the host refused.
#[must_use]
pub fn what_to_do(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            "this process has no descriptor left: close some, or raise `ulimit -n`"
        }
        Some(libc::ENFILE) => "the host has no descriptor left: raise its sysctl fs.file-max",
        Some(libc::ENOMEM | libc::ENOBUFS) => "the host has no memory for it: free some",
        Some(libc::EAGAIN) => {
            "the host has too many of these: end some processes, or raise `ulimit -u`"
        }
        Some(libc::EPERM | libc::EACCES) => {
            "a rule of this host forbids it: look at its container, seccomp or SELinux settings"
        }
        Some(
            libc::ENOSYS
            | libc::EOPNOTSUPP
            | libc::ENOPROTOOPT
            | libc::EAFNOSUPPORT
            | libc::EPROTONOSUPPORT,
        ) => "this kernel cannot do it: take another, or another port or address family",
        _ => "`urxe doctor` looks for the cause",
    }
}

impl PortError {
    /// Fails where `wanted` does not fit the path to `to`, which carries packets of `carries`
    /// bytes.
    ///
    /// # Errors
    /// [`Self::PathTooNarrow`].
    pub fn check_path(to: IpAddr, wanted: Mtu, carries: u32) -> Result<(), Self> {
        let most = Mtu::largest_for_link(carries);
        if most.is_some_and(|most| wanted <= most) {
            return Ok(());
        }
        let (wanted, most) = (wanted.bytes(), most.map(Mtu::bytes));
        Err(Self::PathTooNarrow { to, wanted, carries, most })
    }

    /// Whether packets of `from` can go to `to`: both are IPv4, or both IPv6.
    ///
    /// # Errors
    /// [`Self::OtherVersion`].
    pub fn check_version(from: IpAddr, to: IpAddr) -> Result<(), Self> {
        let same = from.is_ipv4() == to.is_ipv4();
        if same { Ok(()) } else { Err(Self::OtherVersion { to, from }) }
    }

    /// Whether `address` can be a port's own, as far as its text tells.
    pub(crate) fn check_own(address: IpAddr) -> Result<(), Self> {
        match address {
            _ if address.is_unspecified() => Err(Self::Unspecified(address)),
            _ if address.is_multicast() => Err(Self::Multicast(address)),
            _ if address == IpAddr::V4(Ipv4Addr::BROADCAST) => Err(Self::Broadcast(address)),
            _ if address.to_canonical() != address => Err(Self::Mapped(address)),
            _ => Ok(()),
        }
    }

    pub(crate) fn socket(call: &'static str, address: IpAddr) -> impl Fn(io::Error) -> Self {
        move |source| Self::Socket { call, address, source }
    }
}

#[cfg(test)]
mod tests;
