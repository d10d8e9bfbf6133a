//! Two QPs of one context that are each other's peer, and a buffer.

use std::ffi::{c_int, c_void};
use std::ptr;

use ibverbs::layout::*;

use super::library::*;

/// `enum ibv_qp_type`.
pub(crate) const RC: c_int = 2;
pub(crate) const UC: c_int = 3;
pub(crate) const UD: c_int = 4;
pub(crate) const XRC_SEND: c_int = 9;
pub(crate) const XRC_RECV: c_int = 10;
/// `enum ibv_access_flags`: LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC, MW_BIND,
/// FLUSH_GLOBAL, FLUSH_PERSISTENT.
pub(crate) const ALL: c_int = 0x31f;
pub(crate) const LOCAL_WRITE: c_int = 1;
pub(crate) const REMOTE_WRITE: c_int = 2;
const MW_BIND: u32 = 0x10;
/// `enum ibv_send_flags`.
pub(crate) const SIGNALED: u32 = 2;

/// The calling thread's errno.
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Opens the device.
pub(crate) fn open() -> *mut IbvContext {
    let list = ibv_get_device_list(ptr::null_mut());
    // SAFETY: the list has one device at least.
    let context = ibv_open_device(unsafe { *list });
    ibv_free_device_list(list);
    assert!(!context.is_null(), "errno {}", errno());
    context
}

/// A context with a PD, a CQ on a channel, a buffer of 4,096 bytes and its MR.
#[derive(Clone, Copy)]
pub(crate) struct Rig {
    pub(crate) context: *mut IbvContext,
    pub(crate) channel: *mut IbvCompChannel,
    pub(crate) pd: *mut IbvPd,
    pub(crate) cq: *mut IbvCq,
    pub(crate) buffer: *mut u8,
    pub(crate) mr: *mut IbvMr,
}

pub(crate) const BUFFER: usize = 4096;

impl Rig {
    pub(crate) fn new() -> Self {
        let context = open();
        let channel = ibv_create_comp_channel(context);
        let pd = ibv_alloc_pd(context);
        let cq = ibv_create_cq(context, 64, ptr::null_mut(), channel, 0);
        let buffer: *mut u8 = Box::into_raw(Box::new([0_u8; BUFFER])).cast();
        let mr = ibv_reg_mr(pd, buffer.cast(), BUFFER, ALL);
        assert!(!channel.is_null() && !pd.is_null() && !cq.is_null() && !mr.is_null());
        Self { context, channel, pd, cq, buffer, mr }
    }

    pub(crate) fn init(&self, qp_type: c_int) -> IbvQpInitAttr {
        let cap = IbvQpCap {
            max_send_wr: 16,
            max_recv_wr: 16,
            max_send_sge: 4,
            max_recv_sge: 4,
            max_inline_data: 64,
        };
        let (send_cq, recv_cq) = (self.cq, self.cq);
        IbvQpInitAttr { send_cq, recv_cq, cap, qp_type, ..IbvQpInitAttr::zero() }
    }

    pub(crate) fn qp(&self, qp_type: c_int) -> *mut IbvQp {
        let mut init = self.init(qp_type);
        let qp = ibv_create_qp(self.pd, &raw mut init);
        assert!(!qp.is_null(), "errno {}", errno());
        qp
    }

    pub(crate) fn gid(&self) -> RawGid {
        let mut gid = RawGid([0; 16]);
        assert_eq!(ibv_query_gid(self.context, 1, 0, &raw mut gid), 0);
        gid
    }

    /// The way to ourselves.
    pub(crate) fn way(&self) -> IbvAhAttr {
        let grh = IbvGlobalRoute { dgid: self.gid(), hop_limit: 64, ..IbvGlobalRoute::zero() };
        IbvAhAttr { grh, is_global: 1, port_num: 1, ..IbvAhAttr::zero() }
    }

    /// RESET to RTS, towards the QP `peer`.
    pub(crate) fn connect(&self, qp: *mut IbvQp, peer: *mut IbvQp) {
        let (qp_type, number) = (read(qp).qp_type, read(peer).qp_num);
        let mut attr = IbvQpAttr {
            qp_state: 1,
            port_num: 1,
            qkey: 0x1234,
            qp_access_flags: ALL.cast_unsigned() & !MW_BIND,
            path_mtu: 3,
            dest_qp_num: number,
            ah_attr: self.way(),
            max_rd_atomic: 4,
            max_dest_rd_atomic: 4,
            min_rnr_timer: 12,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            ..IbvQpAttr::zero()
        };
        // STATE | PKEY_INDEX | PORT, and ACCESS_FLAGS or QKEY; AV, PATH_MTU, DEST_QPN, RQ_PSN,
        // MAX_DEST_RD_ATOMIC, MIN_RNR_TIMER; SQ_PSN, TIMEOUT, RETRY_CNT, RNR_RETRY,
        // MAX_QP_RD_ATOMIC.
        let masks: [c_int; 3] = match qp_type {
            RC | XRC_SEND | XRC_RECV => [0x39, 0x12_9181, 0x1_2e01],
            UC => [0x39, 0x10_1181, 0x1_0001],
            _ => [0x71, 0x1, 0x1_0001],
        };
        for (state, mask) in (1..).zip(masks) {
            attr.qp_state = state;
            assert_eq!(ibv_modify_qp(qp, &raw mut attr, mask), 0, "to state {state}");
            assert_eq!(read(qp).state, state);
        }
    }

