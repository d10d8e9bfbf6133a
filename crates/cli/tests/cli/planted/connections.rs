//! Faults in the order of packets, and in what is answered when. PSNs of the pinging side's five
//! SENDs are 1610473 to 1610476, and so on, up to 1610492; their ACKs are frames 5, 15 and so on.

use urxe_lint::Rule;
use urxe_wire::{Aeth, Ext, NakCode, Opcode, Psn, Qpn, Reth, RnrTimer, Syndrome};

use super::Plant;
use super::packets::{NEXT, pingpong};
use super::tape::{ACK, Made, Tape};

const SEQUENCE: Syndrome = Syndrome::Nak(NakCode::PsnSequence);
const INVALID: Syndrome = Syndrome::Nak(NakCode::InvalidRequest);

fn reads() -> Tape {
    Tape::golden("read_bw")
}

fn atomics() -> Tape {
    Tape::golden("atomic_faa")
}

/// The second packet is lost: a NAK in frame 4 names it, and the requester goes back.
fn lost() -> Tape {
    let mut tape = pingpong();
    tape.answer(5, 4, 1_610_474, 0, SEQUENCE);
    for (n, after) in [(2, 5), (3, 6), (4, 7)] {
        tape.resend(n, after);
    }
    tape.remove(2);
    tape
}

const fn plant(rule: Rule, healthy: fn() -> Tape, frame: usize, fault: fn(&mut Tape)) -> Plant {
    Plant { rule, healthy, fault, frame, also: &[] }
}

const fn with(plant: Plant, also: &'static [(Rule, usize)]) -> Plant {
    Plant { also, ..plant }
}

/// A SEND of one packet, on the way of frame `n`, behind frame `after`, `micros` later.
fn send(tape: &mut Tape, n: usize, after: usize, psn: Psn, micros: u64) {
    tape.add(n, after, Made { ack_req: true, ..Made::new("RC_SEND_ONLY", psn) });
    let then = tape.micros(after) + micros;
    tape.set_micros(after + 1, then);
}

/// The other side gets nothing but answers for two seconds.
fn unanswered(tape: &mut Tape) {
    send(tape, 41, 50, NEXT, 10);
    send(tape, 46, 51, Psn::new(8_525_407), 1_500_000);
    tape.answer(50, 52, 8_525_407, 6, ACK);
    send(tape, 46, 53, Psn::new(8_525_408), 300_000);
    tape.answer(50, 54, 8_525_408, 7, ACK);
}

/// Packets to other QPs: one flow each.
fn to_qps(tape: &mut Tape, qpns: std::ops::Range<u32>) {
    for qpn in qpns {
        let end = tape.len();
        send(tape, 41, end, Psn::new(100), 1);
        tape.packet(end + 1, |p| p.roce.bth.dest_qp = Qpn::new(qpn));
    }
}

fn answer_from_nowhere(tape: &mut Tape) {
    let end = tape.len();
    tape.answer(45, end, 100, 1, ACK);
    tape.packet(end + 1, |p| p.roce.bth.dest_qp = Qpn::new(0x98));
}

/// The second packet of the last SEND comes late: it is acknowledged soon after a NAK for it.
pub(super) fn late() -> Tape {
    let mut tape = pingpong();
    tape.answer(5, 44, 1_610_490, 4, SEQUENCE);
    tape
}

/// A capture that begins with a packet of the second SEND; then comes the first one, but for a NAK
/// in order.
pub(super) fn disordered() -> Tape {
    let mut tape = pingpong();
    tape.answer(5, 4, 1_610_474, 0, SEQUENCE);
    tape.pick(&[12, 1, 5, 2, 3, 4, 6]);
    tape
}

/// A SEND and a READ; the SEND comes again, whether or not the READ was answered by then.
pub(super) fn duplicate_before_a_read(answered: bool) -> Tape {
    let mut tape = pingpong();
    send(&mut tape, 41, 50, NEXT, 10);
    tape.answer(45, 51, NEXT.value(), 6, ACK);
    let reth = Reth { va: 0, rkey: 1, dma_len: 4 };
    let (ask, psn) = (Ext { reth: Some(reth), ..Ext::NONE }, NEXT.next());
    let made = Made { ext: ask, ack_req: true, ..Made::new("RC_RDMA_READ_REQUEST", psn) };
    tape.add(41, 52, made);
    if answered {
        let aeth = Ext { aeth: Some(Aeth::new(ACK, Psn::new(7))), ..Ext::NONE };
        let made = Made::new("RC_RDMA_READ_RESPONSE_ONLY", psn);
        tape.add(45, 53, Made { ext: aeth, payload: &[1; 4], ..made });
    }
    let end = tape.len();
    tape.resend(51, end);
    tape.answer(45, end + 1, NEXT.value(), 7, ACK);
    tape
}

