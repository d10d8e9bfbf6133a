//! The functions of `librdmacm.so.1`: connections by IP address.
//!
//! They are here, and not in that library, since a process has one NIC and one connection manager,
//! and since their objects are made of verbs' own; librdmacm.so.1 finds each by its name through
//! [`find`], and hands its calls on.
//!
//! | module | what is in it |
//! |---|---|
//! | `channel`, `event` | event channels, their descriptors and events, acknowledged |
//! | `id`, `state` | identifiers: made, migrated, destroyed; how far each has come |
//! | `device` | the context, PD and XRC domain that identifiers share |
//! | `sockaddr`, `bind`, `resolve` | addresses; binding to them; ways to peers |
//! | `told` | what `urxe::cm` tells of identifiers |
//! | `connect`, `listen` | the active and the passive side; `rdma_disconnect` |
//! | `qp`, `attrs`, `srq` | QPs and SRQs of identifiers, and a QP's way to RTS |
//! | `endpoint` | `rdma_create_ep`; identifiers without a channel |
//! | `mcast`, `option`, `ece`, `info` | groups, options, vendors' options, `rdma_getaddrinfo` |

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use crate::fork::Fork;
use crate::object::Kind;

mod attrs;
mod bind;
mod channel;
mod connect;
mod device;
mod ece;
mod endpoint;
mod event;
mod id;
mod info;
mod listen;
mod mcast;
mod option;
mod qp;
mod resolve;
mod sockaddr;
mod srq;
mod state;
mod strings;
mod told;

/// The pools of its objects, for forks.
pub(crate) fn pools() -> [&'static dyn Fork; 3] {
    [channel::Channel::pool(), id::Id::pool(), event::Event::pool()]
}

/// # Safety
/// The process is a child of a fork, and no other thread is there.
pub(crate) unsafe fn in_child() {
    // SAFETY: the caller's.
    unsafe { channel::in_child() };
    // SAFETY: the caller's.
    unsafe { device::in_child() };
}

macro_rules! functions {
    ($($name:ident => $function:path,)*) => {
        /// The function of a name, or null. Their types are those of rdma/rdma_cma.h and
        /// rdma/rdma_verbs.h; `urxe_private_v1` becomes `_v2` if one ever changes.
        ///
        /// # Safety
        /// `name` is null or a C string.
        pub(crate) unsafe extern "C" fn find(name: *const c_char) -> *const c_void {
            if name.is_null() {
                return ptr::null();
            }
            // SAFETY: the caller's.
            match unsafe { CStr::from_ptr(name) }.to_bytes() {
                $(name if name == stringify!($name).as_bytes() => $function as *const c_void,)*
                _ => ptr::null(),
            }
        }
    };
}

functions! {
    rdma_create_event_channel => channel::create_event_channel,
    rdma_destroy_event_channel => channel::destroy_event_channel,
    rdma_get_cm_event => event::get_cm_event,
    rdma_ack_cm_event => event::ack_cm_event,
    rdma_create_id => id::create_id,
    rdma_destroy_id => id::destroy_id,
    rdma_migrate_id => id::migrate_id,
    rdma_get_src_port => id::get_src_port,
    rdma_get_dst_port => id::get_dst_port,
    rdma_get_devices => device::get_devices,
    rdma_free_devices => device::free_devices,
    rdma_getaddrinfo => info::getaddrinfo,
    rdma_freeaddrinfo => info::freeaddrinfo,
    rdma_bind_addr => bind::bind_addr,
    rdma_resolve_addr => resolve::resolve_addr,
    rdma_resolve_route => resolve::resolve_route,
    rdma_connect => connect::connect,
    rdma_establish => connect::establish,
    rdma_disconnect => connect::disconnect,
    rdma_notify => connect::notify,
    rdma_listen => listen::listen,
    rdma_accept => listen::accept,
    rdma_reject => listen::reject,
    rdma_reject_ece => listen::reject_ece,
    rdma_create_qp => qp::create_qp,
    rdma_create_qp_ex => qp::create_qp_ex,
    rdma_destroy_qp => qp::destroy_qp,
    rdma_create_srq => srq::create_srq,
    rdma_create_srq_ex => srq::create_srq_ex,
    rdma_destroy_srq => srq::destroy_srq,
    rdma_init_qp_attr => attrs::init_qp_attr,
    rdma_create_ep => endpoint::create_ep,
    rdma_destroy_ep => endpoint::destroy_ep,
    rdma_get_request => endpoint::get_request,
    rdma_join_multicast => mcast::join_multicast,
    rdma_join_multicast_ex => mcast::join_multicast_ex,
    rdma_leave_multicast => mcast::leave_multicast,
    rdma_set_option => option::set_option,
    rdma_set_local_ece => ece::set_local_ece,
    rdma_get_remote_ece => ece::get_remote_ece,
    rdma_event_str => strings::event_str,
}
