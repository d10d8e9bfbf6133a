//! `ibv_cq_ex`: completions read field by field.

use std::ptr;

use ibverbs::layout::*;

use super::inline::*;
use super::library::*;
use super::pair::*;

const WRITE: i32 = 0;
const SEND_IMM: i32 = 3;

/// The host's monotonic clock, as the device tells it, ns.
fn clock(rig: &Rig) -> u64 {
    let mut values = IbvValuesEx { comp_mask: 1, ..IbvValuesEx::zero() };
    assert_eq!(query_rt_values(rig.context, rig.context, &raw mut values), 0);
    let libc::timespec { tv_sec, tv_nsec } = values.raw_clock;
    u64::try_from(tv_sec * 1_000_000_000 + tv_nsec).unwrap()
}

fn wall() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

/// Two QPs whose completions come to a CQ that is read field by field.
fn pair(rig: &Rig, cq: CqEx, qp_type: i32) -> [*mut IbvQp; 2] {
    let mut init = rig.init(qp_type);
    (init.send_cq, init.recv_cq) = (cq.0.cast(), cq.0.cast());
    let pair = [(); 2].map(|()| ibv_create_qp(rig.pd, &raw mut init));
    rig.connect(pair[0], pair[1]);
    rig.connect(pair[1], pair[0]);
    pair
}

#[test]
fn each_field_is_read() {
    let rig = Rig::new();
    let cq = rig.cq_ex();
    let [one, two] = pair(&rig, cq, UD);
    assert_eq!(cq.start(none()), libc::ENOENT, "none waits");
    let mut way = rig.way();
    let ah = ibv_create_ah(rig.pd, &raw mut way);
    assert_eq!(post_recv(two, 7, &mut [rig.sge(100, 100)]), 0);
    let wr = WrTarget { ud: WrUd { ah, remote_qpn: read(two).qp_num, remote_qkey: 0x1234 } };
    let mut hello = [rig.sge(0, 8)];
    let imm_data = 0xcafe_u32.to_be();
    let mut wrs = [IbvSendWr { wr, imm_data, ..send_wr(1, SEND_IMM, &mut hello) }];
    assert_eq!(post_send(one, &mut wrs), (0, None));
    let (mut sent, mut received) = (false, false);
    while !(sent && received) {
        let mut more = cq.start(none()) == 0;
        while more {
            let now = read(cq.0);
            assert_eq!(now.status, 0);
            match now.wr_id {
                1 => sent = cq.opcode() == 0 && cq.qp_num() == read(one).qp_num,
                _ => {
                    // IBV_WC_RECV; IBV_WC_GRH and _WITH_IMM; 40 bytes of GRH.
                    assert_eq!((now.wr_id, cq.opcode(), cq.wc_flags()), (7, 128, 3));
                    assert_eq!((cq.byte_len(), u32::from_be(cq.imm_data())), (48, 0xcafe));
                    assert_eq!(cq.qp_num(), read(two).qp_num);
                    assert_eq!(cq.src_qp(), read(one).qp_num);
                    assert_eq!((cq.slid(), cq.sl(), cq.dlid_path_bits()), (0, 0, 0));
                    assert_eq!((cq.vendor_err(), cq.cvlan(), cq.flow_tag()), (0, 0, 0));
                    received = true;
                }
            }
            let next = cq.next();
            assert!(next == 0 || next == libc::ENOENT, "{next}");
            more = next == 0;
            if !more {
                cq.end();
            }
        }
    }
    assert_eq!(cq.qp_num(), 0, "there is none to be read of");
    let mut unknown = 1;
    assert_eq!(cq.start(&raw mut unknown), libc::EINVAL);
    assert_eq!(ibv_destroy_ah(ah), 0);
    destroy(&[one, two]);
    assert_eq!(ibv_destroy_cq(cq.0.cast()), 0);
    rig.close();
}

#[test]
fn the_time_is_that_of_the_completion_and_not_of_its_reading() {
    let rig = Rig::new();
    let cq = rig.cq_ex();
    let [one, two] = pair(&rig, cq, RC);
    let (before, wall_before) = (clock(&rig), wall());
    notify(cq.0.cast());
    let mut hello = [rig.sge(0, 5)];
    let (rkey, remote_addr) = rig.remote(100);
    let wr = WrTarget { rdma: WrRdma { remote_addr, rkey } };
    let mut wrs = [IbvSendWr { wr, ..send_wr(1, WRITE, &mut hello) }];
    assert_eq!(post_send(one, &mut wrs), (0, None));
    let (mut told, mut of) = (ptr::null_mut(), ptr::null_mut());
    assert_eq!(ibv_get_cq_event(rig.channel, &raw mut told, &raw mut of), 0);
    // Now it is there.
    let (after, wall_after) = (clock(&rig), wall());
    assert_eq!(cq.start(none()), 0);
    let (time, wall_time) = (cq.completion_ts(), cq.wallclock_ns());
    assert!((before..=after).contains(&time), "{before} to {after}: {time}");
    // The two clocks are not read at once, and the host may set one of them.
    let slack = 1_000_000_000;
    let range = wall_before - slack..=wall_after + slack;
    assert!(range.contains(&wall_time), "{range:?}: {wall_time}");
    assert_eq!(cq.completion_ts(), time, "it stays");
    cq.end();
    ibv_ack_cq_events(told, 1);
    destroy(&[one, two]);
    assert_eq!(ibv_destroy_cq(cq.0.cast()), 0);
    rig.close();
}

#[test]
fn a_failure_has_its_status_and_a_cause() {
    const REM_ACCESS_ERR: i32 = 10;
    let rig = Rig::new();
    let cq = rig.cq_ex();
    let [one, two] = pair(&rig, cq, RC);
    let mut hello = [rig.sge(0, 5)];
    let (rkey, remote_addr) = rig.remote(100);
    let wr = WrTarget { rdma: WrRdma { remote_addr, rkey: rkey ^ 0xff } };
    let mut wrs = [IbvSendWr { wr, ..send_wr(1, WRITE, &mut hello) }];
    assert_eq!(post_send(one, &mut wrs), (0, None));
    while cq.start(none()) != 0 {
        std::thread::yield_now();
    }
    assert_eq!((read(cq.0).status, read(cq.0).wr_id), (REM_ACCESS_ERR, 1));
    assert_ne!(cq.vendor_err(), 0);
    cq.end();
    destroy(&[one, two]);
    assert_eq!(ibv_destroy_cq(cq.0.cast()), 0);
    // What is not known is refused.
    let mut init = IbvCqInitAttrEx { cqe: 4, wc_flags: 1 << 11, ..IbvCqInitAttrEx::zero() };
    for (mask, flags) in [(0, 0), (4, 0), (1, 4)] {
        (init.comp_mask, init.flags) = (mask, flags);
        init.wc_flags = if mask == 0 { 1 << 12 } else { 0 };
        assert!(create_cq_ex(rig.context, rig.context, &raw mut init).is_null());
        assert_eq!(errno(), libc::EOPNOTSUPP, "{mask} {flags}");
    }
    rig.close();
}
