//! QP attributes from C and to C.

use std::ffi::c_int;
use std::net::IpAddr;

use urxe::{
    Access, AckTimeout, AttrMask, MigState, Mtu, Psn, QKey, QpAttr, QpCaps, QpState, Qpn, RnrTimer,
};

use crate::ah;
use crate::call::Fail;
use crate::layout::{IbvQpAttr, IbvQpCap, Zero};

fn state(value: c_int) -> Result<QpState, Fail> {
    let state = u32::try_from(value).ok().and_then(QpState::from_verbs);
    state.ok_or_else(|| Fail::invalid(format!("QP state {value}; there are 0 to 6")))
}

fn path_mtu(value: c_int) -> Result<Mtu, Fail> {
    let mtu = u8::try_from(value).ok().and_then(|code| Mtu::from_code(code).ok());
    mtu.ok_or_else(|| Fail::invalid(format!("path_mtu {value}; there are 1 to 5")))
}

fn mig_state(value: c_int) -> Result<MigState, Fail> {
    match value {
        0 => Ok(MigState::Migrated),
        1 => Ok(MigState::Rearm),
        2 => Ok(MigState::Armed),
        _ => Err(Fail::invalid(format!("path_mig_state {value}; there are 0 to 2"))),
    }
}

fn five_bits(field: &str, value: u8) -> Fail {
    Fail::invalid(format!("{field} {value}; there are 0 to 31"))
}

/// The attributes that `mask` names; the others are not looked at.
pub(super) fn of(attr: &IbvQpAttr, mask: AttrMask, own: IpAddr) -> Result<QpAttr, Fail> {
    let has = |bit| mask.contains(bit);
    let mut to = QpAttr {
        qkey: QKey(attr.qkey),
        rq_psn: Psn::new(attr.rq_psn),
        sq_psn: Psn::new(attr.sq_psn),
        dest_qp: Qpn::new(attr.dest_qp_num),
        access: Access::from_bits_truncate(attr.qp_access_flags),
        pkey_index: attr.pkey_index,
        en_sqd_async_notify: attr.en_sqd_async_notify != 0,
        max_rd_atomic: attr.max_rd_atomic,
        max_dest_rd_atomic: attr.max_dest_rd_atomic,
        port_num: attr.port_num,
        retry_cnt: attr.retry_cnt,
        rnr_retry: attr.rnr_retry,
        rate_limit: attr.rate_limit,
        ..QpAttr::default()
    };
    if has(AttrMask::STATE) {
        to.qp_state = state(attr.qp_state)?;
    }
    if has(AttrMask::CUR_STATE) {
        to.cur_qp_state = state(attr.cur_qp_state)?;
    }
    if has(AttrMask::PATH_MTU) {
        to.path_mtu = path_mtu(attr.path_mtu)?;
    }
    if has(AttrMask::PATH_MIG_STATE) {
        to.path_mig_state = mig_state(attr.path_mig_state)?;
    }
    if has(AttrMask::MIN_RNR_TIMER) {
        let timer = RnrTimer::new(attr.min_rnr_timer);
        to.min_rnr_timer = timer.map_err(|_| five_bits("min_rnr_timer", attr.min_rnr_timer))?;
    }
    if has(AttrMask::TIMEOUT) {
        let timeout = AckTimeout::new(attr.timeout);
        to.timeout = timeout.map_err(|_| five_bits("timeout", attr.timeout))?;
    }
    if has(AttrMask::AV) {
        to.ah = ah::way(&attr.ah_attr, own)?;
    }
    Ok(to)
}

pub(super) fn cap(caps: &QpCaps) -> IbvQpCap {
    IbvQpCap {
        max_send_wr: caps.max_send_wr,
        max_recv_wr: caps.max_recv_wr,
        max_send_sge: caps.max_send_sge,
        max_recv_sge: caps.max_recv_sge,
        max_inline_data: caps.max_inline_data,
    }
}

/// All attributes, as C is told of them.
pub(crate) fn shown(attr: &QpAttr) -> IbvQpAttr {
    IbvQpAttr {
        qp_state: attr.qp_state as c_int,
        cur_qp_state: attr.cur_qp_state as c_int,
        path_mtu: attr.path_mtu.code().into(),
        path_mig_state: attr.path_mig_state as c_int,
        qkey: attr.qkey.0,
        rq_psn: attr.rq_psn.value(),
        sq_psn: attr.sq_psn.value(),
        dest_qp_num: attr.dest_qp.value(),
        qp_access_flags: attr.access.bits(),
        cap: cap(&attr.caps),
        ah_attr: ah::shown(&attr.ah),
        pkey_index: attr.pkey_index,
        en_sqd_async_notify: attr.en_sqd_async_notify.into(),
        sq_draining: attr.sq_draining.into(),
        max_rd_atomic: attr.max_rd_atomic,
        max_dest_rd_atomic: attr.max_dest_rd_atomic,
        min_rnr_timer: attr.min_rnr_timer.code(),
        port_num: attr.port_num,
        timeout: attr.timeout.code(),
        retry_cnt: attr.retry_cnt,
        rnr_retry: attr.rnr_retry,
        rate_limit: attr.rate_limit,
        ..IbvQpAttr::zero()
    }
}
