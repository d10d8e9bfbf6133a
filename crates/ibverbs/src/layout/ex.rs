//! Objects with functions in them: `ibv_cq_ex` and `ibv_qp_ex`.

use std::ffi::{c_int, c_uint, c_void};

use super::{
    IbvAh, IbvCq, IbvMw, IbvMwBindInfo, IbvQp, IbvSge, ReadU8, ReadU32, ReadU64, c_structs,
};

c_structs! {
    /// A completion queue that is read field by field.
    IbvCqEx: 288 {
        0 base: IbvCq,
        128 comp_mask: u32,
        132 status: c_int,
        136 wr_id: u64,
        144 start_poll: Option<unsafe extern "C" fn(*mut IbvCqEx, *mut u32) -> c_int>,
        152 next_poll: Option<unsafe extern "C" fn(*mut IbvCqEx) -> c_int>,
        160 end_poll: Option<unsafe extern "C" fn(*mut IbvCqEx)>,
        168 read_opcode: Option<unsafe extern "C" fn(*mut IbvCqEx) -> c_int>,
        176 read_vendor_err: ReadU32,
        184 read_byte_len: ReadU32,
        192 read_imm_data: ReadU32,
        200 read_qp_num: ReadU32,
        208 read_src_qp: ReadU32,
        216 read_wc_flags: ReadU32,
        224 read_slid: ReadU32,
        232 read_sl: ReadU8,
        240 read_dlid_path_bits: ReadU8,
        248 read_completion_ts: ReadU64,
        256 read_cvlan: Option<unsafe extern "C" fn(*mut IbvCqEx) -> u16>,
        264 read_flow_tag: ReadU32,
        272 read_tm_info: Option<unsafe extern "C" fn(*mut IbvCqEx, *mut IbvWcTmInfo)>,
        280 read_completion_wallclock_ns: ReadU64,
    }

    /// Tag matching of a completion.
    IbvWcTmInfo: 16 {
        0 tag: u64,
        8 priv_: u32,
    }

    /// A queue pair with the functions that build work requests.
    IbvQpEx: 360 {
        0 qp_base: IbvQp,
        160 comp_mask: u64,
        168 wr_id: u64,
        176 wr_flags: c_uint,
        184 wr_atomic_cmp_swp: Option<unsafe extern "C" fn(*mut IbvQpEx, u32, u64, u64, u64)>,
        192 wr_atomic_fetch_add: Option<unsafe extern "C" fn(*mut IbvQpEx, u32, u64, u64)>,
        200 wr_bind_mw: Option<
            unsafe extern "C" fn(*mut IbvQpEx, *mut IbvMw, u32, *const IbvMwBindInfo),
        >,
        208 wr_local_inv: Option<unsafe extern "C" fn(*mut IbvQpEx, u32)>,
        216 wr_rdma_read: Option<unsafe extern "C" fn(*mut IbvQpEx, u32, u64)>,
        224 wr_rdma_write: Option<unsafe extern "C" fn(*mut IbvQpEx, u32, u64)>,
        232 wr_rdma_write_imm: Option<unsafe extern "C" fn(*mut IbvQpEx, u32, u64, u32)>,
        240 wr_send: Option<unsafe extern "C" fn(*mut IbvQpEx)>,
        248 wr_send_imm: Option<unsafe extern "C" fn(*mut IbvQpEx, u32)>,
        256 wr_send_inv: Option<unsafe extern "C" fn(*mut IbvQpEx, u32)>,
        264 wr_send_tso: Option<unsafe extern "C" fn(*mut IbvQpEx, *mut c_void, u16, u16)>,
        272 wr_set_ud_addr: Option<unsafe extern "C" fn(*mut IbvQpEx, *mut IbvAh, u32, u32)>,
        280 wr_set_xrc_srqn: Option<unsafe extern "C" fn(*mut IbvQpEx, u32)>,
        288 wr_set_inline_data: Option<unsafe extern "C" fn(*mut IbvQpEx, *mut c_void, usize)>,
        296 wr_set_inline_data_list: Option<
            unsafe extern "C" fn(*mut IbvQpEx, usize, *const IbvDataBuf),
        >,
        304 wr_set_sge: Option<unsafe extern "C" fn(*mut IbvQpEx, u32, u64, u32)>,
        312 wr_set_sge_list: Option<unsafe extern "C" fn(*mut IbvQpEx, usize, *const IbvSge)>,
        320 wr_start: Option<unsafe extern "C" fn(*mut IbvQpEx)>,
        328 wr_complete: Option<unsafe extern "C" fn(*mut IbvQpEx) -> c_int>,
        336 wr_abort: Option<unsafe extern "C" fn(*mut IbvQpEx)>,
        344 wr_atomic_write: Option<unsafe extern "C" fn(*mut IbvQpEx, u32, u64, *const c_void)>,
        352 wr_flush: Option<unsafe extern "C" fn(*mut IbvQpEx, u32, u64, usize, u8, u8)>,
    }

    /// A piece of inline data.
    IbvDataBuf: 16 {
        0 addr: *mut c_void,
        8 length: usize,
    }
}
