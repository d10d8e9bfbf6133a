//! Multicast groups of identifiers. RoCE has no subnet manager to ask: a group's GID is its IP
//! address, and the host tells the network who is in it.

use std::ffi::{c_int, c_void};
use std::net::IpAddr;
use std::ptr;

use libc::sockaddr as CSockaddr;

use crate::call::{Fail, input, number};
use crate::layout::{
    IbvAhAttr, IbvGlobalRoute, IbvQp, RdmaCmId, RdmaEventParam, RdmaJoinMcAttrEx, RdmaUdParam, Zero,
};
use crate::object::Object;
use crate::qp;

use super::event::{MULTICAST_ERROR, MULTICAST_JOIN, complete};
use super::id::{self, Id};
use super::told::{About, Own, QKEY, Told, gid};
use super::{connect, sockaddr};

/// `enum rdma_cm_join_mc_attr_mask`.
const ADDRESS: u32 = 1;
const FLAGS: u32 = 2;
/// `enum rdma_cm_mc_join_flags`.
const FULL_MEMBER: u32 = 0;
const SEND_ONLY: u32 = 1;

/// The QP number that datagrams to a group name (IBA 9.6.1.1.1).
const MULTICAST_QPN: u32 = 0xff_ffff;
/// A datagram to a group goes no further than its link, as the kernel has it
/// (Linux drivers/infiniband/core/cma.c, `cma_iboe_join_multicast`).
const HOP_LIMIT: u8 = 1;

/// A group that an identifier is in.
#[derive(Debug)]
pub(super) struct Group {
    number: u32,
    /// The program's word for it.
    context: usize,
    address: IpAddr,
    sends_only: bool,
    attached: bool,
}

impl Group {
    /// Takes the QP out of it, if the library put it in.
    pub(super) fn leave(&self, qp: *mut IbvQp) {
        if self.attached
            && let Ok(qp) = qp::of(qp)
        {
            let _ = qp.own().qp.detach_mcast(self.address);
        }
    }
}

fn join(
    id: *mut RdmaCmId,
    addr: *const CSockaddr,
    flags: u32,
    context: *mut c_void,
) -> Result<(), Fail> {
    let object = id::of(id)?;
    // SAFETY: the caller's of the exported functions.
    let address = unsafe { sockaddr::read(addr, "addr") }?.ip();
    if !address.is_multicast() {
        return Err(Fail::invalid(format!("{address} is no group")));
    }
    if object.read().verbs.is_null() {
        return Err(Fail::invalid("the identifier is bound to no device; bind it to an address"));
    }
    let context = context.expose_provenance();
    {
        let state = &mut *object.own().state.lock();
        if state.groups.iter().any(|group| group.address == address) {
            let why = format!("the identifier is in {address} already");
            return Err(Fail::new(libc::EADDRINUSE, why));
        }
        state.last_group += 1;
        let number = state.last_group;
        Own { event: MULTICAST_JOIN, status: 0, group: number }.tell(connect::link(state)?)?;
        let sends_only = flags == SEND_ONLY;
        state.groups.push(Group { number, context, address, sends_only, attached: false });
    }
    complete(object)
}

/// The program hears that an identifier is in a group: its QP, if it has one, is so now. Whether it
/// is to hear of it at all.
pub(super) fn joined(object: &Object<Id>, told: &mut Told) -> bool {
    let About::Group(number) = told.about else { return false };
    let qp = object.read().qp;
    let mut state = object.own().state.lock();
    let Some(group) = state.groups.iter_mut().find(|group| group.number == number) else {
        return false;
    };
    if group.sends_only || qp.is_null() {
        return true;
    }
    match qp::of(qp).and_then(|qp| Ok(qp.own().qp.attach_mcast(group.address)?)) {
        Ok(()) => group.attached = true,
        Err(fail) => {
            (told.event, told.status) = (MULTICAST_ERROR, -fail.errno);
            state.groups.retain(|group| group.number != number);
        }
    }
    true
}

/// How to send to the group.
pub(super) fn tell(object: &Object<Id>, about: &About, param: &mut RdmaEventParam) {
    let About::Group(number) = *about else { return };
    let state = object.own().state.lock();
    let Some(group) = state.groups.iter().find(|group| group.number == number) else { return };
    let grh = IbvGlobalRoute {
        dgid: gid(group.address),
        hop_limit: HOP_LIMIT,
        traffic_class: state.options.tos.unwrap_or(0),
        ..IbvGlobalRoute::zero()
    };
    let ah_attr = IbvAhAttr { grh, is_global: 1, port_num: 1, ..IbvAhAttr::zero() };
    let private_data = ptr::with_exposed_provenance(group.context);
    let (qp_num, qkey) = (MULTICAST_QPN, QKEY);
    param.ud = RdmaUdParam { private_data, ah_attr, qp_num, qkey, ..RdmaUdParam::zero() };
}

/// # Safety
/// `addr` is null or points to an address as long as its family's are.
pub(super) unsafe extern "C" fn join_multicast(
    id: *mut RdmaCmId,
    addr: *mut CSockaddr,
    context: *mut c_void,
) -> c_int {
    number("rdma_join_multicast", || join(id, addr, FULL_MEMBER, context).map(|()| 0))
}

/// # Safety
/// `attr` is null or points to the struct, whose address is as long as its family's are.
pub(super) unsafe extern "C" fn join_multicast_ex(
    id: *mut RdmaCmId,
    attr: *mut RdmaJoinMcAttrEx,
    context: *mut c_void,
) -> c_int {
    number("rdma_join_multicast_ex", || {
        // SAFETY: the caller's.
        let attr = unsafe { input(attr, "mc_join_attr") }?;
        if attr.comp_mask != ADDRESS | FLAGS {
            return Err(Fail::invalid(format!("comp_mask {:#x}; wanted 3", attr.comp_mask)));
        }
        if !matches!(attr.join_flags, FULL_MEMBER | SEND_ONLY) {
            return Err(Fail::invalid(format!("join_flags {}; there are 0, 1", attr.join_flags)));
        }
        join(id, attr.addr, attr.join_flags, context).map(|()| 0)
    })
}

/// # Safety
/// `addr` is null or points to an address as long as its family's are.
pub(super) unsafe extern "C" fn leave_multicast(id: *mut RdmaCmId, addr: *mut CSockaddr) -> c_int {
    number("rdma_leave_multicast", || {
        let object = id::of(id)?;
        // SAFETY: the caller's.
        let address = unsafe { sockaddr::read(addr, "addr") }?.ip();
        let qp = object.read().qp;
        let groups = &mut object.own().state.lock().groups;
        let found = groups.iter().position(|group| group.address == address);
        let why = || Fail::new(libc::EADDRNOTAVAIL, format!("the identifier is not in {address}"));
        groups.remove(found.ok_or_else(why)?).leave(qp);
        Ok(0)
    })
}
