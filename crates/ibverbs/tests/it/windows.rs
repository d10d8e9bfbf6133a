//! Memory windows of both types.

use std::ffi::c_int;

use ibverbs::layout::*;

use super::inline::*;
use super::library::*;
use super::pair::*;

/// `enum ibv_wr_opcode`, `enum ibv_wc_opcode`, `enum ibv_wc_status`.
const WRITE: c_int = 0;
const LOCAL_INV: u64 = 1 << 7;
const BIND_MW: u64 = 1 << 8;
const SEND_INV: u64 = 1 << 9;
const WC_BIND_MW: c_int = 5;
const REM_ACCESS_ERR: c_int = 10;

fn window(rig: &Rig, kind: c_int) -> *mut IbvMw {
    // SAFETY: as the inline function does.
    let mw = unsafe { read(rig.context).ops.alloc_mw.unwrap()(rig.pd, kind) };
    assert!(!mw.is_null(), "errno {}", errno());
    mw
}

fn free(mw: *mut IbvMw) -> c_int {
    // SAFETY: as the inline function does.
    unsafe { read(read(mw).context).ops.dealloc_mw.unwrap()(mw) }
}

/// Bytes 1,024 to 1,088 of the buffer, for a peer to write.
fn part(rig: &Rig) -> IbvMwBindInfo {
    let IbvSge { addr, .. } = rig.sge(1024, 0);
    let mw_access_flags = REMOTE_WRITE.cast_unsigned();
    IbvMwBindInfo { mr: rig.mr, addr, length: 64, mw_access_flags }
}

/// Writes 8 bytes there with a window's key; gives the status.
fn write(rig: &Rig, qp: *mut IbvQp, rkey: u32, at: usize) -> c_int {
    let IbvSge { addr: remote_addr, .. } = rig.sge(at, 0);
    let wr = WrTarget { rdma: WrRdma { remote_addr, rkey } };
    let mut from = [rig.sge(0, 8)];
    assert_eq!(post_send(qp, &mut [IbvSendWr { wr, ..send_wr(9, WRITE, &mut from) }]), (0, None));
    let done = rig.wait(1);
    assert_eq!(done[0].wr_id, 9);
    done[0].status
}

fn bind(rig: &Rig, qp: *mut IbvQp, mw: *mut IbvMw, bind_info: IbvMwBindInfo) -> c_int {
    let mut how = IbvMwBind { wr_id: 5, send_flags: SIGNALED, bind_info };
    // SAFETY: as the inline function does.
    unsafe { read(rig.context).ops.bind_mw.unwrap()(qp, mw, &raw mut how) }
}

#[test]
fn a_window_of_type_1_opens_its_part_and_no_more() {
    let rig = Rig::new();
    let [one, two] = rig.pair(RC);
    let mw = window(&rig, 1);
    let old = read(mw).rkey;
    assert_eq!(bind(&rig, two, mw, part(&rig)), 0);
    let done = rig.wait(1);
    assert_eq!((done[0].wr_id, done[0].status, done[0].opcode), (5, 0, WC_BIND_MW));
    let rkey = read(mw).rkey;
    // A bind changes the low byte of the key.
    assert!(rkey != old && rkey & !0xff == old & !0xff, "{old:#x} {rkey:#x}");
    rig.fill(0, b"windowed");
    assert_eq!(write(&rig, one, rkey, 1032), 0);
    assert_eq!(rig.bytes(1032, 8), b"windowed");
    assert_eq!(ibv_dereg_mr(rig.mr), libc::EBUSY, "a window is bound to it");
    assert_eq!(write(&rig, one, rkey, 1084), REM_ACCESS_ERR, "beyond its end");
    destroy(&[one, two]);
    let [one, two] = rig.pair(RC);
    // Bound anew, to nothing: closed.
    assert_eq!(bind(&rig, two, mw, IbvMwBindInfo { length: 0, ..part(&rig) }), 0);
    assert_eq!(rig.wait(1)[0].status, 0);
    assert_eq!(write(&rig, one, read(mw).rkey, 1032), REM_ACCESS_ERR);
    assert_eq!(free(mw), 0);
    assert_eq!(free(mw), libc::EINVAL);
    destroy(&[one, two]);
    rig.close();
}

#[test]
fn binds_that_are_wrong_are_refused() {
    let rig = Rig::new();
    let [one, two] = rig.pair(RC);
    let mw = window(&rig, 1);
    for info in [
        IbvMwBindInfo { mr: nowhere(), ..part(&rig) },
        IbvMwBindInfo { mw_access_flags: 1 << 15, ..part(&rig) },
    ] {
        assert_eq!(bind(&rig, two, mw, info), libc::EINVAL);
    }
    assert_eq!(bind(&rig, two, nowhere(), part(&rig)), libc::EINVAL);
    // SAFETY: as the inline function does.
    assert!(unsafe { read(rig.context).ops.alloc_mw.unwrap()(rig.pd, 3) }.is_null());
    assert_eq!(errno(), libc::EINVAL);
    assert_eq!(free(mw), 0);
    destroy(&[one, two]);
    rig.close();
}

/// Binds a window of type 2 by a built request; gives its key.
fn bind_2(rig: &Rig, qp: QpEx, mw: *mut IbvMw) -> u32 {
    let (old, info) = (read(mw).rkey, part(rig));
    let rkey = (old & !0xff) | (old.wrapping_add(1) & 0xff);
    qp.start();
    qp.number(6).wr_bind_mw(mw, rkey, &raw const info);
    assert_eq!(qp.complete(), 0);
    let done = rig.wait(1);
    assert_eq!((done[0].wr_id, done[0].status, done[0].opcode), (6, 0, WC_BIND_MW));
    rkey
}

#[test]
fn a_window_of_type_2_is_closed_by_its_peer_or_its_owner() {
    const WITH_INV: u32 = 1 << 3;
    let rig = Rig::new();
    let operations = LOCAL_INV | BIND_MW | SEND_INV;
    for by_peer in [true, false] {
        let [one, two] = rig.pair_ex(rig.init_ex(RC, operations));
        let (ours, peers) = (QpEx::of(two), QpEx::of(one));
        let mw = window(&rig, 2);
        let rkey = bind_2(&rig, ours, mw);
        assert_eq!(write(&rig, one, rkey, 1024), 0);
        if by_peer {
            assert_eq!(post_recv(two, 7, &mut []), 0);
            peers.start();
            peers.number(8).wr_send_inv(rkey);
            assert_eq!(peers.complete(), 0);
            let done = rig.wait(2);
            let got = done.iter().find(|wc| wc.wr_id == 7).unwrap();
            assert_eq!((got.status, got.wc_flags, got.imm_data), (0, WITH_INV, rkey));
        } else {
            ours.start();
            ours.number(8).wr_local_inv(rkey);
            assert_eq!(ours.complete(), 0);
            assert_eq!(rig.wait(1)[0].status, 0);
        }
        assert_eq!(write(&rig, one, rkey, 1024), REM_ACCESS_ERR);
        assert_eq!(free(mw), 0);
        destroy(&[one, two]);
    }
    rig.close();
}
