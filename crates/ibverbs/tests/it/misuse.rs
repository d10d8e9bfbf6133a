//! What programs should not do, and what none of it may bring about: a crash or a hang.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use ibverbs::layout::*;

use super::library::*;
use super::pair::*;
use super::process::*;

const SEND: c_int = 2;

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
