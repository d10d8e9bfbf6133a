//! Addresses of our side.

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::sockaddr as CSockaddr;
use urxe::QpKind;
use urxe::cm::{Id as Link, PortSpace};

use crate::call::{Fail, number};
use crate::layout::RdmaCmId;
use crate::object::Object;

use super::device::{self, Shared};
use super::id::{self, Id, PS_IB, PS_IPOIB, PS_UDP, QPT_UC, QPT_UD, QPT_XRC_RECV, QPT_XRC_SEND};
use super::state::{State, Step};
use super::{channel, sockaddr};

const fn space(ps: c_int) -> PortSpace {
    match ps {
        PS_IPOIB => PortSpace::IpoIb,
        PS_UDP => PortSpace::Udp,
        PS_IB => PortSpace::Ib,
        _ => PortSpace::Tcp,
    }
}

const fn kind(qp_type: c_int) -> QpKind {
    match qp_type {
        QPT_UC => QpKind::Uc,
        QPT_UD => QpKind::Ud,
        QPT_XRC_SEND => QpKind::XrcInit,
        QPT_XRC_RECV => QpKind::XrcTarget,
        _ => QpKind::Rc,
    }
}

/// The identifier is of a device from now on, and the program sees it.
pub(super) fn to_device(object: &Object<Id>, shared: &Shared) {
    object.show(|id| {
        id.verbs = shared.context();
        id.port_num = 1;
        if id.pd.is_null() {
            id.pd = shared.pd();
        }
    });
}

/// Where the program's wildcard is one of the other family, that of the device's own.
fn of_the_device(address: SocketAddr, own: IpAddr, only_family: bool) -> SocketAddr {
    let ip = match (address.ip(), own) {
        (IpAddr::V6(any), IpAddr::V4(_)) if any.is_unspecified() && !only_family => {
            Ipv4Addr::UNSPECIFIED.into()
        }
        (ip, _) => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Binds an identifier to an address, or to a port of any.
pub(super) fn bind(
    object: &'static Object<Id>,
    state: &mut State,
    address: SocketAddr,
) -> Result<(), Fail> {
    state.at(&[Step::Idle])?;
    let ip = address.ip();
    let shared = device::shared(Some(ip).filter(|ip| !ip.is_unspecified()))?;
    let shown = object.read();
    let queue = object.queue();
    let nic = &shared.opening.nic;
    let link = Link::new(nic, &queue, space(shown.ps), kind(shown.qp_type))?;
    link.set_reuse(state.options.reuse)?;
    link.bind(of_the_device(address, nic.address(), state.options.only_family))?;
    channel::enter(link.number(), object);
    id::watch_exit();
    let bound = link.local_addr().map_or(address, |local| SocketAddr::new(ip, local.port()));
    if !ip.is_unspecified() {
        to_device(object, &shared);
    }
    (state.link, state.source, state.step) = (Some(link), Some(bound), Step::Bound);
    object.show_addresses(Some(bound), None);
    Ok(())
}

/// Any address of the family of another.
pub(super) fn any_like(address: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, 0)
}

/// # Safety
/// `addr` is null or points to an address as long as its family's are.
pub(super) unsafe extern "C" fn bind_addr(id: *mut RdmaCmId, addr: *mut CSockaddr) -> c_int {
    number("rdma_bind_addr", || {
        let object = id::of(id)?;
        // SAFETY: the caller's.
        let address = unsafe { sockaddr::read(addr, "addr") }?;
        bind(object, &mut object.own().state.lock(), address).map(|()| 0)
    })
}
