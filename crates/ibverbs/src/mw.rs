//! Memory windows.

use std::ffi::c_int;
use std::sync::Arc;

use urxe::{Access, MwType, SendFlags, SendOp, SendWr};

use crate::call::{Fail, code, input, pointer};
use crate::context::{Opening, owned};
use crate::handle::{by_handle, for_destroy, next};
use crate::layout::{IbvMw, IbvMwBind, IbvMwBindInfo, IbvPd, IbvQp};
use crate::object::{Held, Kind, Object, get, kind, ours};
use crate::pd::{self, Pd};
use crate::{mr, qp};

/// A memory window.
#[derive(Debug)]
pub(crate) struct Mw {
    mw: urxe::Mw,
    handle: u32,
    opening: Arc<Opening>,
    _pd: Held<Pd>,
}

kind!(Mw, "MW", IbvMw);

owned!(Mw, handle);

pub(crate) extern "C" fn alloc_mw(pd: *mut IbvPd, kind: c_int) -> *mut IbvMw {
    pointer("ibv_alloc_mw", || {
        let (holder, context) = pd::of(pd)?;
        let of = match kind {
            1 => MwType::Type1,
            2 => MwType::Type2B,
            _ => return Err(Fail::invalid(format!("type {kind}; wanted 1 or 2"))),
        };
        let mw = holder.own().pd.alloc_mw(of)?;
        let (rkey, handle) = (mw.rkey(), next());
        let public = IbvMw { context, pd, rkey, handle, kind };
        let opening = Arc::clone(&holder.own().opening);
        let own = Mw { mw, handle, opening, _pd: holder.hold() };
        Ok(Mw::pool().make(|_| Ok((public, own)))?.public())
    })
}

pub(crate) extern "C" fn dealloc_mw(mw: *mut IbvMw) -> c_int {
    code("ibv_dealloc_mw", || Mw::pool().destroy(for_destroy(get::<Mw>(mw)?)?))
}

const OF_WINDOWS: Access = Access::REMOTE.union(Access::ZERO_BASED);

/// The bind that C describes.
pub(crate) fn bind(
    mw: *mut IbvMw,
    rkey: u32,
    info: &IbvMwBindInfo,
) -> Result<(SendOp, &'static Object<Mw>), Fail> {
    let object = by_handle(ours::<Mw>(mw)?)?;
    let lkey = if info.length == 0 && info.mr.is_null() {
        0
    } else {
        mr::of(info.mr)?.own().region.lock().info().lkey
    };
    // A window has no local rights; programs hand over those of the region.
    let access = mr::access(info.mw_access_flags)?.intersection(OF_WINDOWS);
    let (addr, length) = (info.addr, info.length);
    let rkey = Some(rkey);
    Ok((SendOp::BindMw { mw: object.own().mw.id(), rkey, lkey, addr, length, access }, object))
}

/// Binds a window of type 1: by a request that the library makes.
///
/// # Safety
/// `bind_of` is null or points to the struct.
pub(crate) unsafe extern "C" fn bind_mw(
    qp: *mut IbvQp,
    mw: *mut IbvMw,
    bind_of: *mut IbvMwBind,
) -> c_int {
    code("ibv_bind_mw", || {
        let queue = get::<qp::Qp>(qp.cast())?;
        // SAFETY: the caller's.
        let how = unsafe { input(bind_of, "mw_bind") }?;
        // SAFETY: a live object's, or refused by `bind`.
        let old = unsafe { (*get::<Mw>(mw)?.public()).rkey };
        let rkey = (old & !0xff) | (old.wrapping_add(1) & 0xff);
        let (op, object) = bind(mw, rkey, &how.bind_info)?;
        let flags = SendFlags::from_bits_truncate(how.send_flags);
        queue.own().qp.post(&SendWr { flags, ..SendWr::new(how.wr_id, op, &[]) })?;
        // SAFETY: a live object's, which the program leaves alone during the call.
        unsafe { (*object.public()).rkey = rkey };
        Ok(())
    })
}
