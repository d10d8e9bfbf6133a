//! What programs should not do: an errno, no crash.

use std::process::Command;
use std::ptr;

use ibverbs::layout::*;

use super::library::*;
use super::pair::*;

#[test]
fn null_garbled_and_freed_pointers_are_refused() {
    let rig = Rig::new(PS_TCP);
    let (gone, channel) = rig.client();
    finish((gone, channel));
    let mut event = ptr::null_mut();
    let mut addr = address(*rig.at.ip(), 1);
    let addr: *mut libc::sockaddr = (&raw mut addr).cast();
    let mut attr = IbvQpAttr::zero();
    let mut mask = 0;
    for id in [ptr::null_mut(), nowhere(), gone, rig.listener.wrapping_byte_add(8)] {
        for (call, done) in [
            ("destroy_id", rdma_destroy_id(id)),
            ("bind_addr", rdma_bind_addr(id, addr)),
            ("resolve_addr", rdma_resolve_addr(id, ptr::null_mut(), addr, 1)),
            ("resolve_route", rdma_resolve_route(id, 1)),
            ("listen", rdma_listen(id, 1)),
            ("connect", rdma_connect(id, ptr::null_mut())),
            ("accept", rdma_accept(id, ptr::null_mut())),
            ("reject", rdma_reject(id, ptr::null_mut(), 0)),
            ("disconnect", rdma_disconnect(id)),
            ("establish", rdma_establish(id)),
            ("notify", rdma_notify(id, 4)),
            ("migrate_id", rdma_migrate_id(id, ptr::null_mut())),
            ("create_qp", rdma_create_qp(id, ptr::null_mut(), ptr::null_mut())),
            ("init_qp_attr", rdma_init_qp_attr(id, &raw mut attr, &raw mut mask)),
            ("get_request", rdma_get_request(id, ptr::null_mut())),
            ("set_option", rdma_set_option(id, 0, 0, ptr::null_mut(), 0)),
            ("join_multicast", rdma_join_multicast(id, addr, ptr::null_mut())),
        ] {
            assert_eq!((call, done, errno()), (call, -1, libc::EINVAL));
        }
        assert_eq!((rdma_get_src_port(id), rdma_get_dst_port(id)), (0, 0));
        rdma_destroy_qp(id);
        rdma_destroy_ep(id);
    }
    for channel in [ptr::null_mut(), nowhere(), channel] {
        assert_eq!(rdma_get_cm_event(channel, &raw mut event), -1);
        assert_eq!(errno(), libc::EINVAL);
        rdma_destroy_event_channel(channel);
    }
    assert_eq!(rdma_get_cm_event(rig.channel, ptr::null_mut()), -1);
    assert_eq!(rdma_ack_cm_event(nowhere()), -1);
    assert_eq!(rdma_create_id(rig.channel, ptr::null_mut(), ptr::null_mut(), PS_TCP), -1);
    let mut made = ptr::null_mut();
    assert_eq!(rdma_create_id(rig.channel, &raw mut made, ptr::null_mut(), 7), -1);
    assert_eq!(errno(), libc::EINVAL);
    rig.close();
}

#[test]
fn calls_out_of_their_order_are_refused() {
    let rig = Rig::new(PS_TCP);
    let channel = rdma_create_event_channel();
    let one = id(channel, PS_TCP);
    let mut init = IbvQpInitAttr { qp_type: 2, ..IbvQpInitAttr::zero() };
    for done in [
        rdma_resolve_route(one, 1),
        rdma_connect(one, ptr::null_mut()),
        rdma_accept(one, ptr::null_mut()),
        rdma_disconnect(one),
        rdma_reject(one, ptr::null(), 0),
        rdma_establish(one),
        rdma_create_qp(one, ptr::null_mut(), &raw mut init),
    ] {
        assert_eq!((done, errno()), (-1, libc::EINVAL));
    }
    let mut addr = address(*rig.at.ip(), rig.at.port());
    assert_eq!(rdma_bind_addr(one, (&raw mut addr).cast()), -1);
    assert_eq!(errno(), libc::EADDRINUSE);
    let mut addr = address([192, 0, 2, 1].into(), 0);
    assert_eq!(rdma_bind_addr(one, (&raw mut addr).cast()), -1);
    assert_eq!(errno(), libc::EADDRNOTAVAIL);
    addr.sin_family = 1;
    assert_eq!(rdma_bind_addr(one, (&raw mut addr).cast()), -1);
    assert_eq!(errno(), libc::EAFNOSUPPORT);
    assert_eq!(rdma_listen(rig.listener, 1), -1, "it does already");
    assert_eq!(errno(), libc::EINVAL);
    finish((one, channel));
    rig.close();
}

