use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use super::*;
use crate::RxBatch;
use crate::testing::{Clock, drain, flow, loopback, ready, send, udp};

/// A sender without faults and an impaired receiver, or the other way round.
fn impaired(last: u8, text: &str) -> (Impaired<crate::udp::UdpPort>, Clock) {
    let clock = Clock::default();
    let port = udp(loopback(last));
    let faults = text.parse().unwrap();
    (Impaired::new(port, &faults, clock.read()).unwrap(), clock)
}

fn psns(got: &[(u32, urxe_wire::Verdict)]) -> Vec<u32> {
    got.iter().map(|(psn, _)| *psn).collect()
}

#[test]
fn without_faults_all_arrives_as_it_was() {
    let (a, b) = (loopback(31), loopback(32));
    let (tx, _) = impaired(31, "");
    let (rx, _) = impaired(32, "");
    send(&tx, flow(a, b), 0..200);
    let got = drain(&rx, &mut RxBatch::new(4));
    assert_eq!(psns(&got), (0..200).collect::<Vec<_>>());
    assert!(got.iter().all(|(_, verdict)| verdict.is_ok()));
    assert_eq!((tx.next_deadline(), rx.next_deadline()), (None, None));
    assert!(!ready(&rx, 0));
    let (out, _) = tx.counts();
    assert_eq!(out, FaultCounts { packets: 200, ..FaultCounts::default() });
}

#[test]
fn the_same_seed_loses_the_same_packets_on_either_side() {
    let (a, b) = (loopback(33), loopback(34));
    let text = "tx.loss=10%,tx.duplicate=5%,tx.corrupt=5%,seed=11";
    let run = || {
        let (tx, _) = impaired(33, text);
        let rx = udp(b);
        send(&tx, flow(a, b), 0..500);
        let got = drain(&rx, &mut RxBatch::new(64));
        (got, tx.counts().0)
    };
    let fates = |got: &[(u32, urxe_wire::Verdict)]| -> Vec<_> {
        got.iter().map(|(psn, verdict)| (*psn, verdict.is_ok())).collect()
    };
    let (first, counts) = run();
    assert_eq!(fates(&first), fates(&run().0));
    let arrived = counts.packets - counts.lost + counts.duplicated;
    assert_eq!(first.len() as u64, arrived, "{counts:?}");
    let bad = first.iter().filter(|(_, verdict)| !verdict.is_ok()).count();
    assert_eq!(bad as u64, counts.corrupted, "{counts:?}");
    // Four standard deviations around 50, 22 and 23.
    assert!((23..=77).contains(&counts.lost), "{counts:?}");
    assert!((4..=43).contains(&counts.duplicated), "{counts:?}");
    assert!((4..=45).contains(&counts.corrupted), "{counts:?}");
}

#[test]
fn what_arrives_is_hurt_before_its_icrc_is_looked_at() {
    let (a, b) = (loopback(35), loopback(36));
    let tx = udp(a);
    let (rx, _) = impaired(36, "rx.corrupt=100%,seed=2");
    send(&tx, flow(a, b), 0..50);
    let got = drain(&rx, &mut RxBatch::new(2));
    assert_eq!(got.len(), 50);
    assert!(got.iter().all(|(_, verdict)| !verdict.is_ok()), "{got:?}");
    assert_eq!(rx.stats().snapshot().rx_icrc_bad, 50);
}

#[test]
fn delayed_packets_come_when_they_are_due_and_the_descriptor_says_so() {
    let (a, b) = (loopback(37), loopback(38));
    let (tx, clock) = impaired(37, "tx.delay=5ms");
    let rx = udp(b);
    let mut batch = RxBatch::new(4);
    send(&tx, flow(a, b), 0..3);
    assert_eq!(drain(&rx, &mut batch), []);
    assert_eq!(tx.next_deadline(), Some(Duration::from_millis(5)));
    clock.set(4_999);
    assert_eq!(drain(&tx, &mut batch), []);
    assert_eq!(drain(&rx, &mut batch), []);
    // The timer runs on the host's time.
    assert!(ready(&tx, 5000));
    clock.set(5_000);
    assert_eq!(drain(&tx, &mut batch), []);
    assert_eq!(psns(&drain(&rx, &mut batch)), [0, 1, 2]);
    assert_eq!(tx.next_deadline(), None);
    assert!(!ready(&tx, 0));
}

