//! Memory that is registered anew, that is the device's, that is none; parent domains; imports.

use std::ffi::{c_int, c_void};

use ibverbs::layout::*;

use super::inline::*;
use super::library::*;
use super::pair::*;

const WRITE: c_int = 0;
const READ: c_int = 4;
const REM_ACCESS_ERR: c_int = 10;
const ZERO_BASED: u32 = 1 << 5;

/// Moves 8 bytes between the start of the buffer and elsewhere; gives the status.
fn move_8(rig: &Rig, qp: *mut IbvQp, opcode: c_int, rkey: u32, remote_addr: u64) -> c_int {
    let wr = WrTarget { rdma: WrRdma { remote_addr, rkey } };
    let mut own = [rig.sge(0, 8)];
    assert_eq!(post_send(qp, &mut [IbvSendWr { wr, ..send_wr(1, opcode, &mut own) }]), (0, None));
    rig.wait(1)[0].status
}

#[test]
fn a_region_that_is_registered_anew_has_new_memory_rights_or_pd() {
    const TRANSLATION: c_int = 1;
    const PD: c_int = 2;
    const ACCESS: c_int = 4;
    let rig = Rig::new();
    let mut room = [[0_u8; 64]; 2];
    let at: [*mut c_void; 2] = [room[0].as_mut_ptr().cast(), room[1].as_mut_ptr().cast()];
    let address = |n: usize| at[n].expose_provenance() as u64;
    let mr = ibv_reg_mr(rig.pd, at[0], 64, LOCAL_WRITE);
    let first = read(mr).rkey;
    let rereg = |flags, pd, n: usize, access| ibv_rereg_mr(mr, flags, pd, at[n], 64, access);
    rig.fill(0, b"anew    ");

    let [one, two] = rig.pair(RC);
    assert_eq!(move_8(&rig, one, WRITE, first, address(0)), REM_ACCESS_ERR);
    destroy(&[one, two]);
    assert_eq!(rereg(ACCESS, none(), 0, LOCAL_WRITE | REMOTE_WRITE), 0);
    let [one, two] = rig.pair(RC);
    assert_eq!(move_8(&rig, one, WRITE, read(mr).rkey, address(0)), 0);

    let before = read(mr);
    assert_eq!(rereg(TRANSLATION, none(), 1, 0), 0);
    let after = read(mr);
    assert_eq!((after.addr, after.length), (at[1], 64));
    assert_ne!(before.rkey, after.rkey);
    assert_eq!(move_8(&rig, one, WRITE, after.rkey, address(1)), 0);
    assert_eq!(move_8(&rig, one, WRITE, before.rkey, address(0)), REM_ACCESS_ERR, "the old key");
    destroy(&[one, two]);

    let other = ibv_alloc_pd(rig.context);
    assert_eq!(rereg(PD, other, 1, 0), 0);
    assert_eq!(read(mr).pd, other);
    assert_eq!(ibv_dealloc_pd(other), libc::EBUSY);
    let [one, two] = rig.pair(RC);
    assert_eq!(move_8(&rig, one, WRITE, read(mr).rkey, address(1)), REM_ACCESS_ERR, "another PD");
    destroy(&[one, two]);

    // `IBV_REREG_MR_ERR_INPUT`: nothing changed.
    let kept = read(mr);
    for (flags, pd, n, access) in [
        (0, none(), 0, 0),
        (8, none(), 0, 0),
        (PD, nowhere(), 0, 0),
        (ACCESS, none(), 0, REMOTE_WRITE),
        (TRANSLATION | ACCESS, none(), 0, 1 << 15),
    ] {
        assert_eq!(rereg(flags, pd, n, access), -1, "{flags}");
    }
    assert_eq!(ibv_rereg_mr(mr, TRANSLATION, none(), none(), 64, 0), -1);
    assert_eq!((read(mr).rkey, read(mr).addr, read(mr).pd), (kept.rkey, kept.addr, other));
    assert_eq!(ibv_dereg_mr(mr), 0);
    assert_eq!(ibv_dealloc_pd(other), 0);
    assert_eq!((&room[0][..4], &room[1][..4]), (&b"anew"[..], &b"anew"[..]));
    rig.close();
}

