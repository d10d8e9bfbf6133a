//! `rdma_getaddrinfo`, endpoints, devices, words.

use std::ffi::{CStr, CString, c_int};
use std::ptr;
use std::thread;

use ibverbs::layout::*;

use super::library::*;
use super::pair::*;

/// `RAI_PASSIVE`, `RAI_NUMERICHOST`.
const PASSIVE: c_int = 1;
const NUMERIC_HOST: c_int = 2;
const RC: c_int = 2;
const UD: c_int = 4;

fn look_up(node: &str, service: &str, flags: c_int, ps: c_int) -> Result<*mut RdmaAddrinfo, c_int> {
    let hints = RdmaAddrinfo { ai_flags: flags, ai_port_space: ps, ..RdmaAddrinfo::zero() };
    let (node, service) = (CString::new(node).unwrap(), CString::new(service).unwrap());
    let mut res = ptr::null_mut();
    let done = rdma_getaddrinfo(node.as_ptr(), service.as_ptr(), &raw const hints, &raw mut res);
    if done == 0 { Ok(res) } else { Err(done) }
}

#[test]
fn names_and_services_are_looked_up_for_either_side() {
    let res = look_up("127.0.0.9", "7174", NUMERIC_HOST, PS_UDP).unwrap();
    let found = read(res);
    assert_eq!((found.ai_port_space, found.ai_qp_type), (PS_UDP, UD));
    assert!(found.ai_src_addr.is_null() && found.ai_dst_len == 16);
    let to = read(found.ai_dst_addr.cast::<libc::sockaddr_in>());
    assert_eq!((to.sin_port, to.sin_addr.s_addr.to_ne_bytes()), (7174_u16.to_be(), [127, 0, 0, 9]));
    rdma_freeaddrinfo(res);
    let res = look_up("127.0.0.9", "7174", NUMERIC_HOST | PASSIVE, PS_TCP).unwrap();
    let found = read(res);
    assert_eq!((found.ai_port_space, found.ai_qp_type, found.ai_src_len), (PS_TCP, RC, 16));
    assert!(found.ai_dst_addr.is_null());
    rdma_freeaddrinfo(res);
    assert_eq!(look_up("no.number", "1", NUMERIC_HOST, PS_TCP), Err(libc::EAI_NONAME));
    let mut res = ptr::null_mut();
    assert_eq!(rdma_getaddrinfo(ptr::null(), ptr::null(), ptr::null(), &raw mut res), -1);
    assert_eq!(errno(), libc::EINVAL);
    rdma_freeaddrinfo(ptr::null_mut());
}

fn init() -> IbvQpInitAttr {
    let cap = IbvQpCap {
        max_send_wr: 2,
        max_recv_wr: 2,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 16,
    };
    IbvQpInitAttr { cap, sq_sig_all: 1, ..IbvQpInitAttr::zero() }
}

/// As `rdma_get_recv_comp` of rdma/rdma_verbs.h does without waiting: polls.
fn completion(cq: *mut IbvCq) -> IbvWc {
    let ops = read(read(cq).context).ops;
    let mut wc = IbvWc::zero();
    loop {
        // SAFETY: as the inline function does; there is room for one.
        match unsafe { ops.poll_cq.unwrap()(cq, 1, &raw mut wc) } {
            0 => thread::yield_now(),
            n => {
                assert_eq!((n, wc.status), (1, 0));
                return wc;
            }
        }
    }
}

/// What the functions of rdma/rdma_verbs.h post, from the fields of an identifier that they use.
fn post(id: Id, bytes: &mut [u8], mr: *mut IbvMr, receives: bool) {
    let length = u32::try_from(bytes.len()).unwrap();
    let lkey = read(mr).lkey;
    let mut sge = IbvSge { addr: bytes.as_mut_ptr().addr() as u64, length, lkey };
    let ops = read(read(read(id).qp).context).ops;
    let sg_list = &raw mut sge;
    let done = if receives {
        let mut wr = IbvRecvWr { wr_id: 1, next: ptr::null_mut(), sg_list, num_sge: 1 };
        let mut bad = ptr::null_mut();
        // SAFETY: as the inline function does.
        unsafe { ops.post_recv.unwrap()(read(id).qp, &raw mut wr, &raw mut bad) }
    } else {
        // IBV_WR_SEND is 2.
        let mut wr = IbvSendWr { wr_id: 2, sg_list, num_sge: 1, opcode: 2, ..IbvSendWr::zero() };
        let mut bad = ptr::null_mut();
        // SAFETY: as the inline function does.
        unsafe { ops.post_send.unwrap()(read(id).qp, &raw mut wr, &raw mut bad) }
    };
    assert_eq!(done, 0);
}