pub(super) const PLANTS: &[Plant] = &[
    plant(Rule::Loss, pingpong, 2, |t| {
        t.copy(2, 4);
        t.remove(2);
    }),
    plant(Rule::GapAcked, pingpong, 4, |t| t.remove(2)),
    plant(Rule::Restart, pingpong, 51, |t| send(t, 41, 50, NEXT.add(1 << 20), 1)),
    with(
        plant(Rule::ResendDiffers, pingpong, 5, |t| {
            t.resend(4, 4);
            t.packet(5, |p| p.roce.payload = &p.roce.payload[..1020]);
        }),
        &[(Rule::Duplicate, 5)],
    ),
    with(
        plant(Rule::ResendEarly, pingpong, 5, |t| {
            let end = t.micros(4);
            for n in 1..=4 {
                t.set_micros(n, end - 4 + n as u64);
            }
            t.resend(1, 4);
            t.resend(2, 5);
        }),
        &[(Rule::Duplicate, 5)],
    ),
    plant(Rule::Duplicate, pingpong, 5, |t| t.copy(4, 4)),
    plant(Rule::ResponseAhead, pingpong, 15, |t| {
        t.packet(15, |p| p.roce.bth.psn = Psn::new(1_610_580));
    }),
    plant(Rule::AckBackward, pingpong, 16, |t| t.answer(5, 15, 1_610_476, 2, ACK)),
    plant(Rule::NakPsn, pingpong, 16, |t| t.answer(5, 15, 1_610_476, 2, SEQUENCE)),
    with(
        plant(Rule::NakAgain, lost, 5, |t| t.copy(4, 4)),
        // The gap, and what is sent again though it was not lost.
        &[(Rule::Loss, 2), (Rule::Duplicate, 7)],
    ),
    // The requester sends on before all is acknowledged.
    plant(Rule::NakIgnored, pingpong, 46, |t| t.answer(5, 43, 1_610_490, 4, SEQUENCE)),
    plant(Rule::FatalAcked, pingpong, 46, |t| t.answer(5, 44, 1_610_492, 4, INVALID)),
    with(
        plant(Rule::RnrEarly, pingpong, 6, |t| {
            // The longest there is, 655.36 ms.
            t.answer(5, 4, 1_610_473, 0, Syndrome::RnrNak(RnrTimer::from_syndrome(0)));
            for n in 1..=4 {
                t.resend(n, 4 + n);
            }
        }),
        &[(Rule::Duplicate, 6)],
    ),
    plant(Rule::Msn, pingpong, 45, |t| {
        t.packet(45, |p| p.roce.ext.aeth.as_mut().unwrap().msn = Psn::new(6));
    }),
    plant(Rule::AnswerKind, atomics, 10, |t| t.answer(2, 9, 15_504_702, 5, ACK)),
    plant(Rule::ReadPosition, reads, 16, |t| {
        let last = Opcode::from_name("RC_RDMA_READ_RESPONSE_LAST").unwrap();
        t.packet(16, |p| p.roce.bth.opcode = last);
    }),
    plant(Rule::ReadLength, reads, 55, |t| {
        t.packet(55, |p| p.roce.payload = &p.roce.payload[4..]);
    }),
    with(
        plant(Rule::ReadResume, reads, 16, |t| {
            t.resend(15, 15);
            t.packet(16, |p| p.roce.ext.reth.as_mut().unwrap().va += 8);
        }),
        &[(Rule::Duplicate, 16)],
    ),
    plant(Rule::ResponseLoss, reads, 18, |t| t.remove(18)),
    plant(Rule::Unanswered, pingpong, 51, unanswered),
    plant(Rule::Pairing, pingpong, 53, |t| {
        to_qps(t, 0x99..0x9b);
        answer_from_nowhere(t);
    }),
    plant(Rule::Unpaired, pingpong, 51, answer_from_nowhere),
    // Two flows are there, 4096 are kept.
    plant(Rule::Overflow, pingpong, 50 + 4095, |t| to_qps(t, 0x1000..0x1000 + 4095)),
];
