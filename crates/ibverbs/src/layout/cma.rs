//! Structs of rdma/rdma_cma.h and infiniband/sa.h.

use std::ffi::{c_char, c_int, c_void};

use libc::{sockaddr, sockaddr_storage};

use super::{
    IbvAhAttr, IbvCompChannel, IbvContext, IbvCq, IbvPd, IbvQp, IbvSrq, RawGid, SaPathRec,
    c_structs,
};

c_structs! {
    /// An event channel.
    RdmaEventChannel: 4 {
        0 fd: c_int,
    }

    /// InfiniBand's addresses of both sides.
    RdmaIbAddr: 40 {
        0 sgid: RawGid,
        16 dgid: RawGid,
        32 pkey: u16,
    }

    /// Addresses of both sides.
    RdmaAddr: 296 {
        0 src: sockaddr_storage,
        128 dst: sockaddr_storage,
        256 ib: RdmaIbAddr,
    }

    /// The way to the other side.
    RdmaRoute: 312 {
        0 addr: RdmaAddr,
        296 path_rec: *mut SaPathRec,
        304 num_paths: c_int,
    }

    /// A communication identifier.
    RdmaCmId: 416 {
        0 verbs: *mut IbvContext,
        8 channel: *mut RdmaEventChannel,
        16 context: *mut c_void,
        24 qp: *mut IbvQp,
        32 route: RdmaRoute,
        344 ps: c_int,
        348 port_num: u8,
        352 event: *mut RdmaCmEvent,
        360 send_cq_channel: *mut IbvCompChannel,
        368 send_cq: *mut IbvCq,
        376 recv_cq_channel: *mut IbvCompChannel,
        384 recv_cq: *mut IbvCq,
        392 srq: *mut IbvSrq,
        400 pd: *mut IbvPd,
        408 qp_type: c_int,
    }

    /// What a connection is asked for, and accepted with.
    RdmaConnParam: 24 {
        0 private_data: *const c_void,
        8 private_data_len: u8,
        9 responder_resources: u8,
        10 initiator_depth: u8,
        11 flow_control: u8,
        12 retry_count: u8,
        13 rnr_retry_count: u8,
        14 srq: u8,
        16 qp_num: u32,
    }

    /// The way to a QP that takes datagrams.
    RdmaUdParam: 56 {
        0 private_data: *const c_void,
        8 private_data_len: u8,
        16 ah_attr: IbvAhAttr,
        48 qp_num: u32,
        52 qkey: u32,
    }

    /// What happened.
    RdmaCmEvent: 80 {
        0 id: *mut RdmaCmId,
        8 listen_id: *mut RdmaCmId,
        16 event: c_int,
        20 status: c_int,
        24 param: RdmaEventParam,
    }

    /// An address that was looked up, in a list.
    RdmaAddrinfo: 96 {
        0 ai_flags: c_int,
        4 ai_family: c_int,
        8 ai_qp_type: c_int,
        12 ai_port_space: c_int,
        16 ai_src_len: u32,
        20 ai_dst_len: u32,
        24 ai_src_addr: *mut sockaddr,
        32 ai_dst_addr: *mut sockaddr,
        40 ai_src_canonname: *mut c_char,
        48 ai_dst_canonname: *mut c_char,
        56 ai_route_len: usize,
        64 ai_route: *mut c_void,
        72 ai_connect_len: usize,
        80 ai_connect: *mut c_void,
        88 ai_next: *mut RdmaAddrinfo,
    }

    /// A multicast group to join.
    RdmaJoinMcAttrEx: 16 {
        0 comp_mask: u32,
        4 join_flags: u32,
        8 addr: *mut sockaddr,
    }

    /// A path, as it goes over the wire: numbers are big-endian.
    IbvPathRecord: 64 {
        0 service_id: u64,
        8 dgid: RawGid,
        24 sgid: RawGid,
        40 dlid: u16,
        42 slid: u16,
        44 flowlabel_hoplimit: u32,
        48 tclass: u8,
        49 reversible_numpath: u8,
        50 pkey: u16,
        52 qosclass_sl: u16,
        54 mtu: u8,
        55 rate: u8,
        56 packetlifetime: u8,
        57 preference: u8,
        58 reserved: [u8; 6],
    }

    /// A path with what it is for.
    IbvPathData: 72 {
        0 flags: u32,
        4 reserved: u32,
        8 path: IbvPathRecord,
    }
}

/// What an event tells of the other side; the id's port space says which is meant.
#[repr(C)]
#[derive(Clone, Copy)]
pub union RdmaEventParam {
    pub conn: RdmaConnParam,
    pub ud: RdmaUdParam,
}

const _: () = assert!(size_of::<RdmaEventParam>() == 56);

impl std::fmt::Debug for RdmaEventParam {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RdmaEventParam")
    }
}
