//! `rdma_getaddrinfo`: names and services, looked up by the C library.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use libc::{addrinfo, sockaddr};

use crate::call::{Fail, or, output};
use crate::layout::{RdmaAddrinfo, Zero};

use super::id::{PS_IB, PS_TCP, PS_UDP, QPT_RC, QPT_UD};

/// `RAI_PASSIVE`, `RAI_NUMERICHOST`, `RAI_FAMILY`.
pub(super) const PASSIVE: c_int = 1;
const NUMERIC_HOST: c_int = 2;
const FAMILY: c_int = 8;

/// Memory of the C library's, for C to look at, until [`freeaddrinfo`].
fn copy(from: *const c_void, len: usize) -> Result<*mut c_void, Fail> {
    // SAFETY: a plain allocation.
    let to = unsafe { libc::malloc(len.max(1)) };
    if to.is_null() {
        return Err(Fail::host("malloc"));
    }
    // SAFETY: `to` has room; each caller gives that many readable bytes.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(from.cast(), len) };
    Ok(to)
}

/// What is made so far; freed if it is not handed out.
struct Made(*mut RdmaAddrinfo);

impl Made {
    fn new() -> Result<Self, Fail> {
        let zero = RdmaAddrinfo::zero();
        Ok(Self(copy((&raw const zero).cast(), size_of::<RdmaAddrinfo>())?.cast()))
    }

    fn get(&mut self) -> &mut RdmaAddrinfo {
        // SAFETY: made above, aligned as malloc does, and nobody else's yet.
        unsafe { &mut *self.0 }
    }

    fn hand_out(mut self) -> *mut RdmaAddrinfo {
        std::mem::replace(&mut self.0, ptr::null_mut())
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: made by `new`, or null.
        unsafe { freeaddrinfo(self.0) };
    }
}

/// What the C library is asked, as the hints say.
fn asked(hints: &RdmaAddrinfo) -> addrinfo {
    // SAFETY: numbers and pointers that may be null.
    let mut ask = unsafe { std::mem::zeroed::<addrinfo>() };
    if hints.ai_flags & PASSIVE != 0 {
        ask.ai_flags |= libc::AI_PASSIVE;
    }
    if hints.ai_flags & NUMERIC_HOST != 0 {
        ask.ai_flags |= libc::AI_NUMERICHOST;
    }
    if hints.ai_flags & FAMILY != 0 {
        ask.ai_family = hints.ai_family;
    }
    let datagrams = hints.ai_port_space == PS_UDP || hints.ai_qp_type == QPT_UD;
    ask.ai_socktype = if datagrams { libc::SOCK_DGRAM } else { libc::SOCK_STREAM };
    ask
}

/// What the C library answers, as `rdma_cm` has it; the first of its addresses.
fn answered(ai: &addrinfo, hints: &RdmaAddrinfo, to: &mut RdmaAddrinfo) -> Result<(), Fail> {
    to.ai_family = ai.ai_family;
    let datagrams = ai.ai_socktype == libc::SOCK_DGRAM;
    to.ai_qp_type = match hints.ai_qp_type {
        0 if datagrams => QPT_UD,
        0 => QPT_RC,
        given => given,
    };
    to.ai_port_space = match hints.ai_port_space {
        0 if datagrams => PS_UDP,
        0 => PS_TCP,
        given => given,
    };
    let address: *mut sockaddr = copy(ai.ai_addr.cast(), ai.ai_addrlen as usize)?.cast();
    if hints.ai_flags & PASSIVE != 0 {
        to.ai_flags = PASSIVE;
        (to.ai_src_addr, to.ai_src_len) = (address, ai.ai_addrlen);
    } else {
        (to.ai_dst_addr, to.ai_dst_len) = (address, ai.ai_addrlen);
    }
    if !ai.ai_canonname.is_null() {
        // SAFETY: a C string of the C library's.
        let name = unsafe { libc::strdup(ai.ai_canonname) };
        let place = if hints.ai_flags & PASSIVE != 0 {
            &mut to.ai_src_canonname
        } else {
            &mut to.ai_dst_canonname
        };
        *place = name;
    }
    Ok(())
}

