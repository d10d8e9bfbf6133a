//! The library, loaded; and its functions with the types of infiniband/verbs.h.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use ibverbs::layout::*;

/// Where cargo puts it: beside the test.
pub(crate) fn path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join("libibverbs.so")
}

/// A directory with it under the name that programs search for.
pub(crate) fn directory() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("verbs");
    std::fs::create_dir_all(&directory).unwrap();
    let link = directory.join("libibverbs.so.1");
    // Another test may have made it just now.
    let _ = std::os::unix::fs::symlink(path(), &link);
    assert_eq!(std::fs::read_link(&link).unwrap(), path());
    directory
}

fn symbol(name: &str, version: &str) -> *mut c_void {
    static HANDLE: OnceLock<usize> = OnceLock::new();
    let handle = *HANDLE.get_or_init(|| {
        let path = CString::new(path().to_str().unwrap()).unwrap();
        // SAFETY: a C string; the library's start-up code does nothing.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{path:?} is not to be loaded");
        handle.expose_provenance()
    });
    let (name, version) = (CString::new(name).unwrap(), CString::new(version).unwrap());
    let handle = std::ptr::with_exposed_provenance_mut(handle);
    // SAFETY: the handle is open, and stays so; both are C strings.
    let found = unsafe { libc::dlvsym(handle, name.as_ptr(), version.as_ptr()) };
    assert!(!found.is_null(), "{name:?} of {version:?} is missing");
    found
}

/// Defines callers of functions, with their names, versions and types.
macro_rules! functions {
    ($($version:literal $name:ident($($arg:ident: $of:ty),*) $(-> $to:ty)?;)*) => {$(
        pub(crate) fn $name($($arg: $of),*) $(-> $to)? {
            let found = symbol(stringify!($name), $version);
            type Function = unsafe extern "C" fn($($of),*) $(-> $to)?;
            // SAFETY: the function has this type in infiniband/verbs.h.
            let function = unsafe { std::mem::transmute::<*mut c_void, Function>(found) };
            // SAFETY: the tests hand over what the function may get, wrong values included.
            unsafe { function($($arg),*) }
        }
    )*};
}

functions! {
    "IBVERBS_1.1" ibv_get_device_list(count: *mut c_int) -> *mut *mut IbvDevice;
    "IBVERBS_1.1" ibv_free_device_list(list: *mut *mut IbvDevice);
    "IBVERBS_1.1" ibv_get_device_name(device: *mut IbvDevice) -> *const c_char;
    "IBVERBS_1.1" ibv_get_device_guid(device: *mut IbvDevice) -> u64;
    "IBVERBS_1.1" ibv_open_device(device: *mut IbvDevice) -> *mut IbvContext;
    "IBVERBS_1.1" ibv_close_device(context: *mut IbvContext) -> c_int;
    "IBVERBS_1.1" ibv_query_device(context: *mut IbvContext, attr: *mut IbvDeviceAttr) -> c_int;
    "IBVERBS_1.1" ibv_query_gid(c: *mut IbvContext, p: u8, i: c_int, gid: *mut RawGid) -> c_int;
    "IBVERBS_1.1" ibv_alloc_pd(context: *mut IbvContext) -> *mut IbvPd;
    "IBVERBS_1.1" ibv_dealloc_pd(pd: *mut IbvPd) -> c_int;
    "IBVERBS_1.1" ibv_reg_mr(pd: *mut IbvPd, at: *mut c_void, n: usize, a: c_int) -> *mut IbvMr;
    "IBVERBS_1.1" ibv_dereg_mr(mr: *mut IbvMr) -> c_int;
    "IBVERBS_1.0" ibv_create_comp_channel(context: *mut IbvContext) -> *mut IbvCompChannel;
    "IBVERBS_1.0" ibv_destroy_comp_channel(channel: *mut IbvCompChannel) -> c_int;
    "IBVERBS_1.1" ibv_create_cq(
        c: *mut IbvContext, n: c_int, of: *mut c_void, channel: *mut IbvCompChannel, v: c_int
    ) -> *mut IbvCq;
    "IBVERBS_1.1" ibv_destroy_cq(cq: *mut IbvCq) -> c_int;
    "IBVERBS_1.1" ibv_resize_cq(cq: *mut IbvCq, cqe: c_int) -> c_int;
    "IBVERBS_1.1" ibv_get_cq_event(
        channel: *mut IbvCompChannel, cq: *mut *mut IbvCq, of: *mut *mut c_void
    ) -> c_int;
    "IBVERBS_1.1" ibv_ack_cq_events(cq: *mut IbvCq, count: c_uint);
    "IBVERBS_1.1" ibv_get_async_event(c: *mut IbvContext, event: *mut IbvAsyncEvent) -> c_int;
    "IBVERBS_1.1" ibv_ack_async_event(event: *mut IbvAsyncEvent);
    "IBVERBS_1.1" ibv_rereg_mr(
        mr: *mut IbvMr, flags: c_int, pd: *mut IbvPd, at: *mut c_void, n: usize, a: c_int
    ) -> c_int;
    "IBVERBS_1.10" ibv_import_device(fd: c_int) -> *mut IbvContext;
    "IBVERBS_1.10" ibv_import_pd(context: *mut IbvContext, handle: u32) -> *mut IbvPd;
    "IBVERBS_1.10" ibv_unimport_pd(pd: *mut IbvPd);
    "IBVERBS_1.10" ibv_import_mr(pd: *mut IbvPd, handle: u32) -> *mut IbvMr;
    "IBVERBS_1.10" ibv_unimport_mr(mr: *mut IbvMr);
    "IBVERBS_1.13" ibv_import_dm(context: *mut IbvContext, handle: u32) -> *mut IbvDm;
    "IBVERBS_1.13" ibv_unimport_dm(dm: *mut IbvDm);
    "IBVERBS_1.1" ibv_create_qp(pd: *mut IbvPd, init: *mut IbvQpInitAttr) -> *mut IbvQp;
    "IBVERBS_1.1" ibv_destroy_qp(qp: *mut IbvQp) -> c_int;
    "IBVERBS_1.1" ibv_modify_qp(qp: *mut IbvQp, attr: *mut IbvQpAttr, mask: c_int) -> c_int;
    "IBVERBS_1.6" ibv_qp_to_qp_ex(qp: *mut IbvQp) -> *mut IbvQpEx;
    "IBVERBS_1.1" ibv_query_qp(
        qp: *mut IbvQp, attr: *mut IbvQpAttr, mask: c_int, init: *mut IbvQpInitAttr
    ) -> c_int;
    "IBVERBS_1.1" ibv_create_srq(pd: *mut IbvPd, init: *mut IbvSrqInitAttr) -> *mut IbvSrq;
    "IBVERBS_1.1" ibv_modify_srq(srq: *mut IbvSrq, attr: *mut IbvSrqAttr, mask: c_int) -> c_int;
    "IBVERBS_1.1" ibv_query_srq(srq: *mut IbvSrq, attr: *mut IbvSrqAttr) -> c_int;
    "IBVERBS_1.1" ibv_destroy_srq(srq: *mut IbvSrq) -> c_int;
    "IBVERBS_1.1" ibv_create_ah(pd: *mut IbvPd, attr: *mut IbvAhAttr) -> *mut IbvAh;
    "IBVERBS_1.1" ibv_destroy_ah(ah: *mut IbvAh) -> c_int;
}
