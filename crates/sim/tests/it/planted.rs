//! The oracle can fail: for each invariant a bug is planted between engine and oracle, and found.

use std::collections::BTreeSet;
use std::time::Duration;

use urxe_engine::{AttrMask, Completion, Nic, Profile, QpAttr, QpState, WcOpcode, WcStatus};
use urxe_memory::{Access, Backing, Buffer};
use urxe_sim::{Interpose, Invariant, Run, Settings};
use urxe_wire::{LinkType, Operation, Packet, Qpn};

/// What is found over some seeds.
fn found(settings: &Settings, plant: impl Fn() -> Box<dyn Interpose>) -> BTreeSet<Invariant> {
    let run = |seed| Run::new(seed, settings.clone()).go_with(plant());
    (0..25).filter_map(|seed| run(seed).violation.map(|v| v.invariant)).collect()
}

fn calm() -> Settings {
    Settings { trouble: false, ..Settings::default() }
}

/// Changes completions.
struct Completions<F>(F);

impl<F: FnMut(&mut Vec<Completion>)> Interpose for Completions<F> {
    fn polled(&mut self, _: usize, completions: &mut Vec<Completion>) {
        self.0(completions);
    }
}

fn found_in_completions(plant: fn(&mut Vec<Completion>)) -> BTreeSet<Invariant> {
    found(&calm(), || Box::new(Completions(plant)))
}

#[test]
fn a_completion_told_twice_is_found() {
    let twice = |all: &mut Vec<Completion>| all.extend_from_within(..);
    assert!(found_in_completions(twice).contains(&Invariant::ExactlyOnce));
}

#[test]
fn a_completion_that_is_lost_is_found() {
    // Lost for good: what comes after it in its queue is out of order, or nothing comes.
    let all = found_in_completions(|all| {
        all.pop();
    });
    let either = [Invariant::ExactlyOnce, Invariant::Order, Invariant::Received];
    assert!(!all.is_empty() && all.iter().all(|i| either.contains(i)), "{all:?}");
    let receives = |all: &mut Vec<Completion>| all.retain(|c| c.opcode != WcOpcode::Recv);
    let lost = found_in_completions(receives);
    assert!(lost.contains(&Invariant::Received) || lost.contains(&Invariant::Order), "{lost:?}");
}

#[test]
fn completions_in_another_order_are_found() {
    assert!(found_in_completions(|all| all.reverse()).contains(&Invariant::Order));
}

#[test]
fn a_failure_without_a_cause_is_found() {
    for status in [WcStatus::RetryExcErr, WcStatus::RemAccessErr, WcStatus::WrFlushErr] {
        let fail = move |all: &mut Vec<Completion>| {
            for c in all.iter_mut().filter(|c| c.opcode == WcOpcode::RdmaWrite) {
                c.status = status;
            }
        };
        let all = found(&calm(), || Box::new(Completions(fail)));
        assert!(all.contains(&Invariant::Status), "{status:?}: {all:?}");
    }
}

#[test]
fn a_mistake_that_goes_well_is_found() {
    let forgive = |all: &mut Vec<Completion>| {
        for c in all {
            c.status = WcStatus::Success;
        }
    };
    let all = found(&Settings::default(), || Box::new(Completions(forgive)));
    assert!(all.contains(&Invariant::Status), "{all:?}");
}

#[test]
fn wrong_words_of_a_receive_are_found() {
    let length = |all: &mut Vec<Completion>| {
        all.iter_mut().for_each(|c| c.byte_len += u32::from(c.opcode == WcOpcode::Recv));
    };
    assert!(found_in_completions(length).contains(&Invariant::Received));
    let imm = |all: &mut Vec<Completion>| all.iter_mut().for_each(|c| c.imm[3] ^= 1);
    assert!(found_in_completions(imm).contains(&Invariant::Received));
    let key = |all: &mut Vec<Completion>| all.iter_mut().for_each(|c| c.invalidated ^= 1);
    let many = Settings { ops: 300, ..calm() };
    assert!(found(&many, || Box::new(Completions(key))).contains(&Invariant::Received));
}

#[test]
fn a_panic_is_found() {
    assert!(found_in_completions(|_| panic!("planted")).contains(&Invariant::Panic));
}

/// Changes a byte of some packets, which get a right ICRC again.
struct Payloads {
    operation: Operation,
    /// Offset from the BTH.
    at: usize,
}

