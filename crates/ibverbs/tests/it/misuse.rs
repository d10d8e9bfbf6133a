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

/// Linux drivers/infiniband/core/verbs.c, ib_modify_qp_is_ok: which states follow which, and what
/// each step must and may set.
#[test]
fn steps_that_a_qp_may_not_make_are_refused_and_leave_it_as_it_was() {
    let rig = Rig::new();
    let qp = rig.qp(RC);
    let mut attr = IbvQpAttr { port_num: 1, path_mtu: 3, ..IbvQpAttr::zero() };
    let mut set = |qp_state, mask| {
        attr.qp_state = qp_state;
        ibv_modify_qp(qp, &raw mut attr, mask)
    };
    // To RTR, RTS and SQD from RESET; INIT without a port; a state and a bit that are none.
    for (state, mask) in [(2, 0x12_9181), (3, 0x1_2e01), (4, 1), (1, 0x19), (7, 1), (1, 1 << 30)] {
        assert_eq!(set(state, mask), libc::EINVAL, "{state} {mask:#x}");
        assert_eq!(read(qp).state, 0);
    }
    assert_eq!(set(1, 0x39), 0);
    // From INIT to RTS, and to RTR without a way.
    assert_eq!((set(3, 0x1_2e01), set(2, 0x12_9101)), (libc::EINVAL, libc::EINVAL));
    assert_eq!(read(qp).state, 1);
    attr.port_num = 2;
    assert_eq!(ibv_modify_qp(qp, &raw mut attr, 0x20), libc::EINVAL, "there is no port 2");
    assert_eq!(ibv_modify_qp(qp, std::ptr::null_mut(), 1), libc::EINVAL);
    assert_eq!(ibv_destroy_qp(qp), 0);
    rig.close();
}

#[test]
fn sizes_that_are_out_of_range_are_refused() {
    let rig = Rig::new();
    for change in [
        |cap: &mut IbvQpCap| cap.max_send_wr = u32::MAX,
        |cap: &mut IbvQpCap| cap.max_recv_wr = 1 << 30,
        |cap: &mut IbvQpCap| cap.max_send_sge = 1 << 16,
        |cap: &mut IbvQpCap| cap.max_recv_sge = u32::MAX,
        |cap: &mut IbvQpCap| cap.max_inline_data = 1 << 20,
    ] {
        let mut init = rig.init(RC);
        change(&mut init.cap);
        assert!(ibv_create_qp(rig.pd, &raw mut init).is_null());
        assert_eq!(errno(), libc::EINVAL);
    }
    let none = std::ptr::null_mut();
    for (cqe, vector) in [(0, 0), (-1, 0), (c_int::MAX, 0), (8, 1), (8, -1)] {
        assert!(ibv_create_cq(rig.context, cqe, none, std::ptr::null_mut(), vector).is_null());
        assert_eq!(errno(), libc::EINVAL, "{cqe} {vector}");
    }
    let mut init = IbvQpInitAttr { qp_type: 77, ..rig.init(RC) };
    assert!(ibv_create_qp(rig.pd, &raw mut init).is_null());
    assert_eq!(errno(), libc::EOPNOTSUPP);
    rig.close();
}

