//! The symbols that the library has, each with its version: those of Debian 12's librdmacm.so.1.
//!
//! rustc hands the linker a version script of its own, which a second one cannot correct; so a
//! version is bound where the symbol is defined, to a jump to the function.

use core::arch::global_asm;

use crate::{calls, rsockets};

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        " jmp {f}"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        " b {f}"
    };
}

/// Symbols of a node, which are its default versions.
macro_rules! symbols {
    ($node:literal: $($name:ident => $function:path,)*) => {$(
        global_asm!(
            ".text",
            concat!(".type urxe.", stringify!($name), ",@function"),
            concat!(".globl urxe.", stringify!($name)),
            concat!("urxe.", stringify!($name), ":"),
            jump!(),
            concat!(".size urxe.", stringify!($name), ", . - urxe.", stringify!($name)),
            concat!(".symver urxe.", stringify!($name), ", ", stringify!($name), "@@", $node,
                ", remove"),
            f = sym $function,
        );
    )*};
}

symbols! {
    "RDMACM_1.0":
    rdma_accept => calls::rdma_accept,
    rdma_ack_cm_event => calls::rdma_ack_cm_event,
    rdma_bind_addr => calls::rdma_bind_addr,
    rdma_connect => calls::rdma_connect,
    rdma_create_ep => calls::rdma_create_ep,
    rdma_create_event_channel => calls::rdma_create_event_channel,
    rdma_create_id => calls::rdma_create_id,
    rdma_create_qp => calls::rdma_create_qp,
    rdma_create_qp_ex => calls::rdma_create_qp_ex,
    rdma_create_srq => calls::rdma_create_srq,
    rdma_create_srq_ex => calls::rdma_create_srq_ex,
    rdma_destroy_ep => calls::rdma_destroy_ep,
    rdma_destroy_event_channel => calls::rdma_destroy_event_channel,
    rdma_destroy_id => calls::rdma_destroy_id,
    rdma_destroy_qp => calls::rdma_destroy_qp,
    rdma_destroy_srq => calls::rdma_destroy_srq,
    rdma_disconnect => calls::rdma_disconnect,
    rdma_event_str => calls::rdma_event_str,
    rdma_free_devices => calls::rdma_free_devices,
    rdma_freeaddrinfo => calls::rdma_freeaddrinfo,
    rdma_get_cm_event => calls::rdma_get_cm_event,
    rdma_get_devices => calls::rdma_get_devices,
    rdma_get_dst_port => calls::rdma_get_dst_port,
    rdma_get_request => calls::rdma_get_request,
    rdma_get_src_port => calls::rdma_get_src_port,
    rdma_getaddrinfo => calls::rdma_getaddrinfo,
    rdma_join_multicast => calls::rdma_join_multicast,
    rdma_leave_multicast => calls::rdma_leave_multicast,
    rdma_listen => calls::rdma_listen,
    rdma_migrate_id => calls::rdma_migrate_id,
    rdma_notify => calls::rdma_notify,
    rdma_reject => calls::rdma_reject,
    rdma_resolve_addr => calls::rdma_resolve_addr,
    rdma_resolve_route => calls::rdma_resolve_route,
    rdma_set_option => calls::rdma_set_option,
    raccept => rsockets::number,
    rbind => rsockets::number,
    rclose => rsockets::number,
    rconnect => rsockets::number,
    rfcntl => rsockets::number,
    rgetpeername => rsockets::number,
    rgetsockname => rsockets::number,
    rgetsockopt => rsockets::number,
    riomap => rsockets::long,
    riounmap => rsockets::number,
    riowrite => rsockets::long,
    rlisten => rsockets::number,
    rpoll => rsockets::number,
    rread => rsockets::long,
    rreadv => rsockets::long,
    rrecv => rsockets::long,
    rrecvfrom => rsockets::long,
    rrecvmsg => rsockets::long,
    rselect => rsockets::number,
    rsend => rsockets::long,
    rsendmsg => rsockets::long,
    rsendto => rsockets::long,
    rsetsockopt => rsockets::number,
    rshutdown => rsockets::number,
    rsocket => rsockets::number,
    rwrite => rsockets::long,
    rwritev => rsockets::long,
}

symbols! {
    "RDMACM_1.1":
    rdma_join_multicast_ex => calls::rdma_join_multicast_ex,
}

symbols! {
    "RDMACM_1.2":
    rdma_establish => calls::rdma_establish,
    rdma_init_qp_attr => calls::rdma_init_qp_attr,
}

symbols! {
    "RDMACM_1.3":
    rdma_get_remote_ece => calls::rdma_get_remote_ece,
    rdma_reject_ece => calls::rdma_reject_ece,
    rdma_set_local_ece => calls::rdma_set_local_ece,
}
