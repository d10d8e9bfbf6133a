//! `ibv_cq_ex`: completions that are read field by field.

use std::ffi::c_int;

use parking_lot::Mutex;
use urxe::{Completion, WcFlags};

use crate::call::{Fail, code, input, or, pointer};
use crate::cq::{self, Cq, Wanted};
use crate::domain::no_mask;
use crate::layout::{IbvContext, IbvCqEx, IbvCqInitAttrEx, IbvWcTmInfo, Zero};
use crate::object::ours;
use crate::pd;
use crate::turn::Turn;
use crate::wc;
use crate::{idle, report};

/// Where a program stands in reading completions. From `start_poll` to `end_poll` it is one
/// thread's, which may be another than the one that ends it.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    turn: Turn,
    now: Mutex<Option<Completion>>,
}

/// The function table of a CQ that was not made to be read so.
pub(crate) fn plain() -> IbvCqEx {
    IbvCqEx::zero()
}

/// `IBV_CQ_INIT_ATTR_MASK_FLAGS`, `_PD`.
const MASK: u32 = 3;
/// `IBV_CREATE_CQ_ATTR_SINGLE_THREADED`, `_IGNORE_OVERRUN`.
const FLAGS: u32 = 3;
/// All of `enum ibv_create_cq_wc_flags` but CVLAN, FLOW_TAG and TM_INFO, which RoCE has not.
const WC_FLAGS: u64 = 0x8ff;

fn functions() -> IbvCqEx {
    IbvCqEx {
        start_poll: Some(start_poll),
        next_poll: Some(next_poll),
        end_poll: Some(end_poll),
        read_opcode: Some(read_opcode),
        read_vendor_err: Some(read_vendor_err),
        read_byte_len: Some(read_byte_len),
        read_imm_data: Some(read_imm_data),
        read_qp_num: Some(read_qp_num),
        read_src_qp: Some(read_src_qp),
        read_wc_flags: Some(read_wc_flags),
        read_slid: Some(read_slid),
        read_sl: Some(read_sl),
        read_dlid_path_bits: Some(read_dlid_path_bits),
        read_completion_ts: Some(read_completion_ts),
        read_cvlan: Some(read_cvlan),
        read_flow_tag: Some(read_flow_tag),
        read_tm_info: Some(read_tm_info),
        read_completion_wallclock_ns: Some(read_wallclock),
        ..IbvCqEx::zero()
    }
}

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn create_cq_ex(
    context: *mut IbvContext,
    attr: *mut IbvCqInitAttrEx,
) -> *mut IbvCqEx {
    pointer("ibv_create_cq_ex", || {
        // SAFETY: the caller's.
        let attr = unsafe { input(attr, "cq_attr") }?;
        no_mask(attr.comp_mask, MASK)?;
        if attr.wc_flags & !WC_FLAGS != 0 {
            let why = format!("wc_flags {:#x}; known are {WC_FLAGS:#x}", attr.wc_flags);
            return Err(Fail::unsupported(why));
        }
        if attr.comp_mask & 1 != 0 && attr.flags & !FLAGS != 0 {
            return Err(Fail::unsupported(format!("flags {:#x}; known are 3", attr.flags)));
        }
        if attr.comp_mask & 2 != 0 {
            pd::of(attr.parent_domain)?;
        }
        let (cqe, cq_context, channel) = (attr.cqe, attr.cq_context, attr.channel);
        let wanted = Wanted { cqe, cq_context, channel, vector: attr.comp_vector };
        cq::create(context, &wanted, functions())
    })
}

/// Goes on to the next completion.
fn advance(cq: *mut IbvCqEx, own: &Cq) -> Result<(), Fail> {
    let mut next = None;
    own.cq.poll_with(1, |completion| next = Some(completion))?;
    let completion = next.ok_or_else(none)?;
    report::completed(&completion);
    // SAFETY: a live object's; these fields are the library's.
    let shown = unsafe { &mut *cq };
    (shown.status, shown.wr_id) = (completion.status as c_int, completion.wr_id);
    *own.cursor.now.lock() = Some(completion);
    Ok(())
}

