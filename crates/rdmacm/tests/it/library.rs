//! The libraries, loaded; and their functions with the types of rdma/rdma_cma.h.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use ibverbs::layout::*;

/// Where cargo puts them: beside the test.
pub(crate) fn path(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join(name)
}

/// A directory with both under the names that programs search for.
pub(crate) fn directory() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("verbs-cm");
    std::fs::create_dir_all(&directory).unwrap();
    for name in ["libibverbs.so", "librdmacm.so"] {
        let link = directory.join(format!("{name}.1"));
        // Another test may have made it just now.
        let _ = std::os::unix::fs::symlink(path(name), &link);
        assert_eq!(std::fs::read_link(&link).unwrap(), path(name));
    }
    directory
}

fn load(name: &str) -> usize {
    let path = CString::new(path(name).to_str().unwrap()).unwrap();
    // SAFETY: a C string; the library's start-up code does nothing.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null(), "{path:?} is not to be loaded");
    handle.expose_provenance()
}

fn symbol(name: &str, version: &str) -> *mut c_void {
    static HANDLES: OnceLock<[usize; 2]> = OnceLock::new();
    // The one that the other needs comes first: it is found by its name then.
    let handles = HANDLES.get_or_init(|| [load("libibverbs.so"), load("librdmacm.so")]);
    let handle = handles[usize::from(version.starts_with("RDMACM"))];
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
            // SAFETY: the function has this type in rdma/rdma_cma.h or infiniband/verbs.h.
            let function = unsafe { std::mem::transmute::<*mut c_void, Function>(found) };
            // SAFETY: the tests hand over what the function may get, wrong values included.
            unsafe { function($($arg),*) }
        }
    )*};
}

type Id = *mut RdmaCmId;
type Channel = *mut RdmaEventChannel;

functions! {
    "IBVERBS_1.1" ibv_reg_mr(pd: *mut IbvPd, at: *mut c_void, n: usize, a: c_int) -> *mut IbvMr;
    "IBVERBS_1.1" ibv_dereg_mr(mr: *mut IbvMr) -> c_int;
    "RDMACM_1.0" rdma_create_event_channel() -> Channel;
    "RDMACM_1.0" rdma_destroy_event_channel(channel: Channel);
    "RDMACM_1.0" rdma_create_id(
        channel: Channel, id: *mut Id, context: *mut c_void, ps: c_int
    ) -> c_int;
    "RDMACM_1.0" rdma_destroy_id(id: Id) -> c_int;
    "RDMACM_1.0" rdma_migrate_id(id: Id, channel: Channel) -> c_int;
    "RDMACM_1.0" rdma_bind_addr(id: Id, addr: *mut libc::sockaddr) -> c_int;
    "RDMACM_1.0" rdma_resolve_addr(
        id: Id, src: *mut libc::sockaddr, dst: *mut libc::sockaddr, ms: c_int
    ) -> c_int;
    "RDMACM_1.0" rdma_resolve_route(id: Id, ms: c_int) -> c_int;
    "RDMACM_1.0" rdma_listen(id: Id, backlog: c_int) -> c_int;
    "RDMACM_1.0" rdma_connect(id: Id, param: *mut RdmaConnParam) -> c_int;
    "RDMACM_1.0" rdma_accept(id: Id, param: *mut RdmaConnParam) -> c_int;
    "RDMACM_1.0" rdma_reject(id: Id, data: *const c_void, len: u8) -> c_int;
    "RDMACM_1.0" rdma_disconnect(id: Id) -> c_int;
    "RDMACM_1.2" rdma_establish(id: Id) -> c_int;
    "RDMACM_1.0" rdma_notify(id: Id, event: c_int) -> c_int;
    "RDMACM_1.0" rdma_get_cm_event(channel: Channel, event: *mut *mut RdmaCmEvent) -> c_int;
    "RDMACM_1.0" rdma_ack_cm_event(event: *mut RdmaCmEvent) -> c_int;
    "RDMACM_1.0" rdma_create_qp(id: Id, pd: *mut IbvPd, init: *mut IbvQpInitAttr) -> c_int;
    "RDMACM_1.0" rdma_destroy_qp(id: Id);
    "RDMACM_1.2" rdma_init_qp_attr(id: Id, attr: *mut IbvQpAttr, mask: *mut c_int) -> c_int;
    "RDMACM_1.0" rdma_create_ep(
        id: *mut Id, res: *mut RdmaAddrinfo, pd: *mut IbvPd, init: *mut IbvQpInitAttr
    ) -> c_int;
    "RDMACM_1.0" rdma_destroy_ep(id: Id);
    "RDMACM_1.0" rdma_get_request(listen: Id, id: *mut Id) -> c_int;
    "RDMACM_1.0" rdma_getaddrinfo(
        node: *const c_char, service: *const c_char, hints: *const RdmaAddrinfo,
        res: *mut *mut RdmaAddrinfo
    ) -> c_int;
    "RDMACM_1.0" rdma_freeaddrinfo(res: *mut RdmaAddrinfo);
    "RDMACM_1.0" rdma_get_src_port(id: Id) -> u16;
    "RDMACM_1.0" rdma_get_dst_port(id: Id) -> u16;
    "RDMACM_1.0" rdma_get_devices(count: *mut c_int) -> *mut *mut IbvContext;
    "RDMACM_1.0" rdma_free_devices(list: *mut *mut IbvContext);
    "RDMACM_1.0" rdma_event_str(event: c_int) -> *const c_char;
    "RDMACM_1.0" rdma_set_option(
        id: Id, level: c_int, name: c_int, value: *mut c_void, len: usize
    ) -> c_int;
    "RDMACM_1.0" rdma_join_multicast(
        id: Id, addr: *mut libc::sockaddr, context: *mut c_void
    ) -> c_int;
    "RDMACM_1.0" rdma_leave_multicast(id: Id, addr: *mut libc::sockaddr) -> c_int;
    "RDMACM_1.3" rdma_set_local_ece(id: Id, ece: *mut IbvEce) -> c_int;
    "RDMACM_1.3" rdma_get_remote_ece(id: Id, ece: *mut IbvEce) -> c_int;
    "RDMACM_1.0" rsocket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    "RDMACM_1.0" rsend(socket: c_int, data: *const c_void, len: usize, flags: c_int) -> isize;
}
