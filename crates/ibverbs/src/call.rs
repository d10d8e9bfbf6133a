//! The boundary: what C hands over is looked at, failures become errno, and no panic passes.

use std::any::Any;
use std::borrow::Cow;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::errno;
use crate::report;

/// Why a call fails: the number for C, the words for `URXE_LOG`.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Fail {
    pub(crate) errno: c_int,
    why: Cow<'static, str>,
    /// Nothing is wrong: there is nothing yet.
    quiet: bool,
}

impl Fail {
    pub(crate) fn new(errno: c_int, why: impl Into<Cow<'static, str>>) -> Self {
        Self { errno, why: why.into(), quiet: false }
    }

    /// What was asked for is not there yet: no failure that anybody should be told of.
    pub(crate) const fn not_yet(errno: c_int, why: &'static str) -> Self {
        Self { errno, why: Cow::Borrowed(why), quiet: true }
    }

    pub(crate) fn invalid(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(libc::EINVAL, why)
    }

    pub(crate) fn unsupported(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(libc::EOPNOTSUPP, why)
    }

    /// What the host said last.
    pub(crate) fn host(call: &str) -> Self {
        let error = std::io::Error::last_os_error();
        Self::new(error.raw_os_error().unwrap_or(libc::EIO), format!("{call}: {error}"))
    }
}

impl<E: Into<urxe::Error>> From<E> for Fail {
    fn from(error: E) -> Self {
        let error = error.into();
        Self::new(errno::of(&error), error.to_string())
    }
}

/// Runs a call and tells of its failure.
fn run<T>(call: &'static str, f: impl FnOnce() -> Result<T, Fail>) -> Result<T, c_int> {
    let fail = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(fail)) => fail,
        Err(panic) => Fail::new(libc::EIO, format!("a defect of urxe: {}", words(&*panic))),
    };
    tell(call, &fail);
    set_errno(fail.errno);
    Err(fail.errno)
}

/// Not inlined: the way of success stays short.
#[cold]
fn tell(call: &'static str, fail: &Fail) {
    if !fail.quiet {
        report::refused(call, fail.errno, &fail.why);
        tracing::debug!(call, errno = fail.errno, why = %fail.why, "refused");
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

/// Sets the calling thread's errno.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: it is always the address of this thread's errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above; nothing else uses it meanwhile, since it is this thread's.
    unsafe { *place = errno };
}

/// A call that answers 0 or an errno.
pub(crate) fn code(call: &'static str, f: impl FnOnce() -> Result<(), Fail>) -> c_int {
    run(call, f).err().unwrap_or(0)
}

/// A call that answers a number, or −1 and errno.
pub(crate) fn number<N: From<i8>>(call: &'static str, f: impl FnOnce() -> Result<N, Fail>) -> N {
    run(call, f).unwrap_or_else(|_| N::from(-1))
}

/// A call that answers a pointer, or null and errno.
pub(crate) fn pointer<T>(call: &'static str, f: impl FnOnce() -> Result<*mut T, Fail>) -> *mut T {
    run(call, f).unwrap_or(ptr::null_mut())
}

/// A call that answers something else.
pub(crate) fn or<T>(call: &'static str, failed: T, f: impl FnOnce() -> Result<T, Fail>) -> T {
    run(call, f).unwrap_or(failed)
}

/// A struct that C hands over.
///
/// # Safety
/// If `from` is not null, it points to a `T` that stays as it is while the answer lives.
pub(crate) unsafe fn input<'a, T>(from: *const T, what: &'static str) -> Result<&'a T, Fail> {
    if from.is_null() || !from.is_aligned() {
        return Err(Fail::invalid(format!("{what} is {from:p}, no place for one")));
    }
    // SAFETY: not null and aligned; the caller vouches for the rest.
    Ok(unsafe { &*from })
}

/// Puts an answer where C wants it.
///
/// # Safety
/// If `to` is not null, it points to room for a `T`.
pub(crate) unsafe fn output<T>(to: *mut T, value: T, what: &'static str) -> Result<(), Fail> {
    if to.is_null() || !to.is_aligned() {
        return Err(Fail::invalid(format!("{what} is {to:p}, no place for one")));
    }
    // SAFETY: not null and aligned; the caller vouches for the rest.
    unsafe { to.write(value) };
    Ok(())
}

/// A call that answers a count, or −errno.
pub(crate) fn count(call: &'static str, f: impl FnOnce() -> Result<isize, Fail>) -> isize {
    run(call, f).unwrap_or_else(|errno| -(errno as isize))
}
