//! What queues are made with and set to.

use std::ffi::{c_int, c_uint, c_void};

use super::{IbvCompChannel, IbvCq, IbvPd, IbvSrq, IbvXrcd, RawGid, c_structs};

c_structs! {
    /// A way by GID.
    IbvGlobalRoute: 24 {
        0 dgid: RawGid,
        16 flow_label: u32,
        20 sgid_index: u8,
        21 hop_limit: u8,
        22 traffic_class: u8,
    }

    /// A way to a peer.
    IbvAhAttr: 32 {
        0 grh: IbvGlobalRoute,
        24 dlid: u16,
        26 sl: u8,
        27 src_path_bits: u8,
        28 static_rate: u8,
        29 is_global: u8,
        30 port_num: u8,
    }

    /// Sizes of a QP.
    IbvQpCap: 20 {
        0 max_send_wr: u32,
        4 max_recv_wr: u32,
        8 max_send_sge: u32,
        12 max_recv_sge: u32,
        16 max_inline_data: u32,
    }

    /// A QP asked for.
    IbvQpInitAttr: 64 {
        0 qp_context: *mut c_void,
        8 send_cq: *mut IbvCq,
        16 recv_cq: *mut IbvCq,
        24 srq: *mut IbvSrq,
        32 cap: IbvQpCap,
        52 qp_type: c_int,
        56 sq_sig_all: c_int,
    }

    /// Receive side scaling asked for.
    IbvRxHashConf: 24 {
        0 rx_hash_function: u8,
        1 rx_hash_key_len: u8,
        8 rx_hash_key: *mut u8,
        16 rx_hash_fields_mask: u64,
    }

    /// A QP asked for, extended.
    IbvQpInitAttrEx: 136 {
        0 qp_context: *mut c_void,
        8 send_cq: *mut IbvCq,
        16 recv_cq: *mut IbvCq,
        24 srq: *mut IbvSrq,
        32 cap: IbvQpCap,
        52 qp_type: c_int,
        56 sq_sig_all: c_int,
        60 comp_mask: u32,
        64 pd: *mut IbvPd,
        72 xrcd: *mut IbvXrcd,
        80 create_flags: u32,
        84 max_tso_header: u16,
        88 rwq_ind_tbl: *mut c_void,
        96 rx_hash_conf: IbvRxHashConf,
        120 source_qpn: u32,
        128 send_ops_flags: u64,
    }

    /// A shared XRC QP asked for.
    IbvQpOpenAttr: 32 {
        0 comp_mask: u32,
        4 qp_num: u32,
        8 xrcd: *mut IbvXrcd,
        16 qp_context: *mut c_void,
        24 qp_type: c_int,
    }

    /// What a QP is set to.
    IbvQpAttr: 144 {
        0 qp_state: c_int,
        4 cur_qp_state: c_int,
        8 path_mtu: c_int,
        12 path_mig_state: c_int,
        16 qkey: u32,
        20 rq_psn: u32,
        24 sq_psn: u32,
        28 dest_qp_num: u32,
        32 qp_access_flags: c_uint,
        36 cap: IbvQpCap,
        56 ah_attr: IbvAhAttr,
        88 alt_ah_attr: IbvAhAttr,
        120 pkey_index: u16,
        122 alt_pkey_index: u16,
        124 en_sqd_async_notify: u8,
        125 sq_draining: u8,
        126 max_rd_atomic: u8,
        127 max_dest_rd_atomic: u8,
        128 min_rnr_timer: u8,
        129 port_num: u8,
        130 timeout: u8,
        131 retry_cnt: u8,
        132 rnr_retry: u8,
        133 alt_port_num: u8,
        134 alt_timeout: u8,
        136 rate_limit: u32,
    }

    /// A rate limit.
    IbvQpRateLimitAttr: 16 {
        0 rate_limit: u32,
        4 max_burst_sz: u32,
        8 typical_pkt_sz: u16,
        12 comp_mask: u32,
    }

    /// What an SRQ is set to.
    IbvSrqAttr: 12 {
        0 max_wr: u32,
        4 max_sge: u32,
        8 srq_limit: u32,
    }

    /// An SRQ asked for.
    IbvSrqInitAttr: 24 {
        0 srq_context: *mut c_void,
        8 attr: IbvSrqAttr,
    }

    /// An SRQ asked for, extended.
    IbvSrqInitAttrEx: 64 {
        0 srq_context: *mut c_void,
        8 attr: IbvSrqAttr,
        20 comp_mask: u32,
        24 srq_type: c_int,
        32 pd: *mut IbvPd,
        40 xrcd: *mut IbvXrcd,
        48 cq: *mut IbvCq,
        56 tm_cap: [u32; 2],
    }

    /// A CQ asked for, extended.
    IbvCqInitAttrEx: 56 {
        0 cqe: u32,
        8 cq_context: *mut c_void,
        16 channel: *mut IbvCompChannel,
        24 comp_vector: u32,
        32 wc_flags: u64,
        40 comp_mask: u32,
        44 flags: u32,
        48 parent_domain: *mut IbvPd,
    }

    /// What a CQ shall be set to.
    IbvModifyCqAttr: 8 {
        0 attr_mask: u32,
        4 cq_count: u16,
        6 cq_period: u16,
    }
}
