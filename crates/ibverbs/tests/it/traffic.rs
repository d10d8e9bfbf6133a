use std::ffi::c_int;
use std::ptr;

use ibverbs::layout::*;

use super::events::waits_for;
use super::library::*;
use super::pair::*;

/// `enum ibv_wr_opcode`.
const WRITE: c_int = 0;
const WRITE_IMM: c_int = 1;
const SEND: c_int = 2;
const READ: c_int = 4;
const FETCH_ADD: c_int = 6;
/// `enum ibv_wc_opcode`.
const WC_RECV: c_int = 128;
const WC_RECV_IMM: c_int = 129;

fn remote(rig: &Rig, at: usize) -> WrTarget {
    let IbvSge { addr: remote_addr, .. } = rig.sge(at, 0);
    WrTarget { rdma: WrRdma { remote_addr, rkey: read(rig.mr).rkey } }
}

#[test]
fn rc_sends_writes_reads_and_adds() {
    let rig = Rig::new();
    let [one, two] = rig.pair(RC);
    rig.fill(0, b"hello");
    assert_eq!(post_recv(two, 70, &mut [rig.sge(100, 50)]), 0);
    assert_eq!(post_recv(two, 71, &mut []), 0);
    let (mut hello, mut word) = ([rig.sge(0, 5)], [rig.sge(208, 8)]);
    let mut back = [rig.sge(300, 5)];
    rig.fill(200, &7_u64.to_ne_bytes());
    let IbvSge { addr: remote_addr, .. } = rig.sge(200, 0);
    let (rkey, compare_add, swap) = (read(rig.mr).rkey, 5, 0);
    let add = WrTarget { atomic: WrAtomic { remote_addr, compare_add, swap, rkey } };
    let mut wrs = [
        send_wr(1, SEND, &mut hello),
        IbvSendWr { wr: remote(&rig, 150), ..send_wr(2, WRITE, &mut hello) },
        IbvSendWr {
            wr: remote(&rig, 160),
            imm_data: 0xcafe_u32.to_be(),
            ..send_wr(3, WRITE_IMM, &mut hello)
        },
        IbvSendWr { wr: add, ..send_wr(4, FETCH_ADD, &mut word) },
        IbvSendWr { wr: remote(&rig, 0), ..send_wr(5, READ, &mut back) },
    ];
    assert_eq!(post_send(one, &mut wrs), (0, None));
    let mut done = rig.wait(7);
    assert!(done.iter().all(|wc| wc.status == 0), "{:?}", done.iter().map(|wc| wc.status));
    done.sort_by_key(|wc| wc.wr_id);
    let ids: Vec<_> = done.iter().map(|wc| wc.wr_id).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 70, 71]);
    assert_eq!((done[5].opcode, done[5].byte_len), (WC_RECV, 5));
    assert_eq!((done[6].opcode, done[6].byte_len), (WC_RECV_IMM, 5));
    assert_eq!(u32::from_be(done[6].imm_data), 0xcafe);
    assert_eq!(done[6].wc_flags, 2, "with immediate data");
    assert_eq!(done[0].qp_num, read(one).qp_num);
    for at in [100, 150, 160, 300] {
        assert_eq!(rig.bytes(at, 5), b"hello", "at {at}");
    }
    assert_eq!(rig.bytes(208, 8), 7_u64.to_ne_bytes());
    assert_eq!(rig.bytes(200, 8), 12_u64.to_ne_bytes());
    assert_eq!(ibv_destroy_qp(one), 0);
    assert_eq!(ibv_destroy_qp(two), 0);
    rig.close();
}

