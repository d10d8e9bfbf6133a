//! Structs of the kernel's connection manager as those of verbs, for the librdmacm of others.

use crate::call::{code, input, output};
use crate::layout::{IbvAhAttr, IbvQpAttr, KernPathRec, KernQpAttr, RawGid, SaPathRec};

/// # Safety
/// Both are null or point to their structs; that of the kernel has the same layout.
pub(crate) unsafe extern "C" fn ah_attr(to: *mut IbvAhAttr, from: *const IbvAhAttr) {
    code("ibv_copy_ah_attr_from_kern", || {
        // SAFETY: the caller's.
        let from = unsafe { input(from, "src") }?;
        // SAFETY: the caller's.
        unsafe { output(to, *from, "dst") }
    });
}

/// # Safety
/// Both are null or point to their structs.
pub(crate) unsafe extern "C" fn qp_attr(to: *mut IbvQpAttr, from: *const KernQpAttr) {
    code("ibv_copy_qp_attr_from_kern", || {
        // SAFETY: the caller's.
        let from = unsafe { input(from, "src") }?;
        let attr = IbvQpAttr {
            qp_state: from.qp_state.cast_signed(),
            cur_qp_state: from.cur_qp_state.cast_signed(),
            path_mtu: from.path_mtu.cast_signed(),
            path_mig_state: from.path_mig_state.cast_signed(),
            qkey: from.qkey,
            rq_psn: from.rq_psn,
            sq_psn: from.sq_psn,
            dest_qp_num: from.dest_qp_num,
            qp_access_flags: from.qp_access_flags,
            cap: from.cap,
            ah_attr: from.ah_attr,
            alt_ah_attr: from.alt_ah_attr,
            pkey_index: from.pkey_index,
            alt_pkey_index: from.alt_pkey_index,
            en_sqd_async_notify: from.en_sqd_async_notify,
            sq_draining: from.sq_draining,
            max_rd_atomic: from.max_rd_atomic,
            max_dest_rd_atomic: from.max_dest_rd_atomic,
            min_rnr_timer: from.min_rnr_timer,
            port_num: from.port_num,
            timeout: from.timeout,
            retry_cnt: from.retry_cnt,
            rnr_retry: from.rnr_retry,
            alt_port_num: from.alt_port_num,
            alt_timeout: from.alt_timeout,
            rate_limit: 0,
        };
        // SAFETY: the caller's.
        unsafe { output(to, attr, "dst") }
    });
}

/// # Safety
/// Both are null or point to their structs.
pub(crate) unsafe extern "C" fn path_from(to: *mut SaPathRec, from: *const KernPathRec) {
    code("ibv_copy_path_rec_from_kern", || {
        // SAFETY: the caller's.
        let from = unsafe { input(from, "src") }?;
        let path = SaPathRec {
            dgid: RawGid(from.dgid),
            sgid: RawGid(from.sgid),
            dlid: from.dlid,
            slid: from.slid,
            raw_traffic: from.raw_traffic.cast_signed(),
            flow_label: from.flow_label,
            hop_limit: from.hop_limit,
            traffic_class: from.traffic_class,
            reversible: from.reversible.cast_signed(),
            numb_path: from.numb_path,
            pkey: from.pkey,
            sl: from.sl,
            mtu_selector: from.mtu_selector,
            // Eight bits of a code that has six.
            mtu: from.mtu.to_le_bytes()[0],
            rate_selector: from.rate_selector,
            rate: from.rate,
            packet_life_time_selector: from.packet_life_time_selector,
            packet_life_time: from.packet_life_time,
            preference: from.preference,
        };
        // SAFETY: the caller's.
        unsafe { output(to, path, "dst") }
    });
}

/// # Safety
/// Both are null or point to their structs.
pub(crate) unsafe extern "C" fn path_to(to: *mut KernPathRec, from: *const SaPathRec) {
    code("ibv_copy_path_rec_to_kern", || {
        // SAFETY: the caller's.
        let from = unsafe { input(from, "src") }?;
        let path = KernPathRec {
            dgid: from.dgid.0,
            sgid: from.sgid.0,
            dlid: from.dlid,
            slid: from.slid,
            raw_traffic: from.raw_traffic.cast_unsigned(),
            flow_label: from.flow_label,
            reversible: from.reversible.cast_unsigned(),
            mtu: from.mtu.into(),
            pkey: from.pkey,
            hop_limit: from.hop_limit,
            traffic_class: from.traffic_class,
            numb_path: from.numb_path,
            sl: from.sl,
            mtu_selector: from.mtu_selector,
            rate_selector: from.rate_selector,
            rate: from.rate,
            packet_life_time_selector: from.packet_life_time_selector,
            packet_life_time: from.packet_life_time,
            preference: from.preference,
        };
        // SAFETY: the caller's.
        unsafe { output(to, path, "dst") }
    });
}
