//! Numbers of infiniband/verbs.h.

use std::ffi::{c_int, c_uint};

pub const NODE_CA: c_int = 1;
pub const TRANSPORT_IB: c_int = 0;
pub const LINK_LAYER_ETHERNET: u8 = 2;
pub const PORT_DOWN: c_int = 1;
pub const PORT_ACTIVE: c_int = 4;
/// `IBV_PORT_CM_SUP | IBV_PORT_REINIT_SUP | IBV_PORT_DEVICE_MGMT_SUP | IBV_PORT_VENDOR_CLASS_SUP |
/// IBV_PORT_IP_BASED_GIDS`.
pub const PORT_CAPS: u32 = 1 << 16 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 26;
/// `IBV_QPF_GRH_REQUIRED`.
pub const PORT_GRH_REQUIRED: u8 = 1;

pub const GID_TYPE_ROCE_V2: u32 = 2;
/// `IBV_GID_TYPE_SYSFS_ROCE_V2`, as `ibv_query_gid_type` tells it.
pub const GID_TYPE_SYSFS_ROCE_V2: u32 = 1;

pub const ATOMIC_GLOB: c_int = 2;

/// CURR_QP_STATE_MOD, PORT_ACTIVE_EVENT, SYS_IMAGE_GUID, RC_RNR_NAK_GEN, SRQ_RESIZE, MEM_WINDOW,
/// XRC, MEM_MGT_EXTENSIONS, MEM_WINDOW_TYPE_2B.
pub const DEVICE_CAPS: c_uint =
    1 << 7 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 13 | 1 << 17 | 1 << 20 | 1 << 21 | 1 << 24;
/// `IB_UVERBS_DEVICE_FLUSH_GLOBAL`, `_FLUSH_PERSISTENT`, `_ATOMIC_WRITE` (Linux
/// include/uapi/rdma/ib_user_verbs.h).
pub const DEVICE_CAPS_EX: u64 = 1 << 38 | 1 << 39 | 1 << 40;

pub const ODP_SUPPORT: u64 = 1;
pub const ODP_SUPPORT_IMPLICIT: u64 = 1 << 1;
/// SEND, RECV, WRITE, READ, ATOMIC, SRQ_RECV.
pub const ODP_RC: u32 = 0x3f;
/// SEND, RECV, WRITE.
pub const ODP_UC: u32 = 0x07;
/// SEND, RECV, SRQ_RECV.
pub const ODP_UD: u32 = 0x23;

pub const FORK_UNNEEDED: c_int = 2;