/// Looks a name up; a failure is one of `EAI_*`.
fn look_up(
    node: *const c_char,
    service: *const c_char,
    hints: &RdmaAddrinfo,
    to: &mut RdmaAddrinfo,
) -> Result<c_int, Fail> {
    let ask = asked(hints);
    let mut found = ptr::null_mut();
    // SAFETY: the strings are the caller's; the rest is ours.
    let status = unsafe { libc::getaddrinfo(node, service, &raw const ask, &raw mut found) };
    if status != 0 {
        return Ok(status);
    }
    // SAFETY: a list of one at least, as nothing failed.
    let done = answered(unsafe { &*found }, hints, to);
    // SAFETY: the list, of which nothing is kept.
    unsafe { libc::freeaddrinfo(found) };
    done.map(|()| 0)
}

fn get(
    node: *const c_char,
    service: *const c_char,
    hints: *const RdmaAddrinfo,
) -> Result<(c_int, *mut RdmaAddrinfo), Fail> {
    if node.is_null() && service.is_null() && hints.is_null() {
        return Err(Fail::invalid("node, service and hints are null; one of them is wanted"));
    }
    // SAFETY: null, or the caller's struct.
    let hints = unsafe { hints.as_ref() }.copied().unwrap_or_else(RdmaAddrinfo::zero);
    if !matches!(hints.ai_port_space, 0 | PS_TCP | PS_UDP | PS_IB) {
        return Err(Fail::invalid(format!("port space {:#x}", hints.ai_port_space)));
    }
    let mut made = Made::new()?;
    let to = made.get();
    if node.is_null() && service.is_null() {
        to.ai_flags = hints.ai_flags;
        to.ai_family = hints.ai_family;
        to.ai_qp_type = hints.ai_qp_type;
        to.ai_port_space = hints.ai_port_space;
        if !hints.ai_dst_addr.is_null() && hints.ai_dst_len != 0 {
            to.ai_dst_addr = copy(hints.ai_dst_addr.cast(), hints.ai_dst_len as usize)?.cast();
            to.ai_dst_len = hints.ai_dst_len;
        }
    } else {
        let status = look_up(node, service, &hints, to)?;
        if status != 0 {
            return Ok((status, ptr::null_mut()));
        }
    }
    if to.ai_src_len == 0 && hints.ai_src_len != 0 && !hints.ai_src_addr.is_null() {
        to.ai_src_addr = copy(hints.ai_src_addr.cast(), hints.ai_src_len as usize)?.cast();
        to.ai_src_len = hints.ai_src_len;
    }
    Ok((0, made.hand_out()))
}

/// # Safety
/// `node` and `service` are null or C strings; `hints` is null or points to the struct, whose
/// addresses are as long as it says; `res` is null or has room for a pointer.
pub(super) unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const RdmaAddrinfo,
    res: *mut *mut RdmaAddrinfo,
) -> c_int {
    or("rdma_getaddrinfo", -1, || {
        let (status, list) = get(node, service, hints)?;
        if status != 0 {
            return Ok(status);
        }
        // SAFETY: the caller's.
        let done = unsafe { output(res, list, "res") };
        if done.is_err() {
            // SAFETY: made above and handed to nobody.
            unsafe { freeaddrinfo(list) };
        }
        done.map(|()| 0)
    })
}

/// # Safety
/// `res` is null or a list of [`getaddrinfo`]'s that was not freed.
pub(super) unsafe extern "C" fn freeaddrinfo(res: *mut RdmaAddrinfo) {
    let mut next = res;
    while !next.is_null() {
        // SAFETY: an element of the list.
        let this = unsafe { *next };
        for part in [
            this.ai_src_addr.cast::<c_void>(),
            this.ai_dst_addr.cast(),
            this.ai_src_canonname.cast(),
            this.ai_dst_canonname.cast(),
            this.ai_route,
            this.ai_connect,
        ] {
            // SAFETY: null, or of malloc.
            unsafe { libc::free(part) };
        }
        // SAFETY: of malloc.
        unsafe { libc::free(next.cast()) };
        next = this.ai_next;
    }
}
