//! The `handle` fields: numbers by which the kernel would look an object up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::call::Fail;
use crate::context::{Opening, Owned};
use crate::object::{Kind, Object};

/// An object with a handle.
pub(crate) trait Handled: Kind {
    /// Its handle.
    fn handle(&self) -> u32;
    /// What stands in the program's part of a live object: that, unless the program changed it.
    fn shown(public: *mut Self::Public) -> u32;
}

/// A handle that no object has.
pub(crate) fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What `f` makes of the object with this handle that is of an open device.
pub(crate) fn by_number<K: Owned + Handled, R>(
    opening: &Arc<Opening>,
    wanted: u32,
    f: impl Fn(&'static Object<K>) -> R,
) -> Result<R, Fail> {
    opening.check_ours()?;
    let found = K::pool().first(|object| {
        let own = object.own();
        let is = own.handle() == wanted && Arc::ptr_eq(own.opening(), opening);
        is.then(|| f(object))
    });
    let name = K::NAME;
    found.ok_or_else(|| {
        Fail::new(libc::ENOENT, format!("the context has no {name} of handle {wanted}"))
    })
}

fn check<K: Handled>(object: &'static Object<K>, errno: i32) -> Result<&'static Object<K>, Fail> {
    let (shown, handle) = (K::shown(object.public()), object.own().handle());
    if shown == handle {
        return Ok(object);
    }
    let name = K::NAME;
    Err(Fail::new(errno, format!("the handle of the {name} is {shown:#x}, it was {handle:#x}")))
}

/// The object, if its handle is as it was: the kernel finds no other.
pub(crate) fn by_handle<K: Handled>(
    object: &'static Object<K>,
) -> Result<&'static Object<K>, Fail> {
    check(object, libc::EINVAL)
}

/// The same, for calls that destroy; there the kernel says ENOENT.
pub(crate) fn for_destroy<K: Handled>(
    object: &'static Object<K>,
) -> Result<&'static Object<K>, Fail> {
    check(object, libc::ENOENT)
}
