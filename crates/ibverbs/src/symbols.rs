//! The symbols that the library has, each with its version: those of Debian 12's libibverbs.so.1
//! that are a default version, and private ones under the names that later releases give the node.
//!
//! rustc hands the linker a version script of its own, which a second one cannot correct; so a
//! version is bound where the symbol is defined, to a jump to the function.

use core::arch::global_asm;

use crate::{
    ah, async_event, channel, cma, cmd, context, cq, device, dm, marshal, mcast, mr, pd, qp, query,
    rates, srq, strings, sysfs,
};

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

/// Symbols of a node: `@@` makes it the default version, `@` one more version.
macro_rules! symbols {
    ($at:literal $node:literal: $($name:ident => $function:path,)*) => {$(
        global_asm!(
            ".text",
            concat!(".type urxe.", stringify!($name), ".", $node, ",@function"),
            concat!(".globl urxe.", stringify!($name), ".", $node),
            concat!("urxe.", stringify!($name), ".", $node, ":"),
            jump!(),
            concat!(".size urxe.", stringify!($name), ".", $node, ", . - urxe.",
                stringify!($name), ".", $node),
            concat!(".symver urxe.", stringify!($name), ".", $node, ", ", stringify!($name),
                $at, $node, ", remove"),
            f = sym $function,
        );
    )*};
}

symbols! {
    "@@" "IBVERBS_1.0":
    ibv_copy_path_rec_from_kern => marshal::path_from,
    ibv_copy_path_rec_to_kern => marshal::path_to,
    ibv_copy_qp_attr_from_kern => marshal::qp_attr,
    ibv_create_comp_channel => channel::create_comp_channel,
    ibv_destroy_comp_channel => channel::destroy_comp_channel,
    ibv_get_sysfs_path => sysfs::get_sysfs_path,
    ibv_rate_to_mult => rates::rate_to_mult,
    ibv_read_sysfs_file => sysfs::read_sysfs_file,
    mult_to_ibv_rate => rates::mult_to_rate,
}

symbols! {
    "@@" "IBVERBS_1.1":
    ibv_ack_async_event => async_event::ack_async_event,
    ibv_ack_cq_events => channel::ack_cq_events,
    ibv_alloc_pd => pd::alloc_pd,
    ibv_attach_mcast => mcast::attach_mcast,
    ibv_close_device => context::close_device,
    ibv_copy_ah_attr_from_kern => marshal::ah_attr,
    ibv_create_ah => ah::create_ah,
    ibv_create_ah_from_wc => ah::create_ah_from_wc,
    ibv_create_cq => cq::create_cq,
    ibv_create_qp => qp::create_qp,
    ibv_create_srq => srq::create_srq,
    ibv_dealloc_pd => pd::dealloc_pd,
    ibv_dereg_mr => mr::dereg_mr,
    ibv_destroy_ah => ah::destroy_ah,
    ibv_destroy_cq => cq::destroy_cq,
    ibv_destroy_qp => qp::destroy_qp,
    ibv_destroy_srq => srq::destroy_srq,
    ibv_detach_mcast => mcast::detach_mcast,
    ibv_dofork_range => device::fork_range,
    ibv_dontfork_range => device::fork_range,
    ibv_event_type_str => strings::event_type_str,
    ibv_fork_init => device::fork_init,
    ibv_free_device_list => device::free_device_list,
    ibv_get_async_event => async_event::get_async_event,
    ibv_get_cq_event => channel::get_cq_event,
    ibv_get_device_guid => device::get_device_guid,
    ibv_get_device_list => device::get_device_list,
    ibv_get_device_name => device::get_device_name,
    ibv_init_ah_from_wc => ah::init_ah_from_wc,
    ibv_modify_qp => qp::modify_qp,
    ibv_modify_srq => srq::modify_srq,
    ibv_node_type_str => strings::node_type_str,
    ibv_open_device => context::open_device,
    ibv_port_state_str => strings::port_state_str,
    ibv_query_device => query::query_device,
    ibv_query_gid => query::query_gid,
    ibv_query_pkey => query::query_pkey,
    ibv_query_port => query::query_port,
    ibv_query_qp => qp::query_qp,
    ibv_query_srq => srq::query_srq,
    ibv_rate_to_mbps => rates::rate_to_mbps,
    ibv_reg_mr => mr::reg_mr,
    ibv_rereg_mr => mr::rereg_mr,
    ibv_resize_cq => cq::resize_cq,
    ibv_resolve_eth_l2_from_gid => ah::resolve_eth_l2,
    ibv_wc_status_str => strings::wc_status_str,
    mbps_to_ibv_rate => rates::mbps_to_rate,
}