fn device_memory(rig: &Rig, length: usize) -> *mut IbvDm {
    let mut attr = IbvAllocDmAttr { length, log_align_req: 3, comp_mask: 0 };
    alloc_dm(rig.context, rig.context, &raw mut attr)
}

fn copy_in(dm: *mut IbvDm, at: u64, bytes: &[u8]) -> c_int {
    // SAFETY: as the inline function does; the bytes are the slice's.
    unsafe { read(dm).memcpy_to_dm.unwrap()(dm, at, bytes.as_ptr().cast(), bytes.len()) }
}

fn copy_out(dm: *mut IbvDm, at: u64, bytes: &mut [u8]) -> c_int {
    // SAFETY: as the inline function does; the room is the slice's.
    unsafe { read(dm).memcpy_from_dm.unwrap()(bytes.as_mut_ptr().cast(), dm, at, bytes.len()) }
}

#[test]
fn device_memory_is_copied_to_and_from_and_reached_by_peers() {
    let rig = Rig::new();
    let dm = device_memory(&rig, 256);
    assert!(!dm.is_null(), "errno {}", errno());
    assert_eq!(copy_in(dm, 16, b"on the device..."), 0);
    let access = ZERO_BASED | (LOCAL_WRITE | REMOTE_WRITE | 4).cast_unsigned();
    let mr = reg_dm_mr(rig.context, rig.pd, dm, 8, 128, access);
    assert!(!mr.is_null(), "errno {}", errno());
    let [one, two] = rig.pair(RC);
    // Zero-based: the region's byte 8 is the device's byte 16.
    assert_eq!(move_8(&rig, one, READ, read(mr).rkey, 8), 0);
    assert_eq!(rig.bytes(0, 8), b"on the d");
    rig.fill(0, b"written.");
    assert_eq!(move_8(&rig, one, WRITE, read(mr).rkey, 120), 0);
    let mut bytes = [0; 8];
    assert_eq!(copy_out(dm, 128, &mut bytes), 0);
    assert_eq!(&bytes, b"written.");
    assert_eq!(move_8(&rig, one, WRITE, read(mr).rkey, 124), REM_ACCESS_ERR, "beyond the region");
    destroy(&[one, two]);

    assert_eq!(free_dm(rig.context, dm), libc::EBUSY);
    assert_eq!(copy_in(dm, 2, b"four"), libc::EINVAL, "words of 4 bytes");
    assert_eq!(copy_in(dm, 256, b"four"), libc::EINVAL, "beyond its end");
    assert!(reg_dm_mr(rig.context, rig.pd, dm, 8, 128, access & !ZERO_BASED).is_null());
    assert!(reg_dm_mr(rig.context, rig.pd, dm, 200, 128, access).is_null());
    assert_eq!(ibv_dereg_mr(mr), 0);
    assert_eq!(free_dm(rig.context, dm), 0);
    assert_eq!(free_dm(rig.context, dm), libc::EINVAL);
    for (length, wanted) in [(0, libc::EINVAL), ((1 << 20) + 1, libc::ENOMEM)] {
        assert!(device_memory(&rig, length).is_null());
        assert_eq!(errno(), wanted);
    }
    rig.close();
}

#[test]
fn a_null_region_takes_all_and_gives_zeros() {
    let rig = Rig::new();
    let null = alloc_null_mr(rig.context, rig.pd);
    assert!(!null.is_null(), "errno {}", errno());
    let [one, two] = rig.pair(RC);
    rig.fill(0, b"untouched, zeros");
    let lkey = read(null).lkey;
    let (rkey, remote_addr) = rig.remote(8);
    let wr = WrTarget { rdma: WrRdma { remote_addr, rkey } };
    let mut anywhere = [IbvSge { addr: 0x10_0000, length: 5, lkey }];
    let list = [anywhere; 2];
    let mut wrs = [READ, WRITE].map(|op| IbvSendWr { wr, ..send_wr(1, op, &mut anywhere) });
    assert_eq!(post_send(one, &mut wrs), (0, None));
    assert!(rig.wait(2).iter().all(|wc| wc.status == 0));
    assert_eq!(list[0][0].length, 5);
    assert_eq!(rig.bytes(0, 16), b"untouche\0\0\0\0\0ros");
    destroy(&[one, two]);
    assert_eq!(ibv_dereg_mr(null), 0);
    rig.close();
}

