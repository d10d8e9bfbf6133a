//! What devices and ports say of themselves.

use std::ffi::{c_int, c_uint, c_void};

use super::{IbvPd, IbvTd, RawGid, Unused, c_structs};
use libc::timespec;

c_structs! {
    /// An entry of a GID table.
    IbvGidEntry: 32 {
        0 gid: RawGid,
        16 gid_index: u32,
        20 port_num: u32,
        24 gid_type: u32,
        28 ndev_ifindex: u32,
    }

    /// What a device has.
    IbvDeviceAttr: 232 {
        0 fw_ver: [u8; 64],
        64 node_guid: [u8; 8],
        72 sys_image_guid: [u8; 8],
        80 max_mr_size: u64,
        88 page_size_cap: u64,
        96 vendor_id: u32,
        100 vendor_part_id: u32,
        104 hw_ver: u32,
        108 max_qp: c_int,
        112 max_qp_wr: c_int,
        116 device_cap_flags: c_uint,
        120 max_sge: c_int,
        124 max_sge_rd: c_int,
        128 max_cq: c_int,
        132 max_cqe: c_int,
        136 max_mr: c_int,
        140 max_pd: c_int,
        144 max_qp_rd_atom: c_int,
        148 max_ee_rd_atom: c_int,
        152 max_res_rd_atom: c_int,
        156 max_qp_init_rd_atom: c_int,
        160 max_ee_init_rd_atom: c_int,
        164 atomic_cap: c_int,
        168 max_ee: c_int,
        172 max_rdd: c_int,
        176 max_mw: c_int,
        180 max_raw_ipv6_qp: c_int,
        184 max_raw_ethy_qp: c_int,
        188 max_mcast_grp: c_int,
        192 max_mcast_qp_attach: c_int,
        196 max_total_mcast_qp_attach: c_int,
        200 max_ah: c_int,
        204 max_fmr: c_int,
        208 max_map_per_fmr: c_int,
        212 max_srq: c_int,
        216 max_srq_wr: c_int,
        220 max_srq_sge: c_int,
        224 max_pkeys: u16,
        226 local_ca_ack_delay: u8,
        227 phys_port_cnt: u8,
    }

    /// On-demand paging.
    IbvOdpCaps: 24 {
        0 general_caps: u64,
        8 rc: u32,
        12 uc: u32,
        16 ud: u32,
    }

    /// Tag matching.
    IbvTmCaps: 20 {
        0 max_rndv_hdr_size: u32,
        4 max_num_tags: u32,
        8 flags: u32,
        12 max_ops: u32,
        16 max_sge: u32,
    }

    /// Receive side scaling.
    IbvRssCaps: 32 {
        0 supported_qpts: u32,
        4 max_rwq_indirection_tables: u32,
        8 max_rwq_indirection_table_size: u32,
        16 rx_hash_fields_mask: u64,
        24 rx_hash_function: u8,
    }

    /// What a device has, extended.
    IbvDeviceAttrEx: 400 {
        0 orig_attr: IbvDeviceAttr,
        232 comp_mask: u32,
        240 odp_caps: IbvOdpCaps,
        264 completion_timestamp_mask: u64,
        272 hca_core_clock: u64,
        280 device_cap_flags_ex: u64,
        288 tso_caps: [u32; 2],
        296 rss_caps: IbvRssCaps,
        328 max_wq_type_rq: u32,
        332 packet_pacing_caps: [u32; 3],
        344 raw_packet_caps: u32,
        348 tm_caps: IbvTmCaps,
        368 cq_mod_caps: [u16; 2],
        376 max_dm_size: u64,
        384 pci_atomic_caps: [u16; 3],
        392 xrc_odp_caps: u32,
        396 phys_port_cnt_ex: u32,
    }

    /// What old programs hold for a port: `IbvPortAttr` up to `flags`.
    CompatPortAttr: 48 {
        0 state: c_int,
        4 max_mtu: c_int,
        8 active_mtu: c_int,
        12 gid_tbl_len: c_int,
        16 port_cap_flags: u32,
        20 max_msg_sz: u32,
        24 bad_pkey_cntr: u32,
        28 qkey_viol_cntr: u32,
        32 pkey_tbl_len: u16,
        34 lid: u16,
        36 sm_lid: u16,
        38 lmc: u8,
        39 max_vl_num: u8,
        40 sm_sl: u8,
        41 subnet_timeout: u8,
        42 init_type_reply: u8,
        43 active_width: u8,
        44 active_speed: u8,
        45 phys_state: u8,
        46 link_layer: u8,
        47 flags: u8,
    }

    /// A port, as rdma-core 64 has it: older programs hold a part.
    IbvPortAttr: 56 {
        0 compat: CompatPortAttr,
        48 port_cap_flags2: u16,
        52 active_speed_ex: u32,
    }

    /// Device memory asked for.
    IbvAllocDmAttr: 16 {
        0 length: usize,
        8 log_align_req: u32,
        12 comp_mask: u32,
    }

    /// Counters asked for.
    IbvCountersInitAttr: 4 {
        0 comp_mask: u32,
    }

    /// A thread domain asked for.
    IbvTdInitAttr: 4 {
        0 comp_mask: u32,
    }

    /// A parent domain asked for.
    IbvParentDomainInitAttr: 48 {
        0 pd: *mut IbvPd,
        8 td: *mut IbvTd,
        16 comp_mask: u32,
        24 alloc: Unused,
        32 free: Unused,
        40 pd_context: *mut c_void,
    }

    /// Clock values.
    IbvValuesEx: 24 {
        0 comp_mask: u32,
        8 raw_clock: timespec,
    }

    /// Enhanced connection establishment.
    IbvEce: 12 {
        0 vendor_id: u32,
        4 options: u32,
        8 comp_mask: u32,
    }

    /// An XRC domain asked for.
    IbvXrcdInitAttr: 12 {
        0 comp_mask: u32,
        4 fd: c_int,
        8 oflags: c_int,
    }
}