symbols! {
    "@@" "IBVERBS_1.5":
    ibv_get_pkey_index => query::get_pkey_index,
}

symbols! {
    "@@" "IBVERBS_1.6":
    ibv_qp_to_qp_ex => qp::to_qp_ex,
}

symbols! {
    "@@" "IBVERBS_1.7":
    ibv_reg_mr_iova => mr::reg_mr_iova,
}

symbols! {
    "@@" "IBVERBS_1.8":
    ibv_reg_mr_iova2 => mr::reg_mr_iova2,
}

symbols! {
    "@@" "IBVERBS_1.9":
    ibv_get_device_index => device::get_device_index,
}

symbols! {
    "@@" "IBVERBS_1.10":
    ibv_import_device => context::import_device,
    ibv_import_mr => mr::import_mr,
    ibv_import_pd => pd::import_pd,
    ibv_query_ece => qp::no_ece,
    ibv_set_ece => qp::no_ece,
    ibv_unimport_mr => mr::unimport_mr,
    ibv_unimport_pd => pd::unimport_pd,
}

symbols! {
    "@@" "IBVERBS_1.11":
    _ibv_query_gid_ex => query::query_gid_ex,
    _ibv_query_gid_table => query::query_gid_table,
}

symbols! {
    "@@" "IBVERBS_1.12":
    ibv_reg_dmabuf_mr => mr::reg_dmabuf_mr,
}

symbols! {
    "@@" "IBVERBS_1.13":
    ibv_import_dm => dm::import_dm,
    ibv_is_fork_initialized => device::is_fork_initialized,
    ibv_unimport_dm => dm::unimport_dm,
}

symbols! {
    "@@" "IBVERBS_1.14":
    ibv_query_qp_data_in_order => qp::query_data_in_order,
}