#[test]
fn inline_data_is_gathered_when_it_is_posted() {
    const INLINE: u32 = 8;
    let rig = Rig::new();
    let [one, two] = rig.pair(RC);
    let parts = [*b"gath", *b"ered"];
    // Memory that is not registered, keys that nobody has.
    let sge = |part: &[u8; 4]| {
        let addr = part.as_ptr().expose_provenance() as u64;
        IbvSge { addr, length: 4, lkey: 0xbad }
    };
    let (mut one_part, mut both) = ([sge(&parts[0])], [sge(&parts[0]), sge(&parts[1])]);
    assert_eq!(post_recv(two, 1, &mut [rig.sge(0, 64)]), 0);
    assert_eq!(post_recv(two, 2, &mut [rig.sge(64, 64)]), 0);
    let flags = INLINE | SIGNALED;
    let mut wrs = [
        IbvSendWr { send_flags: flags, ..send_wr(3, SEND, &mut one_part) },
        IbvSendWr { send_flags: flags, ..send_wr(4, SEND, &mut both) },
    ];
    assert_eq!(post_send(one, &mut wrs), (0, None));
    assert!(rig.wait(4).iter().all(|wc| wc.status == 0));
    assert_eq!((rig.bytes(0, 4), rig.bytes(64, 8)), (b"gath".to_vec(), b"gathered".to_vec()));
    // More than the QP was made for.
    let long = [0_u8; 65];
    let addr = long.as_ptr().expose_provenance() as u64;
    let mut too_long = [IbvSge { addr, length: 65, lkey: 0 }];
    let wr = IbvSendWr { send_flags: flags, ..send_wr(5, SEND, &mut too_long) };
    assert_eq!(post_send(one, &mut [wr]), (libc::EINVAL, Some(0)));
    assert_eq!(ibv_destroy_qp(one), 0);
    assert_eq!(ibv_destroy_qp(two), 0);
    rig.close();
}

#[test]
fn the_first_request_that_is_not_taken_is_told() {
    let rig = Rig::new();
    let [one, two] = rig.pair(RC);
    let mut hello = [rig.sge(0, 5)];
    // The second has an opcode that does not exist.
    let mut wrs = [send_wr(1, SEND, &mut hello), send_wr(2, 99, &mut hello)];
    assert_eq!(post_send(one, &mut wrs), (libc::EINVAL, Some(1)));
    // Without receives the first cannot end; of 20 more there is room for 15.
    let mut many: Vec<_> = (0..20).map(|id| send_wr(id, SEND, &mut hello)).collect();
    assert_eq!(post_send(one, &mut many), (libc::ENOMEM, Some(15)));
    // Sends before RTS.
    let fresh = rig.qp(RC);
    assert_eq!(post_send(fresh, &mut wrs), (libc::EINVAL, Some(0)));
    assert_eq!(post_recv(fresh, 1, &mut hello), libc::EINVAL);
    for qp in [one, two, fresh] {
        assert_eq!(ibv_destroy_qp(qp), 0);
    }
    rig.close();
}

#[test]
fn ud_datagrams_find_their_way_by_address_handle() {
    let rig = Rig::new();
    let [one, two] = rig.pair(UD);
    let mut way = rig.way();
    let ah = ibv_create_ah(rig.pd, &raw mut way);
    assert!(!ah.is_null(), "errno {}", errno());
    rig.fill(0, b"datagram");
    assert_eq!(post_recv(two, 7, &mut [rig.sge(100, 100)]), 0);
    let (remote_qpn, remote_qkey) = (read(two).qp_num, 0x1234);
    let wr = WrTarget { ud: WrUd { ah, remote_qpn, remote_qkey } };
    let mut hello = [rig.sge(0, 8)];
    let mut wrs = [IbvSendWr { wr, ..send_wr(1, SEND, &mut hello) }];
    assert_eq!(post_send(one, &mut wrs), (0, None));
    let done = rig.wait(2);
    let got = done.iter().find(|wc| wc.wr_id == 7).unwrap();
    // 40 bytes of GRH stand in front.
    assert_eq!((got.status, got.byte_len, got.wc_flags), (0, 48, 1));
    assert_eq!(got.src_qp, read(one).qp_num);
    assert_eq!(rig.bytes(140, 8), b"datagram");
    assert_eq!(ibv_destroy_ah(ah), 0);
    assert_eq!(post_send(one, &mut wrs), (libc::EINVAL, Some(0)), "its AH is gone");
    assert_eq!(ibv_destroy_qp(one), 0);
    assert_eq!(ibv_destroy_qp(two), 0);
    rig.close();
}

