use std::ffi::CStr;
use std::ptr;

use ibverbs::layout::*;

use super::library::*;
use super::pair::*;

#[test]
fn there_is_one_device_and_its_guid_is_known_before_it_is_open() {
    let mut count = 0;
    let list = ibv_get_device_list(&raw mut count);
    assert_eq!(count, 1);
    let (device, end) = (read(list), read(list.wrapping_add(1)));
    assert!(end.is_null());
    // SAFETY: a C string of the library's.
    let name = unsafe { CStr::from_ptr(ibv_get_device_name(device)) };
    assert_eq!(name, c"urxe0");
    let context = open();
    let mut attr = IbvDeviceAttr::zero();
    assert_eq!(ibv_query_device(context, &raw mut attr), 0);
    assert_eq!(attr.node_guid, ibv_get_device_guid(device).to_ne_bytes());
    assert_eq!(attr.phys_port_cnt, 1);
    ibv_free_device_list(list);
    assert_eq!(ibv_close_device(context), 0);
}

#[test]
fn the_first_gid_is_an_address_of_loopback_the_same_for_all_openings() {
    let (first, second) = (Rig::new(), Rig::new());
    assert_eq!(first.gid().0[..13], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127]);
    assert_eq!(first.gid(), second.gid());
    first.close();
    second.close();
}

#[test]
fn an_old_program_gets_as_much_of_a_port_as_it_has_room_for() {
    let context = open();
    let extended = context.cast::<u8>().wrapping_sub(std::mem::offset_of!(VerbsContext, context));
    let query = read(extended.cast::<VerbsContext>()).query_port.unwrap();
    for size in [48, 52, 56, 64] {
        let mut room = [0xee_u8; 72];
        // SAFETY: room for `size` bytes, aligned as the struct is or not: bytes are copied.
        assert_eq!(unsafe { query(context, 1, room.as_mut_ptr().cast(), size) }, 0);
        assert_eq!(room[0], 4, "active");
        assert!(room[size..].iter().all(|&byte| byte == 0xee), "{size} bytes and no more");
    }
    // SAFETY: no room is needed for an error.
    assert_eq!(unsafe { query(context, 2, ptr::null_mut(), 48) }, libc::EINVAL);
    assert_eq!(ibv_close_device(context), 0);
}

#[test]
fn objects_in_use_are_busy() {
    let rig = Rig::new();
    let qp = rig.qp(RC);
    assert_eq!(ibv_dealloc_pd(rig.pd), libc::EBUSY);
    assert_eq!(ibv_destroy_cq(rig.cq), libc::EBUSY);
    assert_eq!(ibv_destroy_comp_channel(rig.channel), libc::EBUSY);
    assert_eq!(ibv_destroy_qp(qp), 0);
    rig.close();
}

#[test]
fn memory_that_is_not_there_is_refused() {
    let rig = Rig::new();
    assert!(ibv_reg_mr(rig.pd, nowhere(), 64, ALL).is_null());
    assert_eq!(errno(), libc::EFAULT);
    // LOCAL_WRITE on constants; reading them is fine.
    let text = "constant".as_ptr().cast_mut();
    assert!(ibv_reg_mr(rig.pd, text.cast(), 8, 1).is_null());
    assert_eq!(errno(), libc::EFAULT);
    let mr = ibv_reg_mr(rig.pd, text.cast(), 8, 0);
    assert_eq!(ibv_dereg_mr(mr), 0);
    // REMOTE_WRITE without LOCAL_WRITE; a flag that nobody has.
    for access in [2, 1 << 15] {
        assert!(ibv_reg_mr(rig.pd, rig.buffer.cast(), 64, access).is_null());
        assert_eq!(errno(), libc::EINVAL);
    }
    rig.close();
}