symbols! {
    "@@" "IBVERBS_PRIVATE_34":
    __ioctl_final_num_attrs => cmd::zero,
    __verbs_log => cmd::nothing,
    _verbs_init_and_alloc_context => cmd::no_context,
    execute_ioctl => cmd::unsupported,
    ibv_cmd_advise_mr => cmd::unsupported,
    ibv_cmd_alloc_dm => cmd::unsupported,
    ibv_cmd_alloc_mw => cmd::unsupported,
    ibv_cmd_alloc_pd => cmd::unsupported,
    ibv_cmd_attach_mcast => cmd::unsupported,
    ibv_cmd_close_xrcd => cmd::unsupported,
    ibv_cmd_create_ah => cmd::unsupported,
    ibv_cmd_create_counters => cmd::unsupported,
    ibv_cmd_create_cq => cmd::unsupported,
    ibv_cmd_create_cq_ex => cmd::unsupported,
    ibv_cmd_create_flow => cmd::unsupported,
    ibv_cmd_create_flow_action_esp => cmd::unsupported,
    ibv_cmd_create_qp => cmd::unsupported,
    ibv_cmd_create_qp_ex => cmd::unsupported,
    ibv_cmd_create_qp_ex2 => cmd::unsupported,
    ibv_cmd_create_rwq_ind_table => cmd::unsupported,
    ibv_cmd_create_srq => cmd::unsupported,
    ibv_cmd_create_srq_ex => cmd::unsupported,
    ibv_cmd_create_wq => cmd::unsupported,
    ibv_cmd_dealloc_mw => cmd::unsupported,
    ibv_cmd_dealloc_pd => cmd::unsupported,
    ibv_cmd_dereg_mr => cmd::unsupported,
    ibv_cmd_destroy_ah => cmd::unsupported,
    ibv_cmd_destroy_counters => cmd::unsupported,
    ibv_cmd_destroy_cq => cmd::unsupported,
    ibv_cmd_destroy_flow => cmd::unsupported,
    ibv_cmd_destroy_flow_action => cmd::unsupported,
    ibv_cmd_destroy_qp => cmd::unsupported,
    ibv_cmd_destroy_rwq_ind_table => cmd::unsupported,
    ibv_cmd_destroy_srq => cmd::unsupported,
    ibv_cmd_destroy_wq => cmd::unsupported,
    ibv_cmd_detach_mcast => cmd::unsupported,
    ibv_cmd_free_dm => cmd::unsupported,
    ibv_cmd_get_context => cmd::unsupported,
    ibv_cmd_modify_cq => cmd::unsupported,
    ibv_cmd_modify_flow_action_esp => cmd::unsupported,
    ibv_cmd_modify_qp => cmd::unsupported,
    ibv_cmd_modify_qp_ex => cmd::unsupported,
    ibv_cmd_modify_srq => cmd::unsupported,
    ibv_cmd_modify_wq => cmd::unsupported,
    ibv_cmd_open_qp => cmd::unsupported,
    ibv_cmd_open_xrcd => cmd::unsupported,
    ibv_cmd_poll_cq => cmd::unsupported,
    ibv_cmd_post_recv => cmd::unsupported,
    ibv_cmd_post_send => cmd::unsupported,
    ibv_cmd_post_srq_recv => cmd::unsupported,
    ibv_cmd_query_context => cmd::unsupported,
    ibv_cmd_query_device_any => cmd::unsupported,
    ibv_cmd_query_mr => cmd::unsupported,
    ibv_cmd_query_port => cmd::unsupported,
    ibv_cmd_query_qp => cmd::unsupported,
    ibv_cmd_query_srq => cmd::unsupported,
    ibv_cmd_read_counters => cmd::unsupported,
    ibv_cmd_reg_dm_mr => cmd::unsupported,
    ibv_cmd_reg_dmabuf_mr => cmd::unsupported,
    ibv_cmd_reg_mr => cmd::unsupported,
    ibv_cmd_req_notify_cq => cmd::unsupported,
    ibv_cmd_rereg_mr => cmd::unsupported,
    ibv_cmd_resize_cq => cmd::unsupported,
    ibv_query_gid_type => query::query_gid_type,
    ibv_read_ibdev_sysfs_file => cmd::minus_one,
    verbs_init_cq => cmd::nothing,
    verbs_open_device => cmd::no_context,
    verbs_register_driver_34 => cmd::nothing,
    verbs_set_ops => cmd::nothing,
    verbs_uninit_context => cmd::nothing,
}

symbols! {
    "@" "IBVERBS_PRIVATE_57":
    ibv_query_gid_type => query::query_gid_type,
}

symbols! {
    "@" "IBVERBS_PRIVATE_59":
    ibv_query_gid_type => query::query_gid_type,
}

symbols! {
    "@" "IBVERBS_PRIVATE_64":
    ibv_query_gid_type => query::query_gid_type,
}

symbols! {
    "@@" "URXE_PRIVATE":
    urxe_private_v1 => cma::find,
}

// A variable of the providers' library: whether the kernel may take a device away.
global_asm!(
    ".bss",
    ".globl urxe.disassociate",
    ".type urxe.disassociate,@object",
    ".size urxe.disassociate,1",
    "urxe.disassociate: .zero 1",
    ".symver urxe.disassociate, verbs_allow_disassociate_destroy@@IBVERBS_PRIVATE_34, remove",
    ".text",
);
