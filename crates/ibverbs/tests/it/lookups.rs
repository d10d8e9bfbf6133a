//! Pointers and handles that are wrong.

use std::ptr;

use ibverbs::layout::*;

use super::library::*;
use super::pair::*;

#[test]
fn null_garbled_and_freed_pointers_are_refused() {
    let rig = Rig::new();
    let (qp, pd) = (rig.qp(RC), ibv_alloc_pd(rig.context));
    assert_eq!(ibv_destroy_qp(qp), 0);
    assert_eq!(ibv_dealloc_pd(pd), 0);
    let mut attr = IbvQpAttr::zero();
    for qp in [ptr::null_mut(), nowhere(), qp, qp.wrapping_byte_add(8)] {
        assert_eq!(ibv_destroy_qp(qp), libc::EINVAL);
        assert_eq!(ibv_modify_qp(qp, &raw mut attr, 1), libc::EINVAL);
    }
    for pd in [ptr::null_mut(), nowhere(), pd, rig.cq.cast()] {
        assert_eq!(ibv_dealloc_pd(pd), libc::EINVAL);
        assert!(ibv_reg_mr(pd, rig.buffer.cast(), 8, 0).is_null());
        assert_eq!(errno(), libc::EINVAL);
    }
    for context in [ptr::null_mut(), nowhere()] {
        assert!(ibv_alloc_pd(context).is_null());
        assert_eq!(ibv_close_device(context), libc::EINVAL);
    }
    assert!(ibv_create_qp(rig.pd, ptr::null_mut()).is_null());
    let mut init = rig.init(RC);
    init.send_cq = nowhere();
    assert!(ibv_create_qp(rig.pd, &raw mut init).is_null());
    assert_eq!(errno(), libc::EINVAL);
    rig.close();
}

#[test]
fn a_handle_that_the_program_changed_finds_nothing() {
    let rig = Rig::new();
    let qp = rig.qp(RC);
    let mut attr = IbvQpAttr::zero();
    // SAFETY: the objects live; this is what a broken program does.
    unsafe { (*qp).handle ^= 0xdead };
    assert_eq!(ibv_modify_qp(qp, &raw mut attr, 1), libc::EINVAL);
    assert_eq!(ibv_destroy_qp(qp), libc::ENOENT);
    // SAFETY: likewise.
    unsafe { (*qp).handle ^= 0xdead };
    assert_eq!(ibv_destroy_qp(qp), 0);
    // SAFETY: likewise.
    unsafe { (*rig.mr).handle += 1 };
    assert_eq!(ibv_dereg_mr(rig.mr), libc::ENOENT);
    // SAFETY: likewise.
    unsafe { (*rig.mr).handle -= 1 };
    rig.close();
}

// Linux include/rdma/ib_verbs.h, IB_GRH_FLOWLABEL_MASK. UCX sets all 32 bits.
#[test]
fn a_flow_label_is_its_lower_20_bits() {
    let rig = Rig::new();
    let mut way = rig.way();
    way.grh.flow_label = u32::MAX;
    let ah = ibv_create_ah(rig.pd, &raw mut way);
    assert!(!ah.is_null(), "errno {}", errno());
    assert_eq!(ibv_destroy_ah(ah), 0);
    rig.close();
}
