//! XRC: domains that files name, shared receive queues of theirs, QPs that several openings share.

use std::ffi::c_int;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use ibverbs::layout::*;

use super::inline::*;
use super::library::*;
use super::pair::*;

const SEND: u64 = 1 << 2;
/// `enum ibv_qp_state`, `enum ibv_event_type`.
const INIT: c_int = 1;
const ERR: c_int = 6;
const QP_LAST_WQE_REACHED: c_int = 16;

fn domain(context: *mut IbvContext, fd: c_int, oflags: c_int) -> *mut IbvXrcd {
    // FD and OFLAGS.
    let mut init = IbvXrcdInitAttr { comp_mask: 3, fd, oflags };
    open_xrcd(context, context, &raw mut init)
}

fn target(context: *mut IbvContext, xrcd: *mut IbvXrcd) -> *mut IbvQp {
    // XRCD.
    let mut init =
        IbvQpInitAttrEx { qp_type: XRC_RECV, comp_mask: 2, xrcd, ..IbvQpInitAttrEx::zero() };
    create_qp_ex(context, context, &raw mut init)
}

fn opened(context: *mut IbvContext, xrcd: *mut IbvXrcd, qp_num: u32) -> *mut IbvQp {
    // NUM, XRCD, TYPE.
    let mut attr =
        IbvQpOpenAttr { comp_mask: 0xb, qp_num, xrcd, qp_type: XRC_RECV, ..IbvQpOpenAttr::zero() };
    open_qp(context, context, &raw mut attr)
}

/// An XRC SRQ of a domain, and its number.
fn srq(rig: &Rig, xrcd: *mut IbvXrcd) -> (*mut IbvSrq, u32) {
    let mut init = IbvSrqInitAttrEx {
        attr: IbvSrqAttr { max_wr: 8, max_sge: 1, srq_limit: 0 },
        // TYPE, PD, XRCD, CQ.
        comp_mask: 0xf,
        srq_type: 1,
        pd: rig.pd,
        xrcd,
        cq: rig.cq,
        ..IbvSrqInitAttrEx::zero()
    };
    let srq = create_srq_ex(rig.context, rig.context, &raw mut init);
    assert!(!srq.is_null(), "errno {}", errno());
    let mut number = 0;
    assert_eq!(get_srq_num(rig.context, srq, &raw mut number), 0);
    (srq, number)
}

fn post_srq(srq: *mut IbvSrq, wr_id: u64, mut sge: IbvSge) {
    let mut wr = IbvRecvWr { wr_id, next: none(), sg_list: &raw mut sge, num_sge: 1 };
    let mut bad = none();
    let post = read(read(srq).context).ops.post_srq_recv.unwrap();
    // SAFETY: as the inline function does.
    assert_eq!(unsafe { post(srq, &raw mut wr, &raw mut bad) }, 0);
}

fn file(name: &str) -> (PathBuf, File) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let file = File::create(&path).unwrap();
    (path, file)
}

#[test]
fn a_message_goes_to_the_srq_that_it_names() {
    let rig = Rig::new();
    let xrcd = domain(rig.context, -1, libc::O_CREAT);
    assert!(!xrcd.is_null(), "errno {}", errno());
    let srqs = [srq(&rig, xrcd), srq(&rig, xrcd)];
    let mut init = IbvQpInitAttrEx { recv_cq: none(), ..rig.init_ex(XRC_SEND, SEND) };
    let from = create_qp_ex(rig.context, rig.context, &raw mut init);
    let to = target(rig.context, xrcd);
    assert!(!from.is_null() && !to.is_null(), "errno {}", errno());
    rig.connect(from, to);
    rig.connect(to, from);
    for (at, (srq, _)) in srqs.iter().enumerate() {
        post_srq(*srq, 70 + at as u64, rig.sge(1024 + at * 64, 64));
    }
    let qp = QpEx::of(from);
    for (id, at) in [(1, 1), (2, 0)] {
        rig.fill(0, &[b'0' + u8::try_from(at).unwrap(); 4]);
        qp.start();
        qp.number(id).wr_send();
        qp.set_xrc_srqn(srqs[at].1);
        qp.set_sge(read(rig.mr).lkey, rig.sge(0, 0).addr, 4);
        assert_eq!(qp.complete(), 0);
        let done = rig.wait(2);
        let got = done.iter().find(|wc| wc.wr_id >= 70).unwrap();
        assert_eq!((got.wr_id, got.status, got.byte_len), (70 + at as u64, 0, 4));
        assert_eq!(got.qp_num, read(to).qp_num);
    }
    assert_eq!((rig.bytes(1024, 4), rig.bytes(1088, 4)), (b"0000".to_vec(), b"1111".to_vec()));
    assert_eq!(close_xrcd(rig.context, xrcd), libc::EBUSY);
    destroy(&[from, to]);
    srqs.iter().for_each(|(srq, _)| assert_eq!(ibv_destroy_srq(*srq), 0));
    assert_eq!(close_xrcd(rig.context, xrcd), 0);
    rig.close();
}

