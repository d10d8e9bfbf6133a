//! Asynchronous events, and resizing a CQ.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Something that another thread does, as those of C programs may.
struct Elsewhere<F>(F);

// SAFETY: its pointers are the library's, whose calls any thread may make.
unsafe impl<F> Send for Elsewhere<F> {}

impl<F: FnOnce() -> c_int> Elsewhere<F> {
    fn call(self) -> c_int {
        (self.0)()
    }
}

/// Destroys an object in a thread while an event of it is not acknowledged: that must wait for
/// `acknowledge`. `lives` is asked until it is being destroyed.
pub(crate) fn waits_for(
    destroy: impl FnOnce() -> c_int,
    mut lives: impl FnMut() -> bool,
    acknowledge: impl FnOnce(),
) {
    let acknowledged = AtomicBool::new(false);
    let destroy = Elsewhere(destroy);
    std::thread::scope(|scope| {
        let gone = scope.spawn(|| {
            let done = destroy.call();
            (done, acknowledged.load(Ordering::SeqCst))
        });
        while lives() {
            std::thread::yield_now();
        }
        // One that did not wait would be through by now, or soon.
        (0..1000).for_each(|_| std::thread::yield_now());
        acknowledged.store(true, Ordering::SeqCst);
        acknowledge();
        assert_eq!(gone.join().unwrap(), (0, true));
    });
}

#[test]
fn a_qp_and_a_cq_stay_until_their_events_are_acknowledged() {
    const CQ_ERR: c_int = 0;
    let rig = Rig::new();
    let srq = srq(&rig);
    let mut init = rig.init(RC);
    init.srq = srq;
    let qp = ibv_create_qp(rig.pd, &raw mut init);
    to_error(qp);
    let mut event = next_event(&rig);
    assert_eq!((event.event_type, event.element), (QP_LAST_WQE_REACHED, qp.addr()));
    let lives = || {
        let (mut attr, mut init) = (IbvQpAttr::zero(), IbvQpInitAttr::zero());
        ibv_query_qp(qp, &raw mut attr, 1, &raw mut init) == 0
    };
    waits_for(|| ibv_destroy_qp(qp), lives, || ibv_ack_async_event(&raw mut event));
    assert_eq!(ibv_destroy_srq(srq), 0);
    // Two flushed receives find room for one.
    let small = ibv_create_cq(rig.context, 1, ptr::null_mut(), ptr::null_mut(), 0);
    let mut init = rig.init(RC);
    init.recv_cq = small;
    let qp = ibv_create_qp(rig.pd, &raw mut init);
    to_init(qp);
    (0..2).for_each(|id| assert_eq!(post_recv(qp, id, &mut []), 0));
    to_error(qp);
    let mut event = next_event(&rig);
    assert_eq!((event.event_type, event.element), (CQ_ERR, small.addr()));
    assert_eq!(ibv_destroy_qp(qp), 0);
    let lives = || poll(small, &mut []) == 0;
    waits_for(|| ibv_destroy_cq(small), lives, || ibv_ack_async_event(&raw mut event));
    rig.close();
}

fn to_init(qp: *mut IbvQp) {
    let mut attr = IbvQpAttr { qp_state: 1, port_num: 1, ..IbvQpAttr::zero() };
    assert_eq!(ibv_modify_qp(qp, &raw mut attr, 0x39), 0);
}

/// From RESET or INIT.
fn to_error(qp: *mut IbvQp) {
    assert!(!qp.is_null(), "errno {}", errno());
    if read(qp).state == 0 {
        to_init(qp);
    }
    let mut attr = IbvQpAttr { qp_state: 6, ..IbvQpAttr::zero() };
    assert_eq!(ibv_modify_qp(qp, &raw mut attr, 1), 0);
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
    // Until it is being destroyed its limit can be set.
    let mut same = limit;
    let lives = || ibv_modify_srq(srq, &raw mut same, 0) == 0;
    waits_for(|| ibv_destroy_srq(srq), lives, || ibv_ack_async_event(&raw mut event));
    rig.close();
}

#[test]
fn events_come_to_the_context_of_their_object_and_go_with_it() {
    let (rig, other) = (Rig::new(), Rig::new());
    let srq = srq(&rig);
    let mut init = rig.init(RC);
    init.srq = srq;
    let qps = [(); 2].map(|()| ibv_create_qp(rig.pd, &raw mut init));
    qps.iter().for_each(|&qp| to_error(qp));
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
