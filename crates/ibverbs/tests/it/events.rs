//! Asynchronous events, and resizing a CQ.

use std::ffi::c_int;
use std::ptr;

use ibverbs::layout::*;

use super::library::*;
use super::pair::*;

/// `enum ibv_event_type`.
const SRQ_LIMIT_REACHED: c_int = 15;
const QP_LAST_WQE_REACHED: c_int = 16;

fn srq(rig: &Rig) -> *mut IbvSrq {
    let attr = IbvSrqAttr { max_wr: 8, max_sge: 1, srq_limit: 0 };
    let mut init = IbvSrqInitAttr { srq_context: ptr::null_mut(), attr };
    let srq = ibv_create_srq(rig.pd, &raw mut init);
    assert!(!srq.is_null(), "errno {}", errno());
    srq
}

fn next_event(rig: &Rig) -> IbvAsyncEvent {
    let mut event = IbvAsyncEvent::zero();
    assert_eq!(ibv_get_async_event(rig.context, &raw mut event), 0, "errno {}", errno());
    event
}

#[test]
fn an_event_names_its_object_which_stays_until_it_is_acknowledged() {
    let rig = Rig::new();
    let srq = srq(&rig);
    // The queue is empty: below any limit.
    let mut limit = IbvSrqAttr { srq_limit: 3, ..IbvSrqAttr::zero() };
    assert_eq!(ibv_modify_srq(srq, &raw mut limit, 2), 0);
    let mut event = next_event(&rig);
    assert_eq!((event.event_type, event.element), (SRQ_LIMIT_REACHED, srq.addr()));
    let address = srq.expose_provenance();
    let gone =
        std::thread::spawn(move || ibv_destroy_srq(ptr::with_exposed_provenance_mut(address)));
    // Until it is being destroyed its limit can be set.
    while ibv_modify_srq(srq, &raw mut limit, 0) == 0 {
        std::thread::yield_now();
    }
    assert!(!gone.is_finished());
    ibv_ack_async_event(&raw mut event);
    assert_eq!(gone.join().unwrap(), 0);
    rig.close();
}

#[test]
fn events_come_to_the_context_of_their_object_and_go_with_it() {
    let (rig, other) = (Rig::new(), Rig::new());
    let srq = srq(&rig);
    let mut init = rig.init(RC);
    init.srq = srq;
    let qps = [(); 2].map(|()| ibv_create_qp(rig.pd, &raw mut init));
    let mut to_init = IbvQpAttr { qp_state: 1, port_num: 1, ..IbvQpAttr::zero() };
    let mut to_error = IbvQpAttr { qp_state: 6, ..IbvQpAttr::zero() };
    for qp in qps {
        assert!(!qp.is_null(), "errno {}", errno());
        assert_eq!(ibv_modify_qp(qp, &raw mut to_init, 0x39), 0);
        assert_eq!(ibv_modify_qp(qp, &raw mut to_error, 1), 0);
    }
    // The first one's event was not read: it is gone with its QP.
    assert_eq!(ibv_destroy_qp(qps[0]), 0);
    let mut event = next_event(&rig);
    assert_eq!((event.event_type, event.element), (QP_LAST_WQE_REACHED, qps[1].addr()));
    ibv_ack_async_event(&raw mut event);
    for context in [rig.context, other.context] {
        let fd = read(context).async_fd;
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) }, 0);
        assert_eq!(ibv_get_async_event(context, &raw mut event), -1);
        assert_eq!(errno(), libc::EAGAIN);
    }
    assert_eq!(ibv_destroy_qp(qps[1]), 0);
    assert_eq!(ibv_destroy_srq(srq), 0);
    rig.close();
    other.close();
}

#[test]
fn a_cq_is_resized_to_what_it_can_hold() {
    let rig = Rig::new();
    assert_eq!(ibv_resize_cq(rig.cq, 100), 0);
    assert_eq!(read(rig.cq).cqe, 100);
    assert_eq!(ibv_resize_cq(rig.cq, 0), libc::EINVAL);
    assert_eq!(ibv_resize_cq(rig.cq, c_int::MAX), libc::EINVAL);
    assert_eq!(read(rig.cq).cqe, 100);
    rig.close();
}