#[test]
fn queues_that_are_full_and_lists_that_are_wrong_are_told() {
    let rig = Rig::new();
    let [one, two] = rig.pair(RC);
    let mut hello = [rig.sge(0, 8)];
    for id in 0..16 {
        assert_eq!(post_recv(two, id, &mut hello), 0);
    }
    assert_eq!(post_recv(two, 16, &mut hello), libc::ENOMEM);
    assert_eq!(post_recv(one, 1, &mut [rig.sge(0, 1); 5]), libc::EINVAL, "of 4 elements at most");
    assert_eq!(post_send(one, &mut [send_wr(1, SEND, &mut [rig.sge(0, 1); 5])]).0, libc::EINVAL);
    for (count, list) in [(-1, hello.as_mut_ptr()), (1, std::ptr::null_mut())] {
        let wr = IbvSendWr { num_sge: count, sg_list: list, ..send_wr(1, SEND, &mut []) };
        assert_eq!(post_send(one, &mut [wr]), (libc::EINVAL, Some(0)));
    }
    let attr = IbvSrqAttr { max_wr: 2, max_sge: 1, srq_limit: 0 };
    let mut init = IbvSrqInitAttr { srq_context: std::ptr::null_mut(), attr };
    let srq = ibv_create_srq(rig.pd, &raw mut init);
    let list = |count: usize| {
        let mut wrs =
            vec![
                IbvRecvWr { sg_list: hello.as_ptr().cast_mut(), num_sge: 1, ..IbvRecvWr::zero() };
                count
            ];
        let first = wrs.as_mut_ptr();
        (1..count).for_each(|at| wrs[at - 1].next = first.wrapping_add(at));
        let mut bad = std::ptr::null_mut();
        let post = read(rig.context).ops.post_srq_recv.unwrap();
        // SAFETY: as the inline function does.
        let done = unsafe { post(srq, first, &raw mut bad) };
        (done, (0..count).find(|&at| first.wrapping_add(at) == bad))
    };
    // It may hold more than was asked for, and says how many at most.
    let mut attr = IbvSrqAttr::zero();
    assert_eq!(ibv_query_srq(srq, &raw mut attr), 0);
    let most = usize::try_from(attr.max_wr).unwrap();
    assert_eq!(list(most + 1), (libc::ENOMEM, Some(most)));
    assert_eq!(ibv_destroy_srq(srq), 0);
    let mut bad = std::ptr::null_mut();
    let ops = read(rig.context).ops;
    // SAFETY: as the inline function does, with no list.
    assert_eq!(unsafe { ops.post_send.unwrap()(one, std::ptr::null_mut(), &raw mut bad) }, 0);
    for qp in [one, two] {
        assert_eq!(ibv_destroy_qp(qp), 0);
    }
    rig.close();
}

/// What a request says of memory is looked at when it is done: its completion tells.
#[test]
fn keys_and_ranges_that_are_wrong_end_in_a_completion() {
    const LOC_PROT_ERR: c_int = 4;
    let rig = Rig::new();
    let IbvSge { addr, length: _, lkey } = rig.sge(0, 0);
    for sge in [
        IbvSge { addr, length: 8, lkey: lkey ^ 0xff },
        IbvSge { addr, length: 8, lkey: 0xdead_be00 },
        IbvSge { addr: 0x1000, length: 8, lkey },
        IbvSge { addr, length: u32::MAX >> 1, lkey },
        IbvSge { addr: u64::MAX - 3, length: 8, lkey },
    ] {
        let [one, two] = rig.pair(RC);
        assert_eq!(post_send(one, &mut [send_wr(1, SEND, &mut [sge])]), (0, None));
        assert_eq!(rig.wait(1)[0].status, LOC_PROT_ERR, "{sge:?}");
        for qp in [one, two] {
            assert_eq!(ibv_destroy_qp(qp), 0);
        }
    }
    rig.close();
}

/// The library prints what it is given nowhere, and reads none of it.
#[test]
fn null_is_refused_by_every_call_that_takes_a_struct() {
    let rig = Rig::new();
    let qp = rig.qp(RC);
    let nothing = std::ptr::null_mut;
    assert_eq!(ibv_query_device(rig.context, std::ptr::null_mut()), libc::EINVAL);
    assert_eq!(ibv_query_gid(rig.context, 1, 0, std::ptr::null_mut()), -1);
    let mut gid = RawGid([0; 16]);
    assert_eq!(ibv_query_gid(rig.context, 2, 0, &raw mut gid), -1);
    assert_eq!(ibv_query_qp(qp, std::ptr::null_mut(), 0, std::ptr::null_mut()), libc::EINVAL);
    assert!(ibv_create_ah(rig.pd, std::ptr::null_mut()).is_null());
    assert!(ibv_create_srq(rig.pd, std::ptr::null_mut()).is_null());
    assert_eq!(ibv_get_cq_event(rig.channel, nothing(), std::ptr::null_mut()), -1);
    assert_eq!(errno(), libc::EINVAL);
    ibv_ack_async_event(std::ptr::null_mut());
    ibv_ack_cq_events(std::ptr::null_mut(), 1);
    ibv_ack_cq_events(nowhere(), 1);
    ibv_free_device_list(std::ptr::null_mut());
    assert!(ibv_open_device(std::ptr::null_mut()).is_null());
    assert!(ibv_get_device_name(nowhere()).is_null());
    assert_eq!(ibv_destroy_qp(qp), 0);
    rig.close();
}
