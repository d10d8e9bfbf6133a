//! `ibv_wr_*`: requests built piece by piece, posted together or not at all.

use std::ffi::c_void;

use ibverbs::layout::*;

use super::inline::*;
use super::library::*;
use super::pair::*;

/// `enum ibv_qp_create_send_ops_flags`, those that an RC QP has.
const ALL_OF_RC: u64 = 0x3ff | 1 << 11 | 1 << 12;
const WRITE: u64 = 1;
const SEND: u64 = 1 << 2;
const READ: u64 = 1 << 4;

fn bytes_of(data: &[u8]) -> *mut c_void {
    data.as_ptr().cast_mut().cast()
}

#[test]
fn each_operation_is_built_and_done() {
    let rig = Rig::new();
    let [one, two] = rig.pair_ex(rig.init_ex(RC, ALL_OF_RC));
    for id in [70, 71, 72] {
        let at = 1000 + usize::try_from(id).unwrap();
        assert_eq!(post_recv(two, id, &mut [rig.sge(at * 2, 50)]), 0);
    }
    rig.fill(0, b"hello");
    rig.fill(200, &7_u64.to_ne_bytes());
    let (lkey, imm) = (read(rig.mr).lkey, 0xcafe_u32.to_be());
    let qp = QpEx::of(one);
    let sge = |at: usize, length| qp.set_sge(lkey, rig.sge(at, 0).addr, length);
    let to = |at| rig.remote(at);
    let (rkey, _) = to(0);
    let mut inline = *b"inline";
    let word = 0x1122_3344_5566_7788_u64.to_ne_bytes();
    qp.start();
    qp.number(1).wr_send();
    sge(0, 5);
    qp.number(2).wr_send_imm(imm);
    qp.set_sge_list(2, [rig.sge(0, 3), rig.sge(3, 2)].as_ptr());
    qp.number(3).wr_write(rkey, to(150).1);
    qp.set_inline(bytes_of(&inline), inline.len());
    qp.number(4).wr_write_imm(rkey, to(160).1, imm);
    let pieces = [&inline[..2], &inline[2..]];
    let pieces = pieces.map(|p| IbvDataBuf { addr: bytes_of(p), length: p.len() });
    qp.set_inline_list(2, pieces.as_ptr());
    qp.number(5).wr_fetch_add(rkey, to(200).1, 5);
    sge(208, 8);
    qp.number(6).wr_cmp_swp(rkey, to(200).1, 12, 99);
    sge(216, 8);
    qp.number(7).wr_atomic_write(rkey, to(224).1, word.as_ptr().cast());
    // Global visibility of a range.
    qp.number(8).wr_flush(rkey, to(150).1, 20, 1, 0);
    qp.number(9).wr_read(rkey, to(0).1);
    sge(300, 5);
    // Inline data was taken when it was set.
    inline.fill(b'?');
    assert_eq!(poll(rig.cq, &mut [IbvWc::zero()]), 0, "nothing is posted yet");
    assert_eq!(qp.complete(), 0);
    let mut done = rig.wait(12);
    assert!(done.iter().all(|wc| wc.status == 0), "{:?}", done.iter().map(|wc| wc.status));
    done.sort_by_key(|wc| wc.wr_id);
    let ids: Vec<_> = done.iter().map(|wc| wc.wr_id).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8, 9, 70, 71, 72]);
    assert_eq!(done[9..].iter().map(|wc| wc.byte_len).collect::<Vec<_>>(), [5, 5, 6]);
    assert_eq!(done[9..].iter().map(|wc| wc.wc_flags).collect::<Vec<_>>(), [0, 2, 2]);
    assert_eq!(u32::from_be(done[10].imm_data), 0xcafe);
    for at in [2140, 2142, 300] {
        assert_eq!(rig.bytes(at, 2), b"he", "at {at}");
    }
    assert_eq!((rig.bytes(150, 6), rig.bytes(160, 6)), (b"inline".to_vec(), b"inline".to_vec()));
    let words =
        [200, 208, 216, 224].map(|at| u64::from_ne_bytes(rig.bytes(at, 8).try_into().unwrap()));
    assert_eq!(words, [99, 7, 12, 0x1122_3344_5566_7788]);
    destroy(&[one, two]);
    rig.close();
}

