//! What programs should not do, and what none of it may bring about: a crash or a hang.

use std::env;
use std::ffi::c_int;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ibverbs::layout::*;

use super::library::*;
use super::pair::*;

const SEND: c_int = 2;

/// Runs one test of this program in a process of its own, as another role.
fn as_another_process(test: &str, role: &str) -> ExitStatus {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env("URXE_TEST_ROLE", role);
    let mut child = child.spawn().unwrap();
    let id = libc::pid_t::try_from(child.id()).unwrap();
    let (tell, told) = mpsc::channel();
    let waits = std::thread::spawn(move || tell.send(child.wait().unwrap()));
    told.recv_timeout(Duration::from_secs(120)).unwrap_or_else(|_| {
        // SAFETY: a child of ours that nobody has waited for yet.
        unsafe { libc::kill(id, libc::SIGKILL) };
        let ended = waits.join();
        panic!("{test} as {role} hangs: {ended:?}");
    })
}

fn role() -> Option<String> {
    env::var("URXE_TEST_ROLE").ok()
}

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
        let test = "misuse::a_child_is_refused_its_parents_device_and_opens_its_own";
        assert!(as_another_process(test, "fork").success());
        return;
    }
    let rig = Rig::new();
    exchange(&rig);
    let qp = rig.qp(UD);
    // SAFETY: the child ends without going back to the test.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let fine = std::panic::catch_unwind(|| {
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
            assert_eq!(ibv_destroy_cq(rig.cq), 0);
        });
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(fine.is_err())) };
    }
    let mut status = 0;
    // SAFETY: a child of ours; the status is ours to write.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "what the child saw");
    exchange(&rig);
    assert_eq!(ibv_destroy_qp(qp), 0);
    rig.close();
}

#[test]
fn a_process_ends_with_work_in_flight() {
    if role().as_deref() != Some("exit") {
        let test = "misuse::a_process_ends_with_work_in_flight";
        assert_eq!(as_another_process(test, "exit").code(), Some(7));
        return;
    }
    let rig = Rig::new();
    let [one, _] = rig.pair(RC);
    let mut hello = [rig.sge(0, 8)];
    // Nobody receives: they are tried again for ever.
    let mut wrs: Vec<_> = (0..16).map(|id| send_wr(id, SEND, &mut hello)).collect();
    assert_eq!(post_send(one, &mut wrs), (0, None));
    std::process::exit(7);
}

#[test]
fn closing_a_device_ends_what_was_made_of_it() {
    let rig = Rig::new();
    let [one, two] = rig.pair(RC);
    let mut hello = [rig.sge(0, 8)];
    assert_eq!(post_send(one, &mut [send_wr(1, SEND, &mut hello)]), (0, None));
    assert_eq!(ibv_close_device(rig.context), 0);
    assert_eq!(ibv_close_device(rig.context), libc::EINVAL);
    for qp in [one, two] {
        assert_eq!(ibv_destroy_qp(qp), libc::EINVAL);
    }
    assert_eq!(ibv_dereg_mr(rig.mr), libc::EINVAL);
    assert_eq!(ibv_destroy_cq(rig.cq), libc::EINVAL);
    assert_eq!(ibv_dealloc_pd(rig.pd), libc::EINVAL);
    assert_eq!(ibv_destroy_comp_channel(rig.channel), libc::EINVAL);
}

#[test]
fn a_cq_that_overflows_is_told_of_and_its_qp_fails() {
    const CQ_ERR: c_int = 0;
    let rig = Rig::new();
    let small = ibv_create_cq(rig.context, 1, std::ptr::null_mut(), std::ptr::null_mut(), 0);
    let mut init = rig.init(RC);
    init.recv_cq = small;
    let two = ibv_create_qp(rig.pd, &raw mut init);
    let one = rig.qp(RC);
    rig.connect(one, two);
    rig.connect(two, one);
    for id in 0..4 {
        assert_eq!(post_recv(two, id, &mut [rig.sge(64, 64)]), 0);
    }
    let mut hello = [rig.sge(0, 8)];
    let mut wrs: Vec<_> = (0..4).map(|id| send_wr(id, SEND, &mut hello)).collect();
    assert_eq!(post_send(one, &mut wrs), (0, None));
    loop {
        let mut event = IbvAsyncEvent::zero();
        assert_eq!(ibv_get_async_event(rig.context, &raw mut event), 0);
        ibv_ack_async_event(&raw mut event);
        if event.event_type == CQ_ERR {
            assert_eq!(event.element, small.addr());
            break;
        }
    }
    let mut attr = IbvQpAttr::zero();
    let start = Instant::now();
    while attr.qp_state != 6 {
        let mut init = IbvQpInitAttr::zero();
        assert_eq!(ibv_query_qp(two, &raw mut attr, 1, &raw mut init), 0);
        assert!(start.elapsed() < Duration::from_secs(60), "state {}", attr.qp_state);
    }
    for qp in [one, two] {
        assert_eq!(ibv_destroy_qp(qp), 0);
    }
    assert_eq!(ibv_destroy_cq(small), 0);
    rig.close();
}
