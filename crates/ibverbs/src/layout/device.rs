//! Devices and contexts.

use std::ffi::{c_int, c_uint, c_void};

use super::{
    CompatPortAttr, IbvAllocDmAttr, IbvCounters, IbvCountersInitAttr, IbvCq, IbvCqEx,
    IbvCqInitAttrEx, IbvDeviceAttr, IbvDeviceAttrEx, IbvDm, IbvModifyCqAttr, IbvMr, IbvMw,
    IbvMwBind, IbvParentDomainInitAttr, IbvPd, IbvPortAttr, IbvQp, IbvQpInitAttrEx, IbvQpOpenAttr,
    IbvQpRateLimitAttr, IbvRecvWr, IbvSendWr, IbvSge, IbvSrq, IbvSrqInitAttrEx, IbvTd,
    IbvTdInitAttr, IbvValuesEx, IbvWc, IbvXrcd, IbvXrcdInitAttr, Unused, c_structs,
};
use libc::pthread_mutex_t;

c_structs! {
    /// A device.
    IbvDevice: 664 {
        0 _ops: [usize; 2],
        16 node_type: c_int,
        20 transport_type: c_int,
        24 name: [u8; 64],
        88 dev_name: [u8; 64],
        152 dev_path: [u8; 256],
        408 ibdev_path: [u8; 256],
    }

    /// What inline functions call through a context.
    IbvContextOps: 256 {
        0 _compat_query_device: Option<
            unsafe extern "C" fn(*mut IbvContext, *mut IbvDeviceAttr) -> c_int,
        >,
        8 _compat_query_port: Option<
            unsafe extern "C" fn(*mut IbvContext, u8, *mut CompatPortAttr) -> c_int,
        >,
        16 _compat_alloc_pd: Unused,
        24 _compat_dealloc_pd: Unused,
        32 _compat_reg_mr: Unused,
        40 _compat_rereg_mr: Unused,
        48 _compat_dereg_mr: Unused,
        56 alloc_mw: Option<unsafe extern "C" fn(*mut IbvPd, c_int) -> *mut IbvMw>,
        64 bind_mw: Option<unsafe extern "C" fn(*mut IbvQp, *mut IbvMw, *mut IbvMwBind) -> c_int>,
        72 dealloc_mw: Option<unsafe extern "C" fn(*mut IbvMw) -> c_int>,
        80 _compat_create_cq: Unused,
        88 poll_cq: Option<unsafe extern "C" fn(*mut IbvCq, c_int, *mut IbvWc) -> c_int>,
        96 req_notify_cq: Option<unsafe extern "C" fn(*mut IbvCq, c_int) -> c_int>,
        104 _compat_cq_event: Unused,
        112 _compat_resize_cq: Unused,
        120 _compat_destroy_cq: Unused,
        128 _compat_create_srq: Unused,
        136 _compat_modify_srq: Unused,
        144 _compat_query_srq: Unused,
        152 _compat_destroy_srq: Unused,
        160 post_srq_recv: Option<
            unsafe extern "C" fn(*mut IbvSrq, *mut IbvRecvWr, *mut *mut IbvRecvWr) -> c_int,
        >,
        168 _compat_create_qp: Unused,
        176 _compat_query_qp: Unused,
        184 _compat_modify_qp: Unused,
        192 _compat_destroy_qp: Unused,
        200 post_send: Option<
            unsafe extern "C" fn(*mut IbvQp, *mut IbvSendWr, *mut *mut IbvSendWr) -> c_int,
        >,
        208 post_recv: Option<
            unsafe extern "C" fn(*mut IbvQp, *mut IbvRecvWr, *mut *mut IbvRecvWr) -> c_int,
        >,
        216 _compat_create_ah: Unused,
        224 _compat_destroy_ah: Unused,
        232 _compat_attach_mcast: Unused,
        240 _compat_detach_mcast: Unused,
        248 _compat_async_event: Unused,
    }

    /// An open device, as programs see it.
    IbvContext: 328 {
        0 device: *mut IbvDevice,
        8 ops: IbvContextOps,
        264 cmd_fd: c_int,
        268 async_fd: c_int,
        272 num_comp_vectors: c_int,
        280 mutex: pthread_mutex_t,
        320 abi_compat: *mut c_void,
    }

    /// What stands before a context: new operations are added in front.
    VerbsContext: 648 {
        0 query_port: Option<
            unsafe extern "C" fn(*mut IbvContext, u8, *mut IbvPortAttr, usize) -> c_int,
        >,
        8 advise_mr: Option<
            unsafe extern "C" fn(*mut IbvPd, c_int, u32, *mut IbvSge, u32) -> c_int,
        >,
        16 alloc_null_mr: Option<unsafe extern "C" fn(*mut IbvPd) -> *mut IbvMr>,
        24 read_counters: Option<
            unsafe extern "C" fn(*mut IbvCounters, *mut u64, u32, u32) -> c_int,
        >,
        32 attach_counters_point_flow: Unused,
        40 create_counters: Option<
            unsafe extern "C" fn(*mut IbvContext, *mut IbvCountersInitAttr) -> *mut IbvCounters,
        >,
        48 destroy_counters: Option<unsafe extern "C" fn(*mut IbvCounters) -> c_int>,
        56 reg_dm_mr: Option<
            unsafe extern "C" fn(*mut IbvPd, *mut IbvDm, u64, usize, c_uint) -> *mut IbvMr,
        >,
        64 alloc_dm: Option<
            unsafe extern "C" fn(*mut IbvContext, *mut IbvAllocDmAttr) -> *mut IbvDm,
        >,
        72 free_dm: Option<unsafe extern "C" fn(*mut IbvDm) -> c_int>,
        80 modify_flow_action_esp: Unused,
        88 destroy_flow_action: Unused,
        96 create_flow_action_esp: Unused,
        104 modify_qp_rate_limit: Option<
            unsafe extern "C" fn(*mut IbvQp, *mut IbvQpRateLimitAttr) -> c_int,
        >,
        112 alloc_parent_domain: Option<
            unsafe extern "C" fn(*mut IbvContext, *mut IbvParentDomainInitAttr) -> *mut IbvPd,
        >,
        120 dealloc_td: Option<unsafe extern "C" fn(*mut IbvTd) -> c_int>,
        128 alloc_td: Option<
            unsafe extern "C" fn(*mut IbvContext, *mut IbvTdInitAttr) -> *mut IbvTd,
        >,
        136 modify_cq: Option<unsafe extern "C" fn(*mut IbvCq, *mut IbvModifyCqAttr) -> c_int>,
        144 post_srq_ops: Unused,
        152 destroy_rwq_ind_table: Unused,
        160 create_rwq_ind_table: Unused,
        168 destroy_wq: Unused,
        176 modify_wq: Unused,
        184 create_wq: Unused,
        192 query_rt_values: Option<
            unsafe extern "C" fn(*mut IbvContext, *mut IbvValuesEx) -> c_int,
        >,
        200 create_cq_ex: Option<
            unsafe extern "C" fn(*mut IbvContext, *mut IbvCqInitAttrEx) -> *mut IbvCqEx,
        >,
        208 priv_: *mut c_void,
        216 query_device_ex: Option<
            unsafe extern "C" fn(*mut IbvContext, *const u32, *mut IbvDeviceAttrEx, usize) -> c_int,
        >,
        224 ibv_destroy_flow: Unused,
        232 _abi_placeholder2: Unused,
        240 ibv_create_flow: Unused,
        248 _abi_placeholder1: Unused,
        256 open_qp: Option<
            unsafe extern "C" fn(*mut IbvContext, *mut IbvQpOpenAttr) -> *mut IbvQp,
        >,
        264 create_qp_ex: Option<
            unsafe extern "C" fn(*mut IbvContext, *mut IbvQpInitAttrEx) -> *mut IbvQp,
        >,
        272 get_srq_num: Option<unsafe extern "C" fn(*mut IbvSrq, *mut u32) -> c_int>,
        280 create_srq_ex: Option<
            unsafe extern "C" fn(*mut IbvContext, *mut IbvSrqInitAttrEx) -> *mut IbvSrq,
        >,
        288 open_xrcd: Option<
            unsafe extern "C" fn(*mut IbvContext, *mut IbvXrcdInitAttr) -> *mut IbvXrcd,
        >,
        296 close_xrcd: Option<unsafe extern "C" fn(*mut IbvXrcd) -> c_int>,
        304 _abi_placeholder3: u64,
        312 sz: usize,
        320 context: IbvContext,
    }
}
