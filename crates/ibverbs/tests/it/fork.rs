//! Children of a process with an open device: what is the parent's is refused, and nothing hangs.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use ibverbs::layout::*;

use super::inline::*;
use super::library::*;
use super::pair::*;
use super::process::*;

const SEND: i32 = 2;
/// `IBV_QP_EX_WITH_SEND`.
const SEND_OPERATION: u64 = 1 << 2;

/// Sends one message between two QPs of a context and waits for it.
fn exchange(rig: &Rig) {
    let [one, two] = rig.pair(RC);
    assert_eq!(post_recv(two, 7, &mut [rig.sge(64, 64)]), 0);
    let mut hello = [rig.sge(0, 8)];
    assert_eq!(post_send(one, &mut [send_wr(1, SEND, &mut hello)]), (0, None));
    assert!(rig.wait(2).iter().all(|wc| wc.status == 0));
    assert_eq!(ibv_destroy_qp(one), 0);
    assert_eq!(ibv_destroy_qp(two), 0);
}

#[test]
fn a_child_is_refused_its_parents_device_and_opens_its_own() {
    if role().as_deref() != Some("fork") {
        let test = "fork::a_child_is_refused_its_parents_device_and_opens_its_own";
        assert!(as_another_process(test, "fork").success());
        return;
    }
    let rig = Rig::new();
    exchange(&rig);
    let qp = rig.qp(UD);
    let seen = in_child(|| {
        assert!(ibv_alloc_pd(rig.context).is_null());
        assert_eq!(errno(), libc::EIO);
        let mut hello = [rig.sge(0, 8)];
        assert_eq!(post_recv(qp, 1, &mut hello), libc::EIO);
        assert_eq!(poll(rig.cq, &mut [IbvWc::zero()]), -1);
        let own = Rig::new();
        assert_ne!(own.gid(), rig.gid());
        exchange(&own);
        own.close();
        // The parent's objects can be destroyed here; the parent keeps its own.
        assert_eq!(ibv_destroy_qp(qp), 0);
        rig.close();
    });
    assert_eq!(seen, 0, "what the child saw");
    exchange(&rig);
    assert_eq!(ibv_destroy_qp(qp), 0);
    rig.close();
}

/// Asks for a completion event and has one completion come.
fn armed(rig: &Rig) {
    notify(rig.cq);
    exchange(rig);
}

#[test]
fn a_child_that_waits_for_its_parents_events_is_refused() {
    if role().as_deref() != Some("waits") {
        let test = "fork::a_child_that_waits_for_its_parents_events_is_refused";
        assert!(as_another_process(test, "waits").success());
        return;
    }
    let rig = Rig::new();
    armed(&rig);
    let (mut cq, mut of) = (ptr::null_mut(), ptr::null_mut());
    assert_eq!(ibv_get_cq_event(rig.channel, &raw mut cq, &raw mut of), 0);
    let seen = in_child(|| {
        let mut event = IbvAsyncEvent::zero();
        assert_eq!(ibv_get_async_event(rig.context, &raw mut event), -1);
        assert_eq!(errno(), libc::EIO);
        let (mut cq, mut of) = (ptr::null_mut(), ptr::null_mut());
        assert_eq!(ibv_get_cq_event(rig.channel, &raw mut cq, &raw mut of), -1);
        assert_eq!(errno(), libc::EIO);
        // The parent has got an event and has not acknowledged it: that is the parent's business.
        assert_eq!(ibv_destroy_cq(rig.cq), 0);
    });
    assert_eq!(seen, 0, "what the child saw");
    // One more waits in the parent, which makes the descriptor readable in both.
    armed(&rig);
    let seen = in_child(|| {
        let (mut cq, mut of) = (ptr::null_mut(), ptr::null_mut());
        assert_eq!(ibv_get_cq_event(rig.channel, &raw mut cq, &raw mut of), -1);
        assert_eq!(errno(), libc::EIO);
        ibv_ack_cq_events(rig.cq, 1);
    });
    assert_eq!(seen, 0, "what the second child saw");
    assert_eq!(ibv_get_cq_event(rig.channel, &raw mut cq, &raw mut of), 0);
    ibv_ack_cq_events(rig.cq, 2);
    rig.close();
}

