//! Structs of the kernel that `ibv_copy_*` turns into those of verbs.

use std::ffi::c_int;

use super::{IbvAhAttr, IbvQpCap, RawGid, c_structs};

c_structs! {
    /// `struct ib_uverbs_qp_attr` (rdma/ib_user_verbs.h).
    KernQpAttr: 144 {
        0 qp_attr_mask: u32,
        4 qp_state: u32,
        8 cur_qp_state: u32,
        12 path_mtu: u32,
        16 path_mig_state: u32,
        20 qkey: u32,
        24 rq_psn: u32,
        28 sq_psn: u32,
        32 dest_qp_num: u32,
        36 qp_access_flags: u32,
        40 ah_attr: IbvAhAttr,
        72 alt_ah_attr: IbvAhAttr,
        104 cap: IbvQpCap,
        124 pkey_index: u16,
        126 alt_pkey_index: u16,
        128 en_sqd_async_notify: u8,
        129 sq_draining: u8,
        130 max_rd_atomic: u8,
        131 max_dest_rd_atomic: u8,
        132 min_rnr_timer: u8,
        133 port_num: u8,
        134 timeout: u8,
        135 retry_cnt: u8,
        136 rnr_retry: u8,
        137 alt_port_num: u8,
        138 alt_timeout: u8,
        139 reserved: [u8; 5],
    }

    /// `struct ib_user_path_rec` (rdma/ib_user_sa.h).
    KernPathRec: 64 {
        0 dgid: [u8; 16],
        16 sgid: [u8; 16],
        32 dlid: u16,
        34 slid: u16,
        36 raw_traffic: u32,
        40 flow_label: u32,
        44 reversible: u32,
        48 mtu: u32,
        52 pkey: u16,
        54 hop_limit: u8,
        55 traffic_class: u8,
        56 numb_path: u8,
        57 sl: u8,
        58 mtu_selector: u8,
        59 rate_selector: u8,
        60 rate: u8,
        61 packet_life_time_selector: u8,
        62 packet_life_time: u8,
        63 preference: u8,
    }

    /// `struct ibv_sa_path_rec` (infiniband/sa.h).
    SaPathRec: 64 {
        0 dgid: RawGid,
        16 sgid: RawGid,
        32 dlid: u16,
        34 slid: u16,
        36 raw_traffic: c_int,
        40 flow_label: u32,
        44 hop_limit: u8,
        45 traffic_class: u8,
        48 reversible: c_int,
        52 numb_path: u8,
        54 pkey: u16,
        56 sl: u8,
        57 mtu_selector: u8,
        58 mtu: u8,
        59 rate_selector: u8,
        60 rate: u8,
        61 packet_life_time_selector: u8,
        62 packet_life_time: u8,
        63 preference: u8,
    }
}