#[test]
fn packets_held_on_arrival_wake_the_receiver() {
    let (a, b) = (loopback(39), loopback(40));
    let tx = udp(a);
    let (rx, clock) = impaired(40, "rx.delay=2ms");
    let mut batch = RxBatch::new(4);
    send(&tx, flow(a, b), 0..2);
    assert_eq!(drain(&rx, &mut batch), []);
    assert!(ready(&rx, 5000));
    clock.set(2_000);
    assert_eq!(psns(&drain(&rx, &mut batch)), [0, 1]);
}

#[test]
fn more_than_a_batch_holds_comes_in_several() {
    let (a, b) = (loopback(41), loopback(42));
    let tx = udp(a);
    let (rx, clock) = impaired(42, "rx.delay=1ms");
    // A batch of 65,600 bytes has room for some 240 packets of 272.
    let mut small = RxBatch::new(1);
    for from in (0..600).step_by(100) {
        send(&tx, flow(a, b), from..from + 100);
        assert_eq!(drain(&rx, &mut small), []);
    }
    clock.set(1_000);
    let first = rx.recv(&mut small).unwrap();
    assert!((1..600).contains(&first), "{first}");
    assert_eq!(rx.next_deadline(), Some(Duration::ZERO));
    assert!(ready(&rx, 0) || ready(&rx, 1000));
    assert_eq!(first + drain(&rx, &mut small).len(), 600);
}

#[test]
fn reordering_and_a_full_queue_are_counted() {
    let (a, b) = (loopback(43), loopback(44));
    let (tx, clock) = impaired(43, "tx.reorder=20%:1ms,tx.queue=5,seed=3");
    let rx = udp(b);
    let mut batch = RxBatch::new(16);
    send(&tx, flow(a, b), 0..100);
    let mut got = psns(&drain(&rx, &mut batch));
    assert!(got.is_sorted());
    clock.set(2_000);
    assert_eq!(drain(&tx, &mut batch), []);
    let late = psns(&drain(&rx, &mut batch));
    assert!(!late.is_empty() && late.len() <= 5, "{late:?}");
    got.extend(late);
    let (counts, _) = tx.counts();
    assert!(counts.reordered >= 5, "{counts:?}");
    assert_eq!(got.len() as u64, 100 - counts.overflow, "{counts:?}");
}

/// A port without room: what the link holds for it counts, and what is more is lost.
#[test]
fn a_port_below_without_room_fills_the_queue_and_no_more() {
    let (a, b) = (loopback(45), loopback(46));
    let clock = Clock::default();
    let gate = Gate { port: udp(a), open: AtomicBool::new(false) };
    let tx = Impaired::new(gate, &"tx.queue=100".parse().unwrap(), clock.read()).unwrap();
    let rx = udp(b);
    for from in (0..640).step_by(64) {
        send(&tx, flow(a, b), from..from + 64);
    }
    let (counts, _) = tx.counts();
    // 64 are on their way to the port below, and of what follows 100 are held.
    assert_eq!((counts.packets, counts.overflow), (640, 640 - 64 - 100), "{counts:?}");
    // More is due than one call hands down; until there is room that wakes nobody.
    assert_eq!(tx.next_deadline(), Some(RETRY), "it is tried again, and not at once");
    tx.port().open.store(true, SeqCst);
    let mut batch = RxBatch::new(16);
    assert_eq!(drain(&tx, &mut batch), []);
    assert_eq!(psns(&drain(&rx, &mut batch)), (0..164).collect::<Vec<_>>());
    // There is room again: a burst of more than the queue is none of its business.
    send(&tx, flow(a, b), 0..200);
    assert_eq!(drain(&rx, &mut batch).len(), 200);
    assert_eq!(tx.counts().0.overflow, counts.overflow);
}

/// A port that has room or has none.
#[derive(Debug)]
struct Gate {
    port: crate::udp::UdpPort,
    open: AtomicBool,
}

impl Port for Gate {
    pass_on! {
        self => self.port;
        caps recv fd wait_writable join leave route_mtu next_deadline serve stats check
    }

    fn send(&self, batch: &mut TxBatch) -> io::Result<()> {
        if self.open.load(SeqCst) { self.port.send(batch) } else { Ok(()) }
    }
}
