//! Objects that programs hold pointers to.

use std::ffi::{c_int, c_void};

use super::{IbvContext, c_structs};
use libc::{pthread_cond_t, pthread_mutex_t};

c_structs! {
    /// A protection domain.
    IbvPd: 16 {
        0 context: *mut IbvContext,
        8 handle: u32,
    }

    /// A memory region.
    IbvMr: 48 {
        0 context: *mut IbvContext,
        8 pd: *mut IbvPd,
        16 addr: *mut c_void,
        24 length: usize,
        32 handle: u32,
        36 lkey: u32,
        40 rkey: u32,
    }

    /// A memory window.
    IbvMw: 32 {
        0 context: *mut IbvContext,
        8 pd: *mut IbvPd,
        16 rkey: u32,
        20 handle: u32,
        24 kind: c_int,
    }

    /// Device memory.
    IbvDm: 32 {
        0 context: *mut IbvContext,
        8 memcpy_to_dm: Option<
            unsafe extern "C" fn(*mut IbvDm, u64, *const c_void, usize) -> c_int,
        >,
        16 memcpy_from_dm: Option<
            unsafe extern "C" fn(*mut c_void, *mut IbvDm, u64, usize) -> c_int,
        >,
        24 comp_mask: u32,
        28 handle: u32,
    }

    /// A thread domain.
    IbvTd: 8 {
        0 context: *mut IbvContext,
    }

    /// An XRC domain.
    IbvXrcd: 8 {
        0 context: *mut IbvContext,
    }

    /// Counters.
    IbvCounters: 8 {
        0 context: *mut IbvContext,
    }

    /// An address handle.
    IbvAh: 24 {
        0 context: *mut IbvContext,
        8 pd: *mut IbvPd,
        16 handle: u32,
    }

    /// A completion channel.
    IbvCompChannel: 16 {
        0 context: *mut IbvContext,
        8 fd: c_int,
        12 refcnt: c_int,
    }

    /// A completion queue.
    IbvCq: 128 {
        0 context: *mut IbvContext,
        8 channel: *mut IbvCompChannel,
        16 cq_context: *mut c_void,
        24 handle: u32,
        28 cqe: c_int,
        32 mutex: pthread_mutex_t,
        72 cond: pthread_cond_t,
        120 comp_events_completed: u32,
        124 async_events_completed: u32,
    }

    /// A shared receive queue.
    IbvSrq: 128 {
        0 context: *mut IbvContext,
        8 srq_context: *mut c_void,
        16 pd: *mut IbvPd,
        24 handle: u32,
        32 mutex: pthread_mutex_t,
        72 cond: pthread_cond_t,
        120 events_completed: u32,
    }

    /// A queue pair.
    IbvQp: 160 {
        0 context: *mut IbvContext,
        8 qp_context: *mut c_void,
        16 pd: *mut IbvPd,
        24 send_cq: *mut IbvCq,
        32 recv_cq: *mut IbvCq,
        40 srq: *mut IbvSrq,
        48 handle: u32,
        52 qp_num: u32,
        56 state: c_int,
        60 qp_type: c_int,
        64 mutex: pthread_mutex_t,
        104 cond: pthread_cond_t,
        152 events_completed: u32,
    }

    /// An asynchronous event.
    IbvAsyncEvent: 16 {
        0 element: usize,
        8 event_type: c_int,
    }
}
