//! What infiniband/verbs.h has as inline functions: calls through the functions that contexts, CQs
//! and QPs hold.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use ibverbs::layout::*;

use super::library::*;
use super::pair::*;

/// A CQ that is read field by field.
#[derive(Clone, Copy)]
pub(crate) struct CqEx(pub(crate) *mut IbvCqEx);

/// A QP whose requests are built piece by piece.
#[derive(Clone, Copy)]
pub(crate) struct QpEx(pub(crate) *mut IbvQpEx);

/// Defines methods that call functions an object holds, with the object first.
macro_rules! held {
    ($of:ident: $($name:ident => $field:ident($($arg:ident: $type:ty),*) $(-> $to:ty)?;)*) => {
        impl $of {$(
            pub(crate) fn $name(self, $($arg: $type),*) $(-> $to)? {
                let function = read(self.0).$field.unwrap();
                // SAFETY: as the inline function does; wrong values are what tests may pass.
                unsafe { function(self.0, $($arg),*) }
            }
        )*}
    };
}

held! {
    CqEx:
    start => start_poll(attr: *mut u32) -> c_int;
    next => next_poll() -> c_int;
    end => end_poll();
    opcode => read_opcode() -> c_int;
    vendor_err => read_vendor_err() -> u32;
    byte_len => read_byte_len() -> u32;
    imm_data => read_imm_data() -> u32;
    qp_num => read_qp_num() -> u32;
    src_qp => read_src_qp() -> u32;
    wc_flags => read_wc_flags() -> u32;
    slid => read_slid() -> u32;
    sl => read_sl() -> u8;
    dlid_path_bits => read_dlid_path_bits() -> u8;
    completion_ts => read_completion_ts() -> u64;
    wallclock_ns => read_completion_wallclock_ns() -> u64;
    cvlan => read_cvlan() -> u16;
    flow_tag => read_flow_tag() -> u32;
}

held! {
    QpEx:
    start => wr_start();
    complete => wr_complete() -> c_int;
    abort => wr_abort();
    wr_send => wr_send();
    wr_send_imm => wr_send_imm(imm: u32);
    wr_send_inv => wr_send_inv(rkey: u32);
    wr_write => wr_rdma_write(rkey: u32, remote: u64);
    wr_write_imm => wr_rdma_write_imm(rkey: u32, remote: u64, imm: u32);
    wr_read => wr_rdma_read(rkey: u32, remote: u64);
    wr_cmp_swp => wr_atomic_cmp_swp(rkey: u32, remote: u64, compare: u64, swap: u64);
    wr_fetch_add => wr_atomic_fetch_add(rkey: u32, remote: u64, add: u64);
    wr_atomic_write => wr_atomic_write(rkey: u32, remote: u64, value: *const c_void);
    wr_flush => wr_flush(rkey: u32, remote: u64, length: usize, level: u8, scope: u8);
    wr_local_inv => wr_local_inv(rkey: u32);
    wr_bind_mw => wr_bind_mw(mw: *mut IbvMw, rkey: u32, info: *const IbvMwBindInfo);
    set_ud_addr => wr_set_ud_addr(ah: *mut IbvAh, qpn: u32, qkey: u32);
    set_xrc_srqn => wr_set_xrc_srqn(number: u32);
    set_inline => wr_set_inline_data(from: *mut c_void, length: usize);
    set_inline_list => wr_set_inline_data_list(count: usize, list: *const IbvDataBuf);
    set_sge => wr_set_sge(lkey: u32, addr: u64, length: u32);
    set_sge_list => wr_set_sge_list(count: usize, list: *const IbvSge);
}

/// Defines callers of functions that stand before a context.
macro_rules! of_contexts {
    ($($field:ident($($arg:ident: $type:ty),*) -> $to:ty;)*) => {$(
        pub(crate) fn $field(context: *mut IbvContext, $($arg: $type),*) -> $to {
            let function = extended(context).$field.unwrap();
            // SAFETY: as the inline function does; wrong values are what tests may pass.
            unsafe { function($($arg),*) }
        }
    )*};
}

