//! Asynchronous events, and resizing a CQ.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ibverbs::layout::*;

use super::inline::*;
use super::library::*;
use super::pair::*;
use super::process::*;

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

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: c_int) {
    HANDLED.fetch_add(1, Ordering::SeqCst);
}

/// Waits for a CQ's event while another thread sends signals, until `enough`; gives what the wait
/// gave and errno.
fn wait_under_signals(rig: &Rig, enough: impl Fn() -> bool + Sync) -> (c_int, c_int) {
    // SAFETY: a plain question.
    let waiter = unsafe { libc::pthread_self() };
    let signals = |enough: &(dyn Fn() -> bool + Sync)| {
        while !enough() {
            // SAFETY: the thread is there: it waits for this one.
            assert_eq!(unsafe { libc::pthread_kill(waiter, libc::SIGUSR1) }, 0);
            std::thread::yield_now();
        }
    };
    let (mut cq, mut of) = (ptr::null_mut(), ptr::null_mut());
    std::thread::scope(|scope| {
        scope.spawn(|| signals(&enough));
        let got = ibv_get_cq_event(rig.channel, &raw mut cq, &raw mut of);
        let errno = errno();
        DONE.store(true, Ordering::SeqCst);
        (got, errno)
    })
}

static DONE: AtomicBool = AtomicBool::new(false);

/// As read(2), which programs know to be what waits here.
#[test]
fn a_signal_ends_a_wait_if_its_handler_says_so() {
    if role().as_deref() != Some("signals") {
        let test = "events::a_signal_ends_a_wait_if_its_handler_says_so";
        assert!(as_another_process(test, "signals").success());
        return;
    }
    let handle = |sa_flags| {
        // SAFETY: plain data: no signal masked.
        let mut action = unsafe { std::mem::zeroed::<libc::sigaction>() };
        (action.sa_sigaction, action.sa_flags) = ((count as *const ()).addr(), sa_flags);
        // SAFETY: the handler changes one atomic.
        let done = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) };
        assert_eq!(done, 0);
    };
    let rig = Rig::new();
    handle(0);
    let ended = wait_under_signals(&rig, || DONE.load(Ordering::SeqCst));
    assert_eq!(ended, (-1, libc::EINTR));
    // With SA_RESTART it goes on; what it waits for comes after a hundred signals.
    handle(libc::SA_RESTART);
    let [one, two] = rig.pair(RC);
    notify(rig.cq);
    let (sender, before) = (Shared(one), HANDLED.load(Ordering::SeqCst));
    let mut hello = [rig.sge(0, 5)];
    let (rkey, remote_addr) = rig.remote(64);
    let wr = WrTarget { rdma: WrRdma { remote_addr, rkey } };
    let mut write = IbvSendWr { wr, ..send_wr(1, 0, &mut hello) };
    let write = Shared(&raw mut write);
    let enough = || {
        let enough = HANDLED.load(Ordering::SeqCst) >= before + 100;
        if enough {
            let mut wrs = [read(write.get())];
            assert_eq!(post_send(sender.get(), &mut wrs), (0, None));
        }
        enough
    };
    assert_eq!(wait_under_signals(&rig, enough).0, 0);
    ibv_ack_cq_events(rig.cq, 1);
    destroy(&[one, two]);
    rig.close();
}

/// A pointer that other threads may use, as those of C programs do.
struct Shared<T>(*mut T);

impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

// SAFETY: what it points to is the library's, or outlives the threads.
unsafe impl<T> Sync for Shared<T> {}
