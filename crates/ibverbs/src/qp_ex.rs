//! `ibv_qp_ex`: requests built piece by piece, posted together or not at all.

use std::ffi::c_int;

use urxe::QpKind;

use crate::call::{Fail, input, pointer};
use crate::domain::no_mask;
use crate::layout::{IbvContext, IbvQp, IbvQpInitAttrEx};
use crate::qp;

mod builder;
mod functions;

pub(crate) use builder::Builder;
pub(crate) use operation::ATOMIC_WRITE;

/// `enum ibv_qp_init_attr_mask`: PD, XRCD, CREATE_FLAGS, SEND_OPS_FLAGS; the rest is of raw
/// packets.
const PD: u32 = 1;
const XRCD: u32 = 1 << 1;
const CREATE_FLAGS: u32 = 1 << 2;
const SEND_OPS: u32 = 1 << 6;

/// `enum ibv_qp_create_send_ops_flags`.
mod operation {
    pub(super) const WRITE: u64 = 1;
    pub(super) const WRITE_IMM: u64 = 1 << 1;
    pub(super) const SEND: u64 = 1 << 2;
    pub(super) const SEND_IMM: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CMP_SWAP: u64 = 1 << 5;
    pub(super) const FETCH_ADD: u64 = 1 << 6;
    pub(super) const LOCAL_INV: u64 = 1 << 7;
    pub(super) const BIND_MW: u64 = 1 << 8;
    pub(super) const SEND_INV: u64 = 1 << 9;
    pub(super) const FLUSH: u64 = 1 << 11;
    pub(crate) const ATOMIC_WRITE: u64 = 1 << 12;
}

/// The requests that a QP of this type can make (IBA 10.2.4).
fn operations(qp_type: c_int) -> u64 {
    use operation as o;
    let datagram = o::SEND | o::SEND_IMM;
    let unreliable = datagram | o::WRITE | o::WRITE_IMM | o::LOCAL_INV | o::BIND_MW;
    let reliable = o::READ | o::CMP_SWAP | o::FETCH_ADD | o::SEND_INV | o::FLUSH | ATOMIC_WRITE;
    match u32::try_from(qp_type).ok().and_then(QpKind::from_verbs) {
        Some(QpKind::Ud) => datagram,
        Some(QpKind::Uc) => unreliable,
        Some(QpKind::Rc | QpKind::XrcInit) => unreliable | reliable,
        _ => 0,
    }
}

/// # Safety
/// `init` is null or points to the struct.
pub(crate) unsafe extern "C" fn create_qp_ex(
    context: *mut IbvContext,
    init: *mut IbvQpInitAttrEx,
) -> *mut IbvQp {
    pointer("ibv_create_qp_ex", || {
        // SAFETY: the caller's.
        let init = unsafe { input(init, "qp_init_attr_ex") }?;
        no_mask(init.comp_mask, PD | XRCD | CREATE_FLAGS | SEND_OPS)?;
        let has = |bit| init.comp_mask & bit != 0;
        if has(CREATE_FLAGS) && init.create_flags != 0 {
            return Err(Fail::unsupported(format!("create_flags {:#x}", init.create_flags)));
        }
        let mut extras = qp::Extras::default();
        if has(SEND_OPS) {
            let missing = init.send_ops_flags & !operations(init.qp_type);
            if missing != 0 {
                // The program would call through a null pointer if this were let by.
                return Err(Fail::unsupported(format!("send_ops_flags {missing:#x}")));
            }
            extras.operations = init.send_ops_flags;
            extras.table = functions::table();
        }
        if has(XRCD) {
            extras.xrcd = init.xrcd;
        }
        let pd = if has(PD) { init.pd } else { std::ptr::null_mut() };
        qp::create(context, pd, &init.base(), &extras)
    })
}