#[test]
fn a_parent_domain_stands_for_its_pd_and_keeps_it() {
    let rig = Rig::new();
    let mut init = IbvTdInitAttr { comp_mask: 0 };
    let td = alloc_td(rig.context, rig.context, &raw mut init);
    assert!(!td.is_null(), "errno {}", errno());
    let mut attr = IbvParentDomainInitAttr { pd: rig.pd, td, ..IbvParentDomainInitAttr::zero() };
    let parent = alloc_parent_domain(rig.context, rig.context, &raw mut attr);
    assert!(!parent.is_null(), "errno {}", errno());
    assert_eq!(dealloc_td(rig.context, td), libc::EBUSY);
    assert_eq!(ibv_dealloc_pd(rig.pd), libc::EBUSY);
    // What is made in one goes with what is made in the other.
    let [one, two] = Rig { pd: parent, ..rig }.pair(RC);
    let (rkey, remote) = rig.remote(64);
    assert_eq!(move_8(&rig, one, WRITE, rkey, remote), 0);
    destroy(&[one, two]);
    assert_eq!(ibv_dealloc_pd(parent), 0);
    assert_eq!(dealloc_td(rig.context, td), 0);
    for (pd, td, mask) in [(nowhere(), none(), 0), (rig.pd, nowhere(), 0), (rig.pd, none(), 4)] {
        let mut attr = IbvParentDomainInitAttr { pd, td, comp_mask: mask, ..attr };
        assert!(alloc_parent_domain(rig.context, rig.context, &raw mut attr).is_null());
        assert_eq!(errno(), libc::EINVAL);
    }
    rig.close();
}

#[test]
fn what_a_context_has_is_imported_by_its_handle() {
    let rig = Rig::new();
    let dm = device_memory(&rig, 64);
    // SAFETY: the descriptor is open.
    let fd = unsafe { libc::dup(read(rig.context).cmd_fd) };
    let context = ibv_import_device(fd);
    assert!(!context.is_null(), "errno {}", errno());
    let pd = ibv_import_pd(context, read(rig.pd).handle);
    let mr = ibv_import_mr(pd, read(rig.mr).handle);
    let second = ibv_import_dm(context, read(dm).handle);
    assert!(!pd.is_null() && !mr.is_null() && !second.is_null(), "errno {}", errno());
    assert_eq!((read(mr).lkey, read(mr).rkey), (read(rig.mr).lkey, read(rig.mr).rkey));
    assert_eq!(copy_in(dm, 0, b"once"), 0);
    let mut bytes = [0; 4];
    assert_eq!(copy_out(second, 0, &mut bytes), 0);
    assert_eq!(&bytes, b"once");
    // An import keeps what it is of.
    assert_eq!(ibv_dealloc_pd(rig.pd), libc::EBUSY);
    assert_eq!(free_dm(rig.context, dm), libc::EBUSY);
    let [one, two] = Rig { context, pd, ..rig }.pair(RC);
    let (rkey, remote) = rig.remote(64);
    assert_eq!(move_8(&rig, one, WRITE, rkey, remote), 0);
    destroy(&[one, two]);

    assert!(ibv_import_pd(context, 0).is_null());
    assert_eq!(errno(), libc::ENOENT);
    assert!(ibv_import_mr(pd, 0).is_null() && ibv_import_dm(context, 0).is_null());
    assert_eq!(errno(), libc::ENOENT);
    assert!(ibv_import_device(-1).is_null());
    assert_eq!(errno(), libc::EBADF);
    assert!(ibv_import_device(0).is_null());
    assert_eq!(errno(), libc::EINVAL);

    ibv_unimport_dm(second);
    ibv_unimport_mr(mr);
    ibv_unimport_pd(pd);
    assert_eq!(ibv_close_device(context), 0);
    assert_eq!(free_dm(rig.context, dm), 0);
    // SAFETY: the duplicate is open, and this test's.
    assert_eq!(unsafe { libc::close(fd) }, 0);
    rig.close();
}

/// There are none: the inline functions say so where a function is missing.
#[test]
fn counters_and_flows_are_not_supported() {
    let context = open();
    let all = extended(context);
    assert!(all.create_counters.is_none() && all.destroy_counters.is_none());
    assert!(all.read_counters.is_none() && all.ibv_create_flow.is_none());
    assert_eq!(ibv_close_device(context), 0);
}
