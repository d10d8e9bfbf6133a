//! The `rdma_*` calls. Pointers are handed on as they are: who answers looks at them.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::provider::{fail, find};

/// A pointer of the program's.
type P = *mut c_void;

macro_rules! calls {
    ($($name:ident($($arg:ident: $of:ty),*) $(-> $to:ty)?;)*) => {$(
        /// # Safety
        /// As the manual page of the call has it.
        pub(crate) unsafe extern "C" fn $name($($arg: $of),*) $(-> $to)? {
            type Function = unsafe extern "C" fn($($of),*) $(-> $to)?;
            const NAME: &CStr = match CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes()
            ) {
                Ok(name) => name,
                Err(_) => panic!("a name has no zeros"),
            };
            let Some(found) = find(NAME) else { return fail(libc::ENODEV) };
            // SAFETY: what is given under this name has this type; see `provider::Find`.
            let function = unsafe { std::mem::transmute::<P, Function>(found.as_ptr()) };
            // SAFETY: the caller's.
            unsafe { function($($arg),*) }
        }
    )*};
}

calls! {
    rdma_accept(id: P, param: P) -> c_int;
    rdma_ack_cm_event(event: P) -> c_int;
    rdma_bind_addr(id: P, addr: P) -> c_int;
    rdma_connect(id: P, param: P) -> c_int;
    rdma_create_ep(id: P, res: P, pd: P, attr: P) -> c_int;
    rdma_create_event_channel() -> P;
    rdma_create_id(channel: P, id: P, context: P, ps: c_int) -> c_int;
    rdma_create_qp(id: P, pd: P, attr: P) -> c_int;
    rdma_create_qp_ex(id: P, attr: P) -> c_int;
    rdma_create_srq(id: P, pd: P, attr: P) -> c_int;
    rdma_create_srq_ex(id: P, attr: P) -> c_int;
    rdma_destroy_ep(id: P);
    rdma_destroy_event_channel(channel: P);
    rdma_destroy_id(id: P) -> c_int;
    rdma_destroy_qp(id: P);
    rdma_destroy_srq(id: P);
    rdma_disconnect(id: P) -> c_int;
    rdma_establish(id: P) -> c_int;
    rdma_event_str(event: c_int) -> *const c_char;
    rdma_free_devices(list: P);
    rdma_freeaddrinfo(res: P);
    rdma_get_cm_event(channel: P, event: P) -> c_int;
    rdma_get_devices(count: P) -> P;
    rdma_get_dst_port(id: P) -> u16;
    rdma_get_remote_ece(id: P, ece: P) -> c_int;
    rdma_get_request(listen: P, id: P) -> c_int;
    rdma_get_src_port(id: P) -> u16;
    rdma_getaddrinfo(node: P, service: P, hints: P, res: P) -> c_int;
    rdma_init_qp_attr(id: P, attr: P, mask: P) -> c_int;
    rdma_join_multicast(id: P, addr: P, context: P) -> c_int;
    rdma_join_multicast_ex(id: P, attr: P, context: P) -> c_int;
    rdma_leave_multicast(id: P, addr: P) -> c_int;
    rdma_listen(id: P, backlog: c_int) -> c_int;
    rdma_migrate_id(id: P, channel: P) -> c_int;
    rdma_notify(id: P, event: c_int) -> c_int;
    rdma_reject(id: P, data: P, len: u8) -> c_int;
    rdma_reject_ece(id: P, data: P, len: u8) -> c_int;
    rdma_resolve_addr(id: P, src: P, dst: P, timeout_ms: c_int) -> c_int;
    rdma_resolve_route(id: P, timeout_ms: c_int) -> c_int;
    rdma_set_local_ece(id: P, ece: P) -> c_int;
    rdma_set_option(id: P, level: c_int, name: c_int, value: P, len: usize) -> c_int;
}
