//! The functions of the process's `libibverbs.so.1`, if that is urxe's.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

/// What the private symbol of urxe's libibverbs.so.1 is: a function's address by its name, or null.
/// The symbol's name counts up when a function's type changes.
type Find = unsafe extern "C" fn(*const c_char) -> *const c_void;

const LIBRARY: &CStr = c"libibverbs.so.1";
const SYMBOL: &CStr = c"urxe_private_v1";
const NODE: &CStr = c"URXE_PRIVATE";

/// The function of this name.
pub(crate) fn find(name: &'static CStr) -> Option<NonNull<c_void>> {
    static FOUND: OnceLock<Option<Find>> = OnceLock::new();
    let provider = (*FOUND.get_or_init(provider))?;
    // SAFETY: the function takes a C string.
    let found = unsafe { provider(name.as_ptr()) };
    if found.is_null() {
        complain(&format!(
            "has no {}; it is older than this librdmacm.so.1",
            name.to_string_lossy()
        ));
    }
    NonNull::new(found.cast_mut())
}

fn provider() -> Option<Find> {
    // Ours needs it, so it is loaded, this one or another of the name.
    // SAFETY: a C string; nothing is loaded that is not yet.
    let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    if library.is_null() {
        complain("is not loaded");
        return None;
    }
    // SAFETY: an open handle and C strings.
    let found = unsafe { libc::dlvsym(library, SYMBOL.as_ptr(), NODE.as_ptr()) };
    if found.is_null() {
        complain("is not urxe's, or of another version of urxe");
        return None;
    }
    // SAFETY: the symbol of this name and version has this type.
    Some(unsafe { std::mem::transmute::<*mut c_void, Find>(found) })
}

fn complain(what: &str) {
    eprintln!(
        "urxe: librdmacm.so.1 works with the libibverbs.so.1 that was built with it, and {} \
         {what}; name the directory of both in LD_LIBRARY_PATH, or use `urxe run`",
        loaded().as_deref().unwrap_or("libibverbs.so.1")
    );
}

/// The file of the libibverbs.so.1 that the process has.
fn loaded() -> Option<String> {
    // SAFETY: a C string; nothing is loaded that is not yet.
    let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return None;
    }
    // A function that every one has.
    // SAFETY: an open handle and a C string.
    let inside = unsafe { libc::dlsym(library, c"ibv_get_device_list".as_ptr()) };
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for; the struct is ours.
    if inside.is_null() || unsafe { libc::dladdr(inside, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: all zeros is a value of it, and the call has filled it.
    let info = unsafe { info.assume_init() };
    // SAFETY: a C string that lives as long as the library.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(name.to_string_lossy().into_owned())
}

/// What a call answers when there is nobody to answer it; errno says why.
pub(crate) trait Failed {
    fn failed() -> Self;
}

impl Failed for c_int {
    fn failed() -> Self {
        -1
    }
}

impl Failed for u16 {
    fn failed() -> Self {
        0
    }
}

impl Failed for () {
    fn failed() -> Self {}
}

impl<T> Failed for *mut T {
    fn failed() -> Self {
        ptr::null_mut()
    }
}

impl Failed for *const c_char {
    fn failed() -> Self {
        c"unknown event".as_ptr()
    }
}

/// Fails a call.
pub(crate) fn fail<T: Failed>(errno: c_int) -> T {
    // SAFETY: it is always the address of this thread's errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above; nothing else uses it meanwhile, since it is this thread's.
    unsafe { *place = errno };
    T::failed()
}