#[test]
fn a_completion_wakes_the_channel_and_is_waited_for_at_the_end() {
    let rig = Rig::new();
    let fd = read(rig.channel).fd;
    let (mut cq, mut of) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the descriptor is open.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    assert_eq!(flags & libc::O_NONBLOCK, 0, "whether it blocks is the program's to say");
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) }, 0);
    assert_eq!(ibv_get_cq_event(rig.channel, &raw mut cq, &raw mut of), -1);
    assert_eq!(errno(), libc::EAGAIN);
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFL, flags) }, 0);

    let [one, two] = rig.pair(RC);
    let ops = read(rig.context).ops;
    // SAFETY: as the inline function does.
    assert_eq!(unsafe { ops.req_notify_cq.unwrap()(rig.cq, 0) }, 0);
    let mut hello = [rig.sge(0, 5)];
    let mut wrs = [IbvSendWr { wr: remote(&rig, 100), ..send_wr(1, WRITE, &mut hello) }];
    assert_eq!(post_send(one, &mut wrs), (0, None));
    assert_eq!(ibv_get_cq_event(rig.channel, &raw mut cq, &raw mut of), 0);
    assert_eq!(cq, rig.cq);
    assert_eq!(rig.wait(1)[0].status, 0);
    assert_eq!(ibv_destroy_qp(one), 0);
    assert_eq!(ibv_destroy_qp(two), 0);
    // The CQ goes when the event is acknowledged, and not before.
    let ends = || ibv_destroy_cq(rig.cq);
    waits_for(ends, || poll(rig.cq, &mut []) == 0, || ibv_ack_cq_events(rig.cq, 1));
    let cq = ibv_create_cq(rig.context, 1, ptr::null_mut(), rig.channel, 0);
    Rig { cq, ..rig }.close();
}

#[test]
fn a_send_without_a_receiver_is_flushed_when_its_qp_goes_to_error() {
    const FLUSHED: c_int = 5;
    let rig = Rig::new();
    let [one, two] = rig.pair(RC);
    let mut hello = [rig.sge(0, 5)];
    assert_eq!(post_send(one, &mut [send_wr(1, SEND, &mut hello)]), (0, None));
    let mut attr = IbvQpAttr { qp_state: 6, ..IbvQpAttr::zero() };
    assert_eq!(ibv_modify_qp(one, &raw mut attr, 1), 0);
    assert_eq!(rig.wait(1)[0].status, FLUSHED);
    let mut init = IbvQpInitAttr::zero();
    assert_eq!(ibv_query_qp(one, &raw mut attr, 0, &raw mut init), 0);
    assert_eq!((attr.qp_state, init.qp_type, init.send_cq), (6, RC, rig.cq));
    assert_eq!(ibv_destroy_qp(one), 0);
    assert_eq!(ibv_destroy_qp(two), 0);
    rig.close();
}

/// As the libraries of real NICs have it: what is polled after RESET is of what was posted after.
#[test]
fn a_qp_that_was_reset_leaves_nothing_in_its_cqs() {
    let rig = Rig::new();
    let [one, two] = rig.pair(RC);
    let other = rig.qp(UD);
    rig.connect(other, other);
    let mut attr = IbvQpAttr { qp_state: 6, ..IbvQpAttr::zero() };
    for qp in [one, other] {
        assert_eq!(post_recv(qp, 1, &mut [rig.sge(0, 64)]), 0);
        assert_eq!(ibv_modify_qp(qp, &raw mut attr, 1), 0);
    }
    attr.qp_state = 0;
    assert_eq!(ibv_modify_qp(one, &raw mut attr, 1), 0);
    let left = rig.wait(1);
    assert_eq!((left[0].qp_num, left[0].status), (read(other).qp_num, 5), "another QP's stays");
    rig.connect(one, two);
    assert_eq!(poll(rig.cq, &mut [IbvWc::zero()]), 0);
    for qp in [one, two, other] {
        assert_eq!(ibv_destroy_qp(qp), 0);
    }
    rig.close();
}