fn none() -> Fail {
    Fail::not_yet(libc::ENOENT, "no completion waits")
}

unsafe extern "C" fn start_poll(cq: *mut IbvCqEx, attr: *mut u32) -> c_int {
    code("ibv_start_poll", || {
        let own = ours::<Cq>(cq)?.own();
        // SAFETY: null or the caller's struct, which is its mask alone.
        if !attr.is_null() && *unsafe { input(attr, "attr") }? != 0 {
            return Err(Fail::invalid("comp_mask is not 0"));
        }
        own.cursor.turn.begin();
        let found = advance(cq, own);
        if found.is_err() {
            // No `end_poll` follows a failure.
            own.cursor.turn.end();
        }
        idle::polled(found.is_ok());
        found
    })
}

unsafe extern "C" fn next_poll(cq: *mut IbvCqEx) -> c_int {
    code("ibv_next_poll", || advance(cq, ours::<Cq>(cq)?.own()))
}

unsafe extern "C" fn end_poll(cq: *mut IbvCqEx) {
    or("ibv_end_poll", (), || {
        let cursor = &ours::<Cq>(cq)?.own().cursor;
        *cursor.now.lock() = None;
        cursor.turn.end();
        Ok(())
    });
}

/// What the present completion says.
fn read<T: Default>(cq: *mut IbvCqEx, what: impl FnOnce(&Completion) -> T) -> T {
    let Ok(object) = ours::<Cq>(cq) else { return T::default() };
    object.own().cursor.now.lock().as_ref().map(what).unwrap_or_default()
}

unsafe extern "C" fn read_opcode(cq: *mut IbvCqEx) -> c_int {
    read(cq, |c| c.opcode as c_int)
}

unsafe extern "C" fn read_vendor_err(cq: *mut IbvCqEx) -> u32 {
    read(cq, wc::vendor_err)
}

unsafe extern "C" fn read_byte_len(cq: *mut IbvCqEx) -> u32 {
    read(cq, |c| c.byte_len)
}

unsafe extern "C" fn read_imm_data(cq: *mut IbvCqEx) -> u32 {
    read(cq, wc::imm)
}

unsafe extern "C" fn read_qp_num(cq: *mut IbvCqEx) -> u32 {
    read(cq, |c| c.qpn.value())
}

unsafe extern "C" fn read_src_qp(cq: *mut IbvCqEx) -> u32 {
    read(cq, |c| c.src_qp.value())
}

unsafe extern "C" fn read_wc_flags(cq: *mut IbvCqEx) -> u32 {
    read(cq, |c| c.flags.bits())
}

unsafe extern "C" fn read_slid(_cq: *mut IbvCqEx) -> u32 {
    0
}

unsafe extern "C" fn read_sl(cq: *mut IbvCqEx) -> u8 {
    let Ok(object) = ours::<Cq>(cq) else { return 0 };
    let sl = object.own().opening.wc_sl;
    read(cq, |c| if c.flags.contains(WcFlags::GRH) { sl } else { 0 })
}

unsafe extern "C" fn read_dlid_path_bits(_cq: *mut IbvCqEx) -> u8 {
    0
}

unsafe extern "C" fn read_completion_ts(cq: *mut IbvCqEx) -> u64 {
    let Ok(object) = ours::<Cq>(cq) else { return 0 };
    read(cq, |c| object.own().opening.epoch.monotonic(c))
}

unsafe extern "C" fn read_wallclock(cq: *mut IbvCqEx) -> u64 {
    let Ok(object) = ours::<Cq>(cq) else { return 0 };
    read(cq, |c| object.own().opening.epoch.wall(c))
}

unsafe extern "C" fn read_cvlan(_cq: *mut IbvCqEx) -> u16 {
    0
}

unsafe extern "C" fn read_flow_tag(_cq: *mut IbvCqEx) -> u32 {
    0
}

unsafe extern "C" fn read_tm_info(_cq: *mut IbvCqEx, info: *mut IbvWcTmInfo) {
    let none = IbvWcTmInfo { tag: 0, priv_: 0 };
    // SAFETY: the caller's room; where there is none, nothing is written.
    let _ = unsafe { crate::call::output(info, none, "tm_info") };
}