#[test]
fn a_file_names_one_domain_while_it_is_open() {
    let (one, two) = (open(), open());
    let (_, named) = file("xrc-a");
    let fd = named.as_raw_fd();
    assert!(domain(one, fd, 0).is_null(), "there is none yet");
    assert_eq!(errno(), libc::EINVAL);
    let first = domain(one, fd, libc::O_CREAT);
    let second = domain(two, fd, 0);
    assert!(!first.is_null() && !second.is_null(), "errno {}", errno());
    assert!(domain(two, fd, libc::O_CREAT | libc::O_EXCL).is_null());
    assert_eq!(errno(), libc::EINVAL);
    // They are one: a QP of the one is found in the other.
    let qp = target(one, first);
    let also = opened(two, second, read(qp).qp_num);
    assert!(!also.is_null(), "errno {}", errno());
    assert!(opened(two, second, read(qp).qp_num + 1).is_null());
    assert_eq!(errno(), libc::EINVAL);
    destroy(&[also, qp]);
    assert_eq!(close_xrcd(one, first), 0);
    // The first is gone; the file still names the second.
    let third = domain(one, fd, 0);
    assert!(!third.is_null(), "errno {}", errno());
    for xrcd in [second, third] {
        assert_eq!(close_xrcd(one, xrcd), 0);
    }
    assert!(domain(one, fd, 0).is_null(), "the domain went with its last opening");
    assert_eq!((ibv_close_device(one), ibv_close_device(two)), (0, 0));
}

/// Places in memory are used again; what a file names must not be found by where it stood.
#[test]
fn a_domain_that_takes_the_place_of_another_has_not_its_name() {
    let context = open();
    let (_, named) = file("xrc-b");
    let (_, other) = file("xrc-c");
    for _ in 0..3 {
        let first = domain(context, named.as_raw_fd(), libc::O_CREAT);
        assert_eq!(close_xrcd(context, first), 0);
        // Until one of another file stands where it stood.
        let mut all = Vec::new();
        while all.last() != Some(&first) {
            let xrcd = domain(context, other.as_raw_fd(), libc::O_CREAT);
            assert!(!xrcd.is_null(), "errno {}", errno());
            all.push(xrcd);
        }
        assert!(domain(context, named.as_raw_fd(), 0).is_null(), "another file's");
        assert_eq!(errno(), libc::EINVAL);
        all.into_iter().for_each(|xrcd| assert_eq!(close_xrcd(context, xrcd), 0));
    }
    assert_eq!(ibv_close_device(context), 0);
}

/// An inode's number is given out again; while a domain is of it, it is not.
#[test]
fn a_file_that_takes_the_place_of_another_names_no_domain() {
    let context = open();
    let (path, named) = file("xrc-d");
    let xrcd = domain(context, named.as_raw_fd(), libc::O_CREAT);
    assert!(!xrcd.is_null(), "errno {}", errno());
    drop(named);
    std::fs::remove_file(&path).unwrap();
    let new: Vec<_> = (0..64).map(|at| file(&format!("xrc-d-{at}"))).collect();
    for (path, new) in new {
        assert!(domain(context, new.as_raw_fd(), 0).is_null(), "{path:?} is another file");
        // The next run makes it anew.
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(close_xrcd(context, xrcd), 0);
    assert_eq!(ibv_close_device(context), 0);
}

fn set(qp: *mut IbvQp, qp_state: c_int, mask: c_int) {
    let mut attr = IbvQpAttr { qp_state, port_num: 1, ..IbvQpAttr::zero() };
    assert_eq!(ibv_modify_qp(qp, &raw mut attr, mask), 0);
}

/// Linux drivers/infiniband/core/verbs.c, __ib_shared_qp_event_handler: each QP that was opened
/// gets the events of the real one.
#[test]
fn all_that_opened_a_qp_hear_of_its_events() {
    let (one, two) = (open(), open());
    let (_, named) = file("xrc-e");
    let fd = named.as_raw_fd();
    let (first, second) = (domain(one, fd, libc::O_CREAT), domain(two, fd, 0));
    let made = target(one, first);
    let number = read(made).qp_num;
    let here = opened(one, first, number);
    let there = [opened(two, second, number), opened(two, second, number)];
    for context in [one, two] {
        let fd = read(context).async_fd;
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    }
    let told = |context| {
        let (mut all, mut event) = (Vec::new(), IbvAsyncEvent::zero());
        while ibv_get_async_event(context, &raw mut event) == 0 {
            assert_eq!(event.event_type, QP_LAST_WQE_REACHED);
            all.push(event.element);
            ibv_ack_async_event(&raw mut event);
        }
        assert_eq!(errno(), libc::EAGAIN);
        all.sort_unstable();
        all
    };
    let sorted = |qps: &[*mut IbvQp]| {
        let mut all: Vec<_> = qps.iter().map(|qp| qp.addr()).collect();
        all.sort_unstable();
        all
    };
    let fail = |qp| {
        set(qp, 0, 1);
        // STATE, PKEY_INDEX, PORT, ACCESS_FLAGS.
        set(qp, INIT, 0x39);
        set(qp, ERR, 1);
    };
    fail(made);
    assert_eq!(told(one), sorted(&[made, here]));
    assert_eq!(told(two), sorted(&there));
    // What waits of one that is destroyed goes with it, and the others' stays.
    fail(here);
    destroy(&[there[0], made]);
    assert_eq!(told(one), sorted(&[here]));
    assert_eq!(told(two), sorted(&[there[1]]));
    destroy(&[here]);
    fail(there[1]);
    assert!(told(one).is_empty());
    assert_eq!(told(two), sorted(&[there[1]]));
    destroy(&[there[1]]);
    assert_eq!(close_xrcd(one, first), 0);
    assert_eq!(close_xrcd(two, second), 0);
    assert_eq!((ibv_close_device(one), ibv_close_device(two)), (0, 0));
}
