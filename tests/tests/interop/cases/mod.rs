//! What is tried, as a table.

use urxe_lint::Rule;

use crate::bench::Bench;
use crate::node::Spec;

mod connections;
pub mod errors;
pub mod faults;
pub mod forged;
pub mod reliable;
mod tools;
mod unreliable;
mod wide;

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Case {
    pub group: &'static str,
    pub name: &'static str,
    pub run: fn(&mut Bench),
    /// The link loses, doubles, reorders or changes packets.
    pub faulty: bool,
    /// The rules that are broken on purpose, or by the link, as `urxe lint` finds.
    pub excused: &'static [Rule],
}

const fn case(group: &'static str, name: &'static str, run: fn(&mut Bench)) -> Case {
    Case { group, name, run, faulty: false, excused: &[] }
}

const fn faulty(name: &'static str, run: fn(&mut Bench)) -> Case {
    Case { faulty: true, ..case("recovered", name, run) }
}

/// On a link that reorders, who sent what before what is not to be seen.
const fn disorderly(name: &'static str, run: fn(&mut Bench)) -> Case {
    Case { excused: Rule::ALL, ..faulty(name, run) }
}

pub const CASES: &[Case] = &[
    case("RC", "SEND, with and without immediate", reliable::send),
    case("RC", "SEND with invalidate", reliable::send_invalidate),
    case("RC", "WRITE, with and without immediate", reliable::write),
    case("RC", "READ", reliable::read),
    case("RC", "CMP_SWAP, FETCH_ADD", reliable::atomics),
    case("RC", "FLUSH", reliable::flush),
    case("RC", "ATOMIC WRITE", reliable::atomic_write),
    case("RC", "several SGEs, inline data", reliable::pieces),
    case("RC", "requests without completions, fences", reliable::quiet),
    case("RC", "memory windows", reliable::windows),
    case("RC", "MTU 256 to 4096", wide::mtus),
    case("RC", "PSNs across the wrap", wide::wrap),
    case("RC", "READs and atomics 16 deep", wide::deep),
    case("RC", "48 QPs at once", wide::many),
    case("RC", "8 QPs on one SRQ", wide::shared),
    case("UC", "SEND, with and without immediate", unreliable::send),
    case("UC", "WRITE, with and without immediate", unreliable::write),
    case("UD", "SEND, with and without immediate; the GRH", unreliable::unicast),
    case("UD", "multicast", unreliable::multicast),
    case("refused", "wrong rkey", errors::keys),
    case("refused", "outside the region", errors::ranges),
    case("refused", "a right that the region lacks", errors::rights),
    case("refused", "a region of another PD", errors::domains),
    case("refused", "a right that the QP lacks", errors::qp_rights),
    case("refused", "an atomic out of alignment", errors::misaligned),
    case("refused", "a SEND longer than its receive", errors::too_long),
    case("refused", "a receive with a bad key", errors::bad_receive),
    case("refused", "no receive in time: RNR retries exhausted", errors::no_receive),
    case("refused", "a peer that is gone: retries exhausted", errors::gone),
    case("refused", "other connections go on", errors::others),
    case("recovered", "a receive that comes late: RNR NAK, then done", errors::late_receive),
    Case {
        // The NAK answers what cannot be read.
        excused: &[Rule::Opcode, Rule::ResponseAhead],
        ..case("refused", "an opcode that nobody has defined", forged::unknown_opcode)
    },
    case("recovered", "SEND, WRITE, FETCH_ADD that come again, late", forged::late_duplicate),
    faulty("loss 1 %", faults::loss_1),
    faulty("loss 10 %", faults::loss_10),
    faulty("duplication 1 %", faults::duplicate_1),
    faulty("duplication 10 %", faults::duplicate_10),
    disorderly("reordering 1 %", faults::reorder_1),
    disorderly("reordering 10 %", faults::reorder_10),
    faulty("corruption 1 %", faults::corrupt_1),
    faulty("corruption 10 %", faults::corrupt_10),
    disorderly("loss, duplication, corruption 3 % each, jitter", faults::mixed),
    case("tools", "ibv_rc_pingpong with urxe pingpong", tools::rc),
    case("tools", "ibv_uc_pingpong with urxe pingpong", tools::uc),
    case("tools", "ibv_ud_pingpong with urxe pingpong", tools::ud),
    case("connections", "ucmatose, 4 at once, 10 messages each way", connections::ucmatose),
    case("connections", "udaddy", connections::udaddy),
    case("connections", "rping", connections::rping),
    case("connections", "ucmatose, loss 5 %", connections::ucmatose_lossy),
    case("connections", "rping, loss 5 %", connections::rping_lossy),
];

/// The lab's own: waits for a guest that dies.
pub const DEATH: Case = case("lab", "a guest that dies is noticed", death);

fn death(bench: &mut Bench) {
    let p = bench.pair(&Spec::default());
    bench.b.destroy(p.qb);
    // With oops=panic or without: sysrq's crash is a panic.
    bench.guest.begin("exec echo c > /proc/sysrq-trigger").unwrap();
    // Nothing will ever complete.
    bench.a.next();
}
