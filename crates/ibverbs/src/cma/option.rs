//! Options of identifiers.

use std::ffi::{c_int, c_void};

use crate::call::{Fail, number};
use crate::layout::{IbvPathData, RdmaCmId};
use crate::object::Object;

use super::id::{self, Id};
use super::resolve;
use super::state::Step;

/// `RDMA_OPTION_ID`, `RDMA_OPTION_IB`.
const OF_ID: c_int = 0;
const OF_IB: c_int = 1;
/// Those of an identifier: TOS, REUSEADDR, AFONLY, ACK_TIMEOUT.
const TOS: c_int = 0;
const REUSE: c_int = 1;
const ONLY_FAMILY: c_int = 2;
const ACK_TIMEOUT: c_int = 3;
/// That of InfiniBand.
const PATH: c_int = 1;

/// The route is what the program says.
pub(super) fn route_given(
    object: &'static Object<Id>,
    list: *const c_void,
    len: usize,
) -> Result<(), Fail> {
    paths(list, len)?;
    resolve::route(object)
}

/// A value of the program's.
///
/// # Safety
/// `value` is null or has `len` bytes.
unsafe fn value<T: Copy>(value: *const c_void, len: usize) -> Result<T, Fail> {
    if value.is_null() || len != size_of::<T>() {
        let wanted = size_of::<T>();
        return Err(Fail::invalid(format!("optval is {value:p}, optlen {len}; wanted {wanted}")));
    }
    // SAFETY: as long as a `T`; C need not have aligned it.
    Ok(unsafe { value.cast::<T>().read_unaligned() })
}

/// A list of paths. What it says of LIDs and rates is InfiniBand's; RoCE has its addresses already.
fn paths(list: *const c_void, len: usize) -> Result<(), Fail> {
    if list.is_null() || len == 0 || !len.is_multiple_of(size_of::<IbvPathData>()) {
        return Err(Fail::invalid(format!("optlen {len} is no list of paths")));
    }
    Ok(())
}

/// # Safety
/// `optval` is null or has `optlen` bytes.
pub(super) unsafe extern "C" fn set_option(
    id: *mut RdmaCmId,
    level: c_int,
    name: c_int,
    optval: *mut c_void,
    optlen: usize,
) -> c_int {
    number("rdma_set_option", || {
        let object = id::of(id)?;
        let state = &mut *object.own().state.lock();
        match (level, name) {
            (OF_ID, TOS) => {
                // SAFETY: the caller's.
                state.options.tos = Some(unsafe { value::<u8>(optval, optlen) }?);
            }
            (OF_ID, REUSE) => {
                state.at(&[Step::Idle])?;
                // SAFETY: the caller's.
                state.options.reuse = unsafe { value::<c_int>(optval, optlen) }? != 0;
            }
            (OF_ID, ONLY_FAMILY) => {
                state.at(&[Step::Idle])?;
                // SAFETY: the caller's.
                state.options.only_family = unsafe { value::<c_int>(optval, optlen) }? != 0;
            }
            (OF_ID, ACK_TIMEOUT) => {
                // SAFETY: the caller's.
                let timeout = unsafe { value::<u8>(optval, optlen) }?;
                if timeout > 31 {
                    return Err(Fail::invalid(format!("ACK timeout {timeout}; there are 0 to 31")));
                }
                state.options.ack_timeout = Some(timeout);
            }
            (OF_IB, PATH) => {
                paths(optval, optlen)?;
                resolve::routed(object, state)?;
            }
            _ => {
                let why = format!("level {level} has no option {name}");
                return Err(Fail::new(libc::ENOSYS, why));
            }
        }
        Ok(0)
    })
}
