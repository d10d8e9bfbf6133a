//! Ways to peers. The host finds neighbours as packets leave; so what there is to find here is our
//! own address, and the answer is there at once.

use std::ffi::c_int;
use std::net::SocketAddr;

use libc::sockaddr as CSockaddr;
use urxe::cm::{CmTimeout, Id as Link, PathParams};

use crate::call::{Fail, number};
use crate::layout::{RdmaCmId, SaPathRec, Zero};
use crate::object::Object;

use super::device;
use super::event::{ADDR_ERROR, complete};
use super::id::{self, Id};
use super::state::{State, Step};
use super::told::{Own, PKEY, gid};
use super::{bind, sockaddr};

/// # Safety
/// `from` is null or points to an address as long as its family's are.
unsafe fn source(from: *const CSockaddr, like: SocketAddr) -> Result<SocketAddr, Fail> {
    const UNSPEC: libc::sa_family_t = 0;
    // SAFETY: an address has a family, whatever it is.
    if from.is_null() || unsafe { sockaddr::family_of(from) } == UNSPEC {
        return Ok(bind::any_like(like));
    }
    // SAFETY: the caller's.
    unsafe { sockaddr::read(from, "src_addr") }
}

pub(super) fn resolve(
    object: &'static Object<Id>,
    from: Option<SocketAddr>,
    to: SocketAddr,
) -> Result<(), Fail> {
    {
        let state = &mut *object.own().state.lock();
        state.at(&[Step::Idle, Step::Bound])?;
        if state.step == Step::Idle {
            bind::bind(object, state, from.unwrap_or_else(|| bind::any_like(to)))?;
        }
        let shared = device::shared(None)?;
        let link = state.link.as_ref().ok_or_else(|| Fail::invalid("no address"))?;
        // The wildcard is ourselves.
        let own = shared.opening.nic.address();
        let ip = if to.ip().is_unspecified() { own } else { to.ip() };
        let peer = SocketAddr::new(ip, to.port());
        match link.resolve_addr(None, peer) {
            Ok(()) => {
                let ours = link.local_addr();
                bind::to_device(object, &shared);
                object.show_addresses(ours, Some(peer));
                (state.source, state.destination) = (ours, Some(peer));
                state.step = Step::Resolved;
            }
            Err(urxe::Error::NoWay { .. }) => {
                let status = -libc::ENETUNREACH;
                Own { event: ADDR_ERROR, status, group: 0 }.tell(link)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    complete(object)
}

/// # Safety
/// Both addresses are null or as long as their families' are.
pub(super) unsafe extern "C" fn resolve_addr(
    id: *mut RdmaCmId,
    src: *mut CSockaddr,
    dst: *mut CSockaddr,
    _timeout_ms: c_int,
) -> c_int {
    number("rdma_resolve_addr", || {
        let object = id::of(id)?;
        // SAFETY: the caller's.
        let to = unsafe { sockaddr::read(dst, "dst_addr") }?;
        // SAFETY: the caller's.
        let from = unsafe { source(src, to) }?;
        resolve(object, Some(from), to).map(|()| 0)
    })
}

/// The path that a connection will ask for, as the options have it.
fn way(link: &Link, state: &State) -> Result<PathParams, Fail> {
    let mut path = link.path().unwrap_or_default();
    if let Some(tos) = state.options.tos {
        path.traffic_class = tos;
    }
    // A QP waits for an ACK at least twice as long as a packet is under way.
    if let Some(lifetime) = state.options.ack_timeout.filter(|&t| t > 0).map(|t| t - 1) {
        let out_of_range = |_| Fail::invalid(format!("ACK timeout {}", lifetime + 1));
        path.packet_lifetime = CmTimeout::new(lifetime).map_err(out_of_range)?;
    }
    link.set_path(path)?;
    Ok(path)
}

/// The path that the program is told of.
fn shown(path: &PathParams, state: &State) -> SaPathRec {
    /// "Exactly", of a selector.
    const EXACTLY: u8 = 2;
    let gid = |address: Option<SocketAddr>| match address {
        Some(address) => gid(address.ip()),
        None => SaPathRec::zero().dgid,
    };
    SaPathRec {
        dgid: gid(state.destination),
        sgid: gid(state.source),
        flow_label: path.flow_label.to_be(),
        hop_limit: path.hop_limit,
        traffic_class: path.traffic_class,
        reversible: 1,
        numb_path: 1,
        pkey: PKEY.to_be(),
        sl: path.service_level,
        mtu_selector: EXACTLY,
        mtu: path.mtu.code(),
        rate_selector: EXACTLY,
        packet_life_time_selector: EXACTLY,
        packet_life_time: path.packet_lifetime.code(),
        ..SaPathRec::zero()
    }
}

/// The route is known, the program's or ours: shows the program the path.
pub(super) fn routed(object: &Object<Id>, state: &mut State) -> Result<(), Fail> {
    state.at(&[Step::Resolved])?;
    let link = state.link.as_ref().ok_or_else(|| Fail::invalid("no address"))?;
    let mut path = Box::new(shown(&way(link, state)?, state));
    let to: *mut SaPathRec = &raw mut *path;
    link.resolve_route()?;
    object.show(|id| (id.route.path_rec, id.route.num_paths) = (to, 1));
    (state.path, state.step) = (Some(path), Step::Routed);
    Ok(())
}

pub(super) fn route(object: &'static Object<Id>) -> Result<(), Fail> {
    routed(object, &mut object.own().state.lock())?;
    complete(object)
}

pub(super) extern "C" fn resolve_route(id: *mut RdmaCmId, _timeout_ms: c_int) -> c_int {
    number("rdma_resolve_route", || route(id::of(id)?).map(|()| 0))
}
