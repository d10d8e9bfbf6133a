//! Socket addresses, from C and to C.

use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use libc::{sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage};

use crate::call::Fail;

/// A family of `<sys/socket.h>` as addresses have it.
const fn family(family: i32) -> sa_family_t {
    // AF_INET and AF_INET6 are 2 and 10.
    family.to_le_bytes()[0] as sa_family_t
}

pub(super) const INET: sa_family_t = family(libc::AF_INET);
pub(super) const INET6: sa_family_t = family(libc::AF_INET6);

/// The family of an address, of which there may be no more than that.
///
/// # Safety
/// `from` points to a family at least.
pub(super) unsafe fn family_of(from: *const sockaddr) -> sa_family_t {
    let at = from.cast::<u8>().wrapping_add(std::mem::offset_of!(sockaddr, sa_family));
    // SAFETY: the caller's; C need not have aligned it.
    unsafe { at.cast::<sa_family_t>().read_unaligned() }
}

/// The address that C means.
///
/// # Safety
/// `from` is null or points to an address as long as its family's are.
pub(super) unsafe fn read(from: *const sockaddr, what: &str) -> Result<SocketAddr, Fail> {
    if from.is_null() {
        return Err(Fail::invalid(format!("{what} is null")));
    }
    // SAFETY: an address has a family, whatever it is.
    let family = unsafe { family_of(from) };
    match family {
        INET => {
            // SAFETY: one of this family has this length.
            let in4 = unsafe { from.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(in4.sin_addr.s_addr.to_ne_bytes());
            Ok(SocketAddr::new(ip.into(), u16::from_be(in4.sin_port)))
        }
        INET6 => {
            // SAFETY: one of this family has this length.
            let in6 = unsafe { from.cast::<sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(in6.sin6_addr.s6_addr);
            let port = u16::from_be(in6.sin6_port);
            Ok(SocketAddrV6::new(ip, port, 0, in6.sin6_scope_id).into())
        }
        other => Err(Fail::new(
            libc::EAFNOSUPPORT,
            format!("{what} is of family {other}; wanted AF_INET or AF_INET6"),
        )),
    }
}

/// The address as C is told of it.
pub(super) fn write(address: SocketAddr) -> sockaddr_storage {
    let mut all = none();
    let to = &raw mut all;
    match address {
        SocketAddr::V4(v4) => {
            let in4 = sockaddr_in {
                sin_family: INET,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: a storage has room for any, and its alignment.
            unsafe { to.cast::<sockaddr_in>().write(in4) };
        }
        SocketAddr::V6(v6) => {
            let in6 = sockaddr_in6 {
                sin6_family: INET6,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: a storage has room for any, and its alignment.
            unsafe { to.cast::<sockaddr_in6>().write(in6) };
        }
    }
    all
}

/// No address.
pub(super) fn none() -> sockaddr_storage {
    // SAFETY: plain numbers.
    unsafe { MaybeUninit::zeroed().assume_init() }
}