impl Interpose for Payloads {
    fn sent(&mut self, _: usize, frame: &mut Vec<u8>) {
        let packet = Packet::parse(LinkType::RawIp, frame).unwrap();
        let info = packet.roce.bth.opcode.info().unwrap();
        let start = packet.network.len() + self.at;
        if info.operation != self.operation || start + 4 >= frame.len() {
            return;
        }
        frame[start] ^= 0x10;
        let icrc = Packet::parse(LinkType::RawIp, frame).unwrap().compute_icrc();
        let end = frame.len() - icrc.len();
        frame[end..].copy_from_slice(&icrc);
    }
}

fn found_in_payloads(operation: Operation, at: usize) -> BTreeSet<Invariant> {
    found(&calm(), || Box::new(Payloads { operation, at }))
}

#[test]
fn changed_data_with_a_right_icrc_is_found() {
    // Behind BTH and RETH or AETH or ImmDt, whichever are there.
    let sends = found_in_payloads(Operation::Send, 40);
    assert!(sends.contains(&Invariant::Received), "{sends:?}");
    let writes = found_in_payloads(Operation::Write, 40);
    assert!(writes.contains(&Invariant::Placed), "{writes:?}");
    let reads = found_in_payloads(Operation::ReadResponse, 40);
    assert!(reads.contains(&Invariant::Fetched), "{reads:?}");
}

#[test]
fn a_wrong_sum_and_a_wrong_original_are_found() {
    // The low bytes of what is added, and of the word that comes back.
    let adds = found_in_payloads(Operation::FetchAdd, 12 + 12 + 7);
    assert!(adds.contains(&Invariant::Atomic), "{adds:?}");
    let swaps = found_in_payloads(Operation::CompareSwap, 12 + 12 + 7);
    assert!(swaps.contains(&Invariant::Atomic), "{swaps:?}");
    let originals = found_in_payloads(Operation::AtomicAcknowledge, 12 + 4 + 7);
    assert!(originals.contains(&Invariant::Atomic), "{originals:?}");
}

/// Writes where nobody may, once all is at rest.
struct Stray;

impl Interpose for Stray {
    fn rested(&mut self, node: usize, _: &Nic, memory: &Buffer) {
        let at = memory.len() * 2 / 3;
        let byte = memory.load_u8(at).unwrap();
        memory.write(at, &[byte ^ u8::from(node == 1)]).unwrap();
    }
}

#[test]
fn a_byte_that_nobody_named_is_found() {
    assert_eq!(found(&calm(), || Box::new(Stray)), BTreeSet::from([Invariant::Stray]));
}

/// Leaves a region behind.
struct Leak;

impl Interpose for Leak {
    fn rested(&mut self, _: usize, nic: &Nic, _: &Buffer) {
        let pd = nic.memory().alloc_pd().unwrap();
        let backing = Backing::buffer(Buffer::zeroed(8).unwrap());
        nic.memory().reg_mr(pd, backing, 0, Access::LOCAL_WRITE).unwrap();
    }
}

#[test]
fn a_region_left_behind_is_found() {
    assert_eq!(found(&calm(), || Box::new(Leak)), BTreeSet::from([Invariant::Leak]));
}

/// Keeps the second word of an armed CQ from the program.
#[derive(Default)]
struct Silent(u32);

impl Interpose for Silent {
    fn told(&mut self, _: usize, _: &Nic) -> bool {
        self.0 += 1;
        self.0 != 2
    }
}

#[test]
fn an_armed_cq_that_does_not_tell_is_found() {
    let all = found(&calm(), || Box::new(Silent::default()));
    assert!(all.contains(&Invariant::Notified), "{all:?}");
}

/// Takes QPs away behind the program's back.
struct Reset;

impl Interpose for Reset {
    fn told(&mut self, _: usize, nic: &Nic) -> bool {
        for qpn in 2..8 {
            let attr = QpAttr { qp_state: QpState::Reset, ..QpAttr::default() };
            let _ = nic.modify_qp(Qpn::new(qpn), &attr, AttrMask::STATE);
        }
        true
    }
}

#[test]
fn a_call_that_is_refused_is_found() {
    assert!(found(&calm(), || Box::new(Reset)).contains(&Invariant::Accepted));
}

/// rxe with `retry_cnt` 7 goes on for ever when nobody answers.
#[test]
fn a_run_that_does_not_come_to_rest_is_found() {
    let settings = Settings {
        nodes: 2,
        ops: 20,
        profile: Some(Profile::RXE),
        partition: Some(Duration::from_secs(1_000_000)),
        ..calm()
    };
    let run = |seed| Run::new(seed, settings.clone()).go().violation;
    let first = (0..10).find_map(run).unwrap();
    assert_eq!(first.invariant, Invariant::Rest);
}