#[test]
fn what_the_parent_has_begun_holds_up_no_child() {
    if role().as_deref() != Some("begun") {
        let test = "fork::what_the_parent_has_begun_holds_up_no_child";
        assert!(as_another_process(test, "begun").success());
        return;
    }
    let rig = Rig::new();
    let cq = rig.cq_ex();
    let mut init = rig.init_ex(RC, SEND_OPERATION);
    (init.send_cq, init.recv_cq) = (cq.0.cast(), cq.0.cast());
    let [one, two] = rig.pair_ex(init);
    assert_eq!(post_recv(two, 7, &mut [rig.sge(64, 64)]), 0);
    let builds = QpEx::of(one).number(1);
    builds.start();
    builds.wr_send();
    assert_eq!(builds.complete(), 0);
    while cq.start(none()) != 0 {}
    builds.start();
    let seen = in_child(|| {
        assert_eq!(cq.start(none()), libc::EIO);
        assert_eq!(cq.next(), libc::EIO);
        assert_eq!(cq.qp_num(), 0);
        cq.end();
        builds.start();
        builds.wr_send();
        assert_eq!(builds.complete(), libc::EIO);
        builds.abort();
    });
    assert_eq!(seen, 0, "what the child saw");
    builds.abort();
    cq.end();
    destroy(&[one, two]);
    assert_eq!(ibv_destroy_cq(cq.0.cast()), 0);
    rig.close();
}

/// Does what takes the library's locks, until told to stop.
fn take_locks(rig: &Rig, stop: &AtomicBool) {
    let mut event = IbvAsyncEvent::zero();
    while !stop.load(Ordering::Relaxed) {
        let pd = ibv_alloc_pd(rig.context);
        let mr = ibv_reg_mr(pd, rig.buffer.cast(), 64, 0);
        assert_eq!(ibv_get_async_event(rig.context, &raw mut event), -1);
        assert_eq!(ibv_dereg_mr(mr), 0);
        assert_eq!(ibv_dealloc_pd(pd), 0);
        assert_eq!(ibv_dealloc_pd(nowhere()), libc::EINVAL);
        assert_eq!(ibv_close_device(open()), 0);
    }
}

/// Which locks are held at a fork is chance: so there are many.
#[test]
fn locks_that_threads_hold_at_a_fork_hold_up_no_child() {
    if role().as_deref() != Some("locks") {
        let test = "fork::locks_that_threads_hold_at_a_fork_hold_up_no_child";
        assert!(as_another_process(test, "locks").success());
        return;
    }
    let rig = Rig::new();
    let fd = read(rig.context).async_fd;
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    let (shared, stop) = (Shared(&rig), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| take_locks(shared.rig(), &stop));
        }
        for _ in 0..200 {
            let seen = in_child(|| {
                assert!(ibv_alloc_pd(rig.context).is_null());
                assert_eq!(ibv_dealloc_pd(nowhere()), libc::EINVAL);
                let mut event = IbvAsyncEvent::zero();
                assert_eq!(ibv_get_async_event(rig.context, &raw mut event), -1);
                assert_eq!(ibv_dereg_mr(rig.mr), 0);
                assert_eq!(ibv_destroy_cq(rig.cq), 0);
                let own = open();
                assert_eq!(ibv_dealloc_pd(ibv_alloc_pd(own)), 0);
                assert_eq!(ibv_close_device(own), 0);
            });
            assert_eq!(seen, 0, "what the child saw");
        }
        stop.store(true, Ordering::Relaxed);
    });
    rig.close();
}

/// Lets threads use a rig, as those of C programs do.
struct Shared<'a>(&'a Rig);

impl<'a> Shared<'a> {
    fn rig(&self) -> &'a Rig {
        self.0
    }
}

// SAFETY: its pointers are the library's, whose calls any thread may make.
unsafe impl Sync for Shared<'_> {}
