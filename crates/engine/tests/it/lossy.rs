//! All operations mixed, on links that lose at random both ways: each is done once and told once,
//! in order.

use urxe_engine::{QpKind, SendFlags, SendOp, SendWr};
use urxe_wire::{Mtu, Psn, RnrTimer};

use crate::lab::{BASE, Pair};
use crate::script::OK;

/// A sequence that looks random and is the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % sides
    }
}

/// Where the peer's counter, the bytes written, read and sent are.
const COUNTER: u64 = BASE + 60_000;
const WRITTEN: u64 = 0;
const SENT: u64 = 20_000;
const READ_BACK: u64 = 40_000;
const MESSAGES: u64 = 60;

/// Posts request `wr_id`; gives whether it is an atomic, and the bytes a SEND carries.
fn post(p: &mut Pair, qp: urxe_engine::QpId, wr_id: u64, dice: &mut Dice) -> (bool, Option<u32>) {
    let rkey = p.b.mr.rkey;
    let length = u32::try_from(dice.roll(3000)).unwrap();
    let remote = BASE + WRITTEN;
    let (what, local, length) = match dice.roll(5) {
        0 | 1 => (SendOp::Send { imm: None }, 0, length),
        2 => (SendOp::Write { remote, rkey, imm: None }, 0, length),
        3 => (SendOp::Read { remote, rkey }, READ_BACK, length),
        _ => (SendOp::FetchAdd { remote: COUNTER, rkey, add: 1 }, 59_000, 8),
    };
    let mut flags = SendFlags::SIGNALED;
    flags.set(SendFlags::FENCE, dice.roll(4) == 0);
    let sges = [p.a.sge(local, length)];
    p.a.send(qp, &SendWr { flags, ..SendWr::new(wr_id, what, &sges) });
    let send = matches!(what, SendOp::Send { .. }).then_some(length);
    (matches!(what, SendOp::FetchAdd { .. }), send)
}

fn run(seed: u64, loss: u64) {
    let mut dice = Dice(seed);
    let mut p = Pair::new();
    let (qa, qb) = p.connect_as(QpKind::Rc, |_, attr| {
        attr.path_mtu = Mtu::B256;
        attr.sq_psn = Psn::new(0xff_ffd0);
        attr.min_rnr_timer = RnrTimer::new(1).unwrap();
    });
    let mut chance = Dice(seed ^ 0x5555);
    p.lose = Box::new(move |_, _| chance.roll(100) < loss);
    let data: Vec<u8> = (0..3000_u32).map(|i| (i % 241).to_le_bytes()[0]).collect();
    p.a.buffer.write(0, &data).unwrap();
    let (mut atomics, mut sends, mut done, mut got) = (0_u64, Vec::new(), Vec::new(), Vec::new());
    for wr_id in 0..MESSAGES {
        let (atomic, send) = post(&mut p, qa, wr_id, &mut dice);
        atomics += u64::from(atomic);
        if let Some(length) = send {
            p.b.recv(qb, wr_id, SENT, 3000);
            sends.push((wr_id, length));
        }
        if dice.roll(3) == 0 {
            p.settle();
            done.extend(p.a.done());
            got.extend(p.b.completions().iter().map(|c| (c.wr_id, c.byte_len)));
        }
    }
    p.settle();
    done.extend(p.a.done());
    got.extend(p.b.completions().iter().map(|c| (c.wr_id, c.byte_len)));
    let wanted: Vec<_> = (0..MESSAGES).map(|wr_id| (wr_id, OK)).collect();
    assert_eq!(done, wanted, "seed {seed}, {loss} %");
    assert_eq!(got, sends, "seed {seed}, {loss} %");
    assert_eq!(p.b.bytes(60_000, 8), atomics.to_ne_bytes(), "seed {seed}, {loss} %");
    let longest = sends.iter().map(|&(_, len)| len).max().unwrap_or(0) as usize;
    assert_eq!(p.b.bytes(20_000, longest), data[..longest], "seed {seed}, {loss} %");
    assert!(!p.a.nic.timers_armed() && !p.b.nic.timers_armed());
}

#[test]
fn every_request_is_done_once_and_told_once_whatever_is_lost() {
    for seed in 0..60 {
        for loss in [0, 2, 10] {
            run(seed, loss);
        }
    }
}