of_contexts! {
    alloc_null_mr(pd: *mut IbvPd) -> *mut IbvMr;
    reg_dm_mr(pd: *mut IbvPd, dm: *mut IbvDm, at: u64, n: usize, access: c_uint) -> *mut IbvMr;
    alloc_dm(of: *mut IbvContext, attr: *mut IbvAllocDmAttr) -> *mut IbvDm;
    free_dm(dm: *mut IbvDm) -> c_int;
    alloc_parent_domain(of: *mut IbvContext, attr: *mut IbvParentDomainInitAttr) -> *mut IbvPd;
    alloc_td(of: *mut IbvContext, attr: *mut IbvTdInitAttr) -> *mut IbvTd;
    dealloc_td(td: *mut IbvTd) -> c_int;
    query_rt_values(of: *mut IbvContext, values: *mut IbvValuesEx) -> c_int;
    create_cq_ex(of: *mut IbvContext, init: *mut IbvCqInitAttrEx) -> *mut IbvCqEx;
    create_qp_ex(of: *mut IbvContext, init: *mut IbvQpInitAttrEx) -> *mut IbvQp;
    open_qp(of: *mut IbvContext, attr: *mut IbvQpOpenAttr) -> *mut IbvQp;
    get_srq_num(srq: *mut IbvSrq, number: *mut u32) -> c_int;
    create_srq_ex(of: *mut IbvContext, init: *mut IbvSrqInitAttrEx) -> *mut IbvSrq;
    open_xrcd(of: *mut IbvContext, attr: *mut IbvXrcdInitAttr) -> *mut IbvXrcd;
    close_xrcd(xrcd: *mut IbvXrcd) -> c_int;
}

/// What stands before a context.
pub(crate) fn extended(context: *mut IbvContext) -> VerbsContext {
    let offset = std::mem::offset_of!(VerbsContext, context);
    read(context.cast::<u8>().wrapping_sub(offset).cast())
}

impl QpEx {
    /// The QP as one whose requests are built piece by piece.
    pub(crate) fn of(qp: *mut IbvQp) -> Self {
        let qp = ibv_qp_to_qp_ex(qp);
        assert!(!qp.is_null(), "errno {}", errno());
        Self(qp)
    }

    /// What the next request has as its number; it is signaled.
    pub(crate) fn number(self, wr_id: u64) -> Self {
        // SAFETY: a live QP's; the program sets these fields.
        let qp = unsafe { &mut *self.0 };
        (qp.wr_id, qp.wr_flags) = (wr_id, SIGNALED);
        self
    }
}

/// Asks a CQ for one event with its next completion.
pub(crate) fn notify(cq: *mut IbvCq) {
    let ops = read(read(cq).context).ops;
    // SAFETY: as the inline function does.
    assert_eq!(unsafe { ops.req_notify_cq.unwrap()(cq, 0) }, 0);
}

impl Rig {
    /// A CQ that is read field by field, on the channel.
    pub(crate) fn cq_ex(&self) -> CqEx {
        let (channel, wc_flags) = (self.channel, 0x8ff);
        let mut init = IbvCqInitAttrEx { cqe: 64, channel, wc_flags, ..IbvCqInitAttrEx::zero() };
        let cq = create_cq_ex(self.context, self.context, &raw mut init);
        assert!(!cq.is_null(), "errno {}", errno());
        CqEx(cq)
    }

    /// What a QP is made with whose requests are built piece by piece, of these operations.
    pub(crate) fn init_ex(&self, qp_type: c_int, operations: u64) -> IbvQpInitAttrEx {
        let IbvQpInitAttr { send_cq, recv_cq, cap, .. } = self.init(qp_type);
        IbvQpInitAttrEx {
            send_cq,
            recv_cq,
            cap,
            qp_type,
            // PD and SEND_OPS_FLAGS.
            comp_mask: 1 | 1 << 6,
            pd: self.pd,
            send_ops_flags: operations,
            ..IbvQpInitAttrEx::zero()
        }
    }

    /// Two of them, connected with each other.
    pub(crate) fn pair_ex(&self, mut init: IbvQpInitAttrEx) -> [*mut IbvQp; 2] {
        let make = |()| create_qp_ex(self.context, self.context, &raw mut init);
        let pair = [(); 2].map(make);
        assert!(pair.iter().all(|qp| !qp.is_null()), "errno {}", errno());
        self.connect(pair[0], pair[1]);
        self.connect(pair[1], pair[0]);
        pair
    }

    /// The address and key of a part of the buffer.
    pub(crate) fn remote(&self, at: usize) -> (u32, u64) {
        (read(self.mr).rkey, self.sge(at, 0).addr)
    }
}

/// Destroys QPs; each call must succeed.
pub(crate) fn destroy(qps: &[*mut IbvQp]) {
    qps.iter().for_each(|&qp| assert_eq!(ibv_destroy_qp(qp), 0));
}

/// No struct.
pub(crate) fn none<T>() -> *mut T {
    ptr::null_mut()
}