#[test]
fn an_event_is_acknowledged_once() {
    let rig = Rig::new(PS_TCP);
    let (one, channel) = rig.client();
    assert_eq!(rdma_get_remote_ece(one, ptr::null_mut()), -1);
    let mut group = address([239, 1, 1, 1].into(), 0);
    assert_eq!(rdma_join_multicast(one, (&raw mut group).cast(), ptr::null_mut()), 0);
    let mut event = ptr::null_mut();
    assert_eq!(rdma_get_cm_event(channel, &raw mut event), 0);
    assert_eq!(rdma_ack_cm_event(event), 0);
    assert_eq!(rdma_ack_cm_event(event), -1);
    assert_eq!(errno(), libc::EINVAL);
    finish((one, channel));
    rig.close();
}

#[test]
fn private_data_that_is_too_long_is_refused() {
    let rig = Rig::new(PS_TCP);
    let client = rig.client();
    qp(client.0, 2);
    assert_eq!(rdma_connect(client.0, &mut param(&[7; 57])), -1);
    assert_eq!(errno(), libc::EINVAL);
    let mut none = RdmaConnParam { private_data: ptr::null(), ..param(b"x") };
    assert_eq!(rdma_connect(client.0, &raw mut none), -1);
    assert_eq!(rdma_connect(client.0, &mut param(&[7; 56])), 0, "errno {}", errno());
    let server = expect(rig.channel, CONNECT_REQUEST);
    assert_eq!(server.data, [7; 56]);
    assert_eq!(rdma_destroy_id(server.event.id), 0);
    assert_eq!(expect(client.1, REJECTED).event.status, 28);
    finish(client);
    rig.close();
}

#[test]
fn options_have_their_sizes_and_ranges() {
    let rig = Rig::new(PS_TCP);
    let (one, channel) = rig.client();
    let mut byte = 31_u8;
    let at: *mut u8 = &raw mut byte;
    assert_eq!(rdma_set_option(one, 0, 0, at.cast(), 1), 0, "TOS");
    assert_eq!(rdma_set_option(one, 0, 3, at.cast(), 1), 0, "ACK_TIMEOUT");
    byte = 32;
    let at: *mut u8 = &raw mut byte;
    assert_eq!(rdma_set_option(one, 0, 3, at.cast(), 1), -1);
    assert_eq!(errno(), libc::EINVAL);
    assert_eq!(rdma_set_option(one, 0, 0, at.cast(), 4), -1);
    assert_eq!(errno(), libc::EINVAL);
    assert_eq!(rdma_set_option(one, 7, 0, at.cast(), 1), -1);
    assert_eq!(errno(), libc::ENOSYS);
    finish((one, channel));
    rig.close();
}

#[test]
fn rsockets_are_not_there_and_say_so() {
    assert_eq!(rsocket(2, 1, 0), -1);
    assert_eq!(errno(), libc::ENOSYS);
    assert_eq!(rsend(0, ptr::null(), 0, 0), -1);
    assert_eq!(errno(), libc::ENOSYS);
}

/// Of our two libraries this one alone: with Debian's libibverbs.so.1, where that is installed, or
/// none.
#[test]
fn another_libibverbs_is_told_of_once() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("rdmacm-alone");
    std::fs::create_dir_all(&directory).unwrap();
    let _ = std::os::unix::fs::symlink(path("librdmacm.so"), directory.join("librdmacm.so.1"));
    let mut command = Command::new("rping");
    let command = command.args(["-c", "-a", "127.0.0.1"]).env("LD_LIBRARY_PATH", &directory);
    let Ok(out) = command.output() else { return };
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success());
    assert_eq!(text.matches("is not urxe's, or of another version of urxe").count(), 1, "{text}");
    assert!(text.contains("libibverbs.so.1") && text.contains("LD_LIBRARY_PATH"), "{text}");
}

#[test]
fn a_child_is_refused_its_parents_identifiers_and_makes_its_own() {
    // In a process of its own: other tests' threads would not be in the child.
    if std::env::var("URXE_TEST_ROLE").is_err() {
        let test = "misuse::a_child_is_refused_its_parents_identifiers_and_makes_its_own";
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let alone = alone.args(["--exact", test, "--nocapture"]).env("URXE_TEST_ROLE", "fork");
        assert!(alone.status().unwrap().success());
        return;
    }
    let rig = Rig::new(PS_TCP);
    let (one, channel) = rig.client();
    // SAFETY: the child ends without going back to the test.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let fine = std::panic::catch_unwind(|| {
            let mut event = ptr::null_mut();
            assert_eq!(rdma_connect(one, ptr::null_mut()), -1);
            assert_eq!(errno(), libc::EIO);
            assert_eq!(rdma_get_cm_event(channel, &raw mut event), -1);
            assert_eq!(errno(), libc::EIO);
            let own = Rig::new(PS_TCP);
            assert_ne!(own.at.ip(), rig.at.ip());
            finish(own.client());
            own.close();
            // The parent keeps what it has.
            assert_eq!(rdma_destroy_id(one), 0);
            rdma_destroy_event_channel(channel);
        });
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(fine.is_err())) };
    }
    let mut status = 0;
    // SAFETY: a child of ours; the status is ours to write.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "what the child saw");
    finish((one, channel));
    rig.close();
}