    /// Two QPs connected with each other.
    pub(crate) fn pair(&self, qp_type: c_int) -> [*mut IbvQp; 2] {
        let pair = [self.qp(qp_type), self.qp(qp_type)];
        self.connect(pair[0], pair[1]);
        self.connect(pair[1], pair[0]);
        pair
    }

    /// A part of the buffer.
    pub(crate) fn sge(&self, at: usize, length: u32) -> IbvSge {
        let addr = self.buffer.wrapping_add(at).addr() as u64;
        IbvSge { addr, length, lkey: read(self.mr).lkey }
    }

    pub(crate) fn fill(&self, at: usize, bytes: &[u8]) {
        // SAFETY: within the buffer; the NIC is at rest.
        unsafe { self.buffer.wrapping_add(at).copy_from(bytes.as_ptr(), bytes.len()) };
    }

    pub(crate) fn bytes(&self, at: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        // SAFETY: within the buffer; the NIC is at rest.
        unsafe { self.buffer.wrapping_add(at).copy_to(bytes.as_mut_ptr(), length) };
        bytes
    }

    /// Polls until so many completions have come.
    pub(crate) fn wait(&self, count: usize) -> Vec<IbvWc> {
        wait(self.cq, count)
    }

    /// Destroys all of it; each call must succeed.
    pub(crate) fn close(self) {
        assert_eq!(ibv_dereg_mr(self.mr), 0);
        assert_eq!(ibv_destroy_cq(self.cq), 0);
        assert_eq!(ibv_destroy_comp_channel(self.channel), 0);
        assert_eq!(ibv_dealloc_pd(self.pd), 0);
        assert_eq!(ibv_close_device(self.context), 0);
        // SAFETY: from `new`.
        drop(unsafe { Box::from_raw(self.buffer.cast::<[u8; BUFFER]>()) });
    }
}

/// What a live object shows, or an element of a list.
pub(crate) fn read<T: Copy>(object: *mut T) -> T {
    // SAFETY: a live object of the library's.
    unsafe { *object }
}

pub(crate) fn poll(cq: *mut IbvCq, wcs: &mut [IbvWc]) -> c_int {
    let ops = read(read(cq).context).ops;
    let room = c_int::try_from(wcs.len()).unwrap();
    // SAFETY: as the inline function does; the room is the slice's.
    unsafe { ops.poll_cq.unwrap()(cq, room, wcs.as_mut_ptr()) }
}

pub(crate) fn wait(cq: *mut IbvCq, count: usize) -> Vec<IbvWc> {
    let start = std::time::Instant::now();
    let mut all = Vec::new();
    while all.len() < count {
        let mut wcs = [IbvWc::zero(); 4];
        let n = poll(cq, &mut wcs);
        assert!(n >= 0);
        all.extend_from_slice(&wcs[..usize::try_from(n).unwrap()]);
        assert!(start.elapsed().as_secs() < 60, "{} of {count} completions", all.len());
        std::thread::yield_now();
    }
    all
}

/// Posts requests; gives the errno and, where it failed, the index of the first not taken.
pub(crate) fn post_send(qp: *mut IbvQp, wrs: &mut [IbvSendWr]) -> (c_int, Option<usize>) {
    let first = wrs.as_mut_ptr();
    for at in 1..wrs.len() {
        wrs[at - 1].next = first.wrapping_add(at);
    }
    let mut bad = ptr::null_mut();
    let ops = read(read(qp).context).ops;
    // SAFETY: as the inline function does.
    let done = unsafe { ops.post_send.unwrap()(qp, first, &raw mut bad) };
    let at = (0..wrs.len()).find(|&at| first.wrapping_add(at) == bad);
    (done, at)
}

pub(crate) fn post_recv(qp: *mut IbvQp, wr_id: u64, sges: &mut [IbvSge]) -> c_int {
    let num_sge = c_int::try_from(sges.len()).unwrap();
    let mut wr = IbvRecvWr { wr_id, next: ptr::null_mut(), sg_list: sges.as_mut_ptr(), num_sge };
    let mut bad = ptr::null_mut();
    let ops = read(read(qp).context).ops;
    // SAFETY: as the inline function does.
    unsafe { ops.post_recv.unwrap()(qp, &raw mut wr, &raw mut bad) }
}

/// A signaled request.
pub(crate) fn send_wr(wr_id: u64, opcode: c_int, sges: &mut [IbvSge]) -> IbvSendWr {
    let num_sge = c_int::try_from(sges.len()).unwrap();
    let sg_list = sges.as_mut_ptr();
    IbvSendWr { wr_id, sg_list, num_sge, opcode, send_flags: SIGNALED, ..IbvSendWr::zero() }
}

/// Any pointer that is no object.
pub(crate) fn nowhere<T>() -> *mut T {
    ptr::without_provenance_mut::<c_void>(0x1000).cast()
}
