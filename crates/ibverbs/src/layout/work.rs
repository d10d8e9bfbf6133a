//! Work requests and completions.

use std::ffi::{c_int, c_uint};

use super::{IbvAh, IbvMr, IbvMw, WrTarget, c_structs};

c_structs! {
    /// A piece of registered memory.
    IbvSge: 16 {
        0 addr: u64,
        8 length: u32,
        12 lkey: u32,
    }

    /// What a window is bound to.
    IbvMwBindInfo: 32 {
        0 mr: *mut IbvMr,
        8 addr: u64,
        16 length: u64,
        24 mw_access_flags: c_uint,
    }

    /// A bind of a window of type 1.
    IbvMwBind: 48 {
        0 wr_id: u64,
        8 send_flags: c_uint,
        16 bind_info: IbvMwBindInfo,
    }

    /// The peer's memory of a READ or WRITE.
    WrRdma: 16 {
        0 remote_addr: u64,
        8 rkey: u32,
    }

    /// The peer's word of an atomic.
    WrAtomic: 32 {
        0 remote_addr: u64,
        8 compare_add: u64,
        16 swap: u64,
        24 rkey: u32,
    }

    /// Where a datagram goes.
    WrUd: 16 {
        0 ah: *mut IbvAh,
        8 remote_qpn: u32,
        12 remote_qkey: u32,
    }

    /// A bind of a window of type 2.
    WrBind: 48 {
        0 mw: *mut IbvMw,
        8 rkey: u32,
        16 bind_info: IbvMwBindInfo,
    }

    /// A send work request.
    IbvSendWr: 128 {
        0 wr_id: u64,
        8 next: *mut IbvSendWr,
        16 sg_list: *mut IbvSge,
        24 num_sge: c_int,
        28 opcode: c_int,
        32 send_flags: c_uint,
        36 imm_data: u32,
        40 wr: WrTarget,
        72 remote_srqn: u32,
        80 bind_mw: WrBind,
    }

    /// A receive work request.
    IbvRecvWr: 32 {
        0 wr_id: u64,
        8 next: *mut IbvRecvWr,
        16 sg_list: *mut IbvSge,
        24 num_sge: c_int,
    }

    /// A completion.
    IbvWc: 48 {
        0 wr_id: u64,
        8 status: c_int,
        12 opcode: c_int,
        16 vendor_err: u32,
        20 byte_len: u32,
        24 imm_data: u32,
        28 qp_num: u32,
        32 src_qp: u32,
        36 wc_flags: c_uint,
        40 pkey_index: u16,
        42 slid: u16,
        44 sl: u8,
        45 dlid_path_bits: u8,
    }
}