fn register(id: Id, bytes: &mut [u8]) -> *mut IbvMr {
    let mr = ibv_reg_mr(read(id).pd, bytes.as_mut_ptr().cast(), bytes.len(), 1);
    assert!(!mr.is_null(), "errno {}", errno());
    mr
}

#[test]
fn endpoints_without_channels_connect_send_and_end() {
    let own = own().to_string();
    let res = look_up(&own, "0", NUMERIC_HOST | PASSIVE, PS_TCP).unwrap();
    let (mut listener, mut attr) = (ptr::null_mut(), init());
    let none = ptr::null_mut();
    assert_eq!(rdma_create_ep(&raw mut listener, res, none, &raw mut attr), 0, "{}", errno());
    rdma_freeaddrinfo(res);
    assert_eq!(rdma_listen(listener, 1), 0, "errno {}", errno());
    let port = u16::from_be(rdma_get_src_port(listener)).to_string();
    let client = thread::spawn(move || {
        let res = look_up(&own, &port, NUMERIC_HOST, PS_TCP).unwrap();
        let (mut id, mut attr) = (ptr::null_mut(), init());
        let none = ptr::null_mut();
        assert_eq!(rdma_create_ep(&raw mut id, res, none, &raw mut attr), 0, "{}", errno());
        rdma_freeaddrinfo(res);
        let mut hello = *b"hello";
        let mr = register(id, &mut hello);
        assert_eq!(rdma_connect(id, ptr::null_mut()), 0, "errno {}", errno());
        assert_eq!(read(read(id).event).event, ESTABLISHED);
        post(id, &mut hello, mr, false);
        completion(read(id).send_cq);
        assert_eq!(rdma_disconnect(id), 0, "errno {}", errno());
        assert_eq!(ibv_dereg_mr(mr), 0);
        rdma_destroy_ep(id);
    });
    let mut id = ptr::null_mut();
    assert_eq!(rdma_get_request(listener, &raw mut id), 0, "errno {}", errno());
    assert!(!read(id).qp.is_null(), "made as the listener's template says");
    let mut room = [0_u8; 16];
    let mr = register(id, &mut room);
    post(id, &mut room, mr, true);
    assert_eq!(rdma_accept(id, ptr::null_mut()), 0, "errno {}", errno());
    assert_eq!(completion(read(id).recv_cq).byte_len, 5);
    assert_eq!(&room[..5], b"hello");
    // It agrees to the client's end, or both end it at once.
    assert_eq!(rdma_disconnect(id), 0, "errno {}", errno());
    client.join().unwrap();
    assert_eq!(ibv_dereg_mr(mr), 0);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
}

#[test]
fn the_device_is_the_one_that_identifiers_are_of() {
    let mut count = 0;
    let list = rdma_get_devices(&raw mut count);
    assert_eq!(count, 1);
    assert!(read(list.wrapping_add(1)).is_null());
    let rig = Rig::new(PS_TCP);
    assert_eq!(read(rig.listener).verbs, read(list));
    rig.close();
    rdma_free_devices(list);
}

#[test]
fn events_have_names() {
    // SAFETY: C strings of the library's.
    let name = |event| unsafe { CStr::from_ptr(rdma_event_str(event)) };
    assert_eq!(name(0), c"RDMA_CM_EVENT_ADDR_RESOLVED");
    assert_eq!(name(15), c"RDMA_CM_EVENT_TIMEWAIT_EXIT");
    assert_eq!((name(16), name(-1)), (c"UNKNOWN EVENT", c"UNKNOWN EVENT"));
}