/// The later call says what a request's data is, of whichever kind either is.
#[test]
fn data_that_is_set_last_counts() {
    let rig = Rig::new();
    let [one, two] = rig.pair_ex(rig.init_ex(RC, SEND));
    rig.fill(0, b"in memory");
    for id in 0..4 {
        let at = usize::try_from(id).unwrap() * 64 + 1024;
        assert_eq!(post_recv(two, id, &mut [rig.sge(at, 64)]), 0);
    }
    let qp = QpEx::of(one);
    let inline = || qp.set_inline(bytes_of(b"inline"), 6);
    let list = |length| qp.set_sge_list(1, [rig.sge(0, length)].as_ptr());
    qp.start();
    qp.number(10).wr_send();
    inline();
    list(9);
    qp.number(11).wr_send();
    list(9);
    inline();
    qp.number(12).wr_send();
    list(9);
    list(2);
    qp.number(13).wr_send();
    list(2);
    inline();
    list(9);
    assert_eq!(qp.complete(), 0);
    let mut done = rig.wait(8);
    assert!(done.iter().all(|wc| wc.status == 0), "{:?}", done.iter().map(|wc| wc.status));
    done.sort_by_key(|wc| wc.wr_id);
    assert_eq!(done[..4].iter().map(|wc| wc.byte_len).collect::<Vec<_>>(), [9, 6, 2, 9]);
    assert_eq!(rig.bytes(1024, 9), b"in memory");
    assert_eq!(rig.bytes(1088, 6), b"inline");
    assert_eq!(rig.bytes(1216, 9), b"in memory");
    // Nothing limits data that is not inline: 65 bytes, where a QP takes 64 inline.
    assert_eq!(post_recv(two, 5, &mut [rig.sge(1024, 100)]), 0);
    qp.start();
    qp.number(14).wr_send();
    inline();
    list(65);
    assert_eq!(qp.complete(), 0);
    assert!(rig.wait(2).iter().all(|wc| wc.status == 0));
    destroy(&[one, two]);
    rig.close();
}

#[test]
fn what_is_wrong_is_told_at_the_end_and_nothing_is_posted() {
    let rig = Rig::new();
    let [one, two] = rig.pair_ex(rig.init_ex(RC, SEND | WRITE));
    let qp = QpEx::of(one);
    let good = |id| qp.number(id).wr_send();
    let (rkey, remote) = rig.remote(0);
    let wrong: [&dyn Fn(); 7] = [
        &|| qp.number(2).wr_read(rkey, remote),
        &|| qp.set_ud_addr(nowhere(), 1, 1),
        &|| qp.set_inline(bytes_of(&[0; 65]), 65),
        &|| qp.set_inline(none(), 1),
        &|| qp.set_sge_list(1, none()),
        &|| qp.set_sge_list(5, [rig.sge(0, 1); 5].as_ptr()),
        &|| qp.number(2).wr_bind_mw(nowhere(), 1, none()),
    ];
    let errnos = [libc::EINVAL, libc::EINVAL, libc::EINVAL, libc::EFAULT];
    for (at, wrong) in wrong.iter().enumerate() {
        qp.start();
        good(1);
        wrong();
        let errno = errnos.get(at).copied().unwrap_or(libc::EINVAL);
        assert_eq!(qp.complete(), errno, "{at}");
    }
    // Data of no request; more requests than the queue holds.
    qp.start();
    qp.set_inline(bytes_of(b"x"), 1);
    assert_eq!(qp.complete(), libc::EINVAL);
    qp.start();
    (0..17).for_each(good);
    assert_eq!(qp.complete(), libc::ENOMEM);
    qp.start();
    good(3);
    qp.abort();
    assert_eq!(poll(rig.cq, &mut [IbvWc::zero()]), 0);
    // The QP is as it was.
    assert_eq!(post_recv(two, 7, &mut []), 0);
    qp.start();
    good(4);
    assert_eq!(qp.complete(), 0);
    let mut ids: Vec<_> = rig.wait(2).iter().map(|wc| wc.wr_id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [4, 7]);
    destroy(&[one, two]);
    rig.close();
}

#[test]
fn datagrams_are_built_with_their_way_and_other_operations_are_not_had() {
    let rig = Rig::new();
    for (kind, operation) in [(UD, WRITE), (UC, READ), (RC, 1 << 10), (XRC_RECV, SEND)] {
        let mut init = rig.init_ex(kind, operation);
        assert!(create_qp_ex(rig.context, rig.context, &raw mut init).is_null());
        assert_eq!(errno(), libc::EOPNOTSUPP, "{kind}");
    }
    let plain = rig.qp(RC);
    assert!(ibv_qp_to_qp_ex(plain).is_null());
    assert_eq!(errno(), libc::EINVAL);
    let [one, two] = rig.pair_ex(rig.init_ex(UD, SEND));
    let mut way = rig.way();
    let ah = ibv_create_ah(rig.pd, &raw mut way);
    assert_eq!(post_recv(two, 7, &mut [rig.sge(100, 100)]), 0);
    let qp = QpEx::of(one);
    qp.start();
    qp.number(1).wr_send();
    qp.set_ud_addr(ah, read(two).qp_num, 0x1234);
    qp.set_inline(bytes_of(b"datagram"), 8);
    assert_eq!(qp.complete(), 0);
    assert!(rig.wait(2).iter().all(|wc| wc.status == 0));
    assert_eq!(rig.bytes(140, 8), b"datagram");
    // Without one it goes nowhere.
    qp.start();
    qp.number(2).wr_send();
    assert_eq!(qp.complete(), libc::EINVAL);
    assert_eq!(ibv_destroy_ah(ah), 0);
    destroy(&[one, two, plain]);
    rig.close();
}
