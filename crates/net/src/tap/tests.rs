use std::io::Cursor;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use urxe_wire::{LinkType, Packet};

use super::*;
use crate::IcrcMode;
use crate::TxBatch;
use crate::impair::Impaired;
use crate::testing::{Clock, drain, flow, loopback, packet, ready, send, udp};

/// What is written, to be read by the test.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A packet of a file: time, whether it was sent, comments, frame.
type Written = (Duration, bool, Vec<String>, Vec<u8>);

fn written(buffer: &Buffer) -> Vec<Written> {
    let bytes = buffer.0.lock().clone();
    let mut reader = PcapNgReader::new(Cursor::new(bytes)).unwrap();
    let mut all = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else {
            continue;
        };
        let (mut sent, mut comments) = (None, Vec::new());
        for option in &packet.options {
            match option {
                EnhancedPacketOption::Flags(flags) => sent = Some(*flags == 2),
                EnhancedPacketOption::Comment(text) => comments.push(text.to_string()),
                other => panic!("{other:?}"),
            }
        }
        // The reader takes times for nanoseconds, which they are.
        all.push((packet.timestamp, sent.unwrap(), comments, packet.data.to_vec()));
    }
    all
}

fn psn_of(frame: &[u8]) -> u32 {
    let packet = Packet::parse(LinkType::RawIp, frame).unwrap();
    assert!(packet.icrc_verdict().is_ok(), "the ICRC of {packet:?}");
    packet.roce.bth.psn.value()
}

#[test]
fn what_leaves_and_arrives_is_written_with_the_headers_that_make_its_icrc_right() {
    let (a, b) = (loopback(51), loopback(52));
    let (out, inn, clock) = (Buffer::default(), Buffer::default(), Clock::default());
    clock.set(1_700_000_000_000_001);
    let tx = Tap::new(udp(a), out.clone(), clock.read()).unwrap();
    let rx = Tap::new(udp(b), inn.clone(), clock.read()).unwrap();
    send(&tx, flow(a, b), 0..100);
    assert_eq!(drain(&rx, &mut RxBatch::new(4)).len(), 100);
    drop((tx, rx));
    let (out, inn) = (written(&out), written(&inn));
    for (file, sent) in [(&out, true), (&inn, false)] {
        assert_eq!(file.len(), 100);
        for (psn, (time, direction, comments, frame)) in (0..).zip(file) {
            assert_eq!(psn_of(frame), psn);
            assert_eq!((*time, *direction), (Duration::from_micros(1_700_000_000_000_001), sent));
            assert!(comments.is_empty());
        }
    }
    for (sent, got) in out.iter().zip(&inn) {
        assert_eq!(sent.3, got.3, "what left is what arrived");
    }
}

#[test]
fn comments_stand_beside_their_packets() {
    let (a, b) = (loopback(53), loopback(54));
    let (buffer, clock) = (Buffer::default(), Clock::default());
    let tap = Tap::new(udp(a), buffer.clone(), clock.read()).unwrap();
    let (handle, peer) = (tap.handle(), udp(b));
    let mut batch = TxBatch::new(4, 4200);
    batch.push(flow(a, b), &packet(1, 8), |_| (), 0);
    batch.push(flow(a, b), &packet(2, 8), |_| (), 0);
    batch.comment_last("retry 1 of 7: no ACK");
    tap.send(&mut batch).unwrap();
    send(&peer, flow(b, a), 10..12);
    let (mut rx, mut records) = (RxBatch::new(4), Vec::new());
    tap.recv(&mut rx).unwrap();
    rx.for_each(IcrcMode::Solve, tap.stats(), |p| records.push(p.record.unwrap()));
    assert!(handle.comment(records[0], "dropped: wrong Q_Key"));
    assert!(handle.comment(records[0], "twice"));
    assert!(handle.comment_last(Direction::Received, "NAK: sequence error"));
    assert!(handle.comment_last(Direction::Sent, &"é".repeat(4000)));
    assert!(!handle.comment(Record(99), "nobody's"));
    handle.flush();
    assert!(!handle.comment(records[0], "too late"));
    assert_eq!(handle.counts(), (4, 0));
    let mut comments: Vec<_> = written(&buffer).into_iter().map(|w| w.2).collect();
    let long = comments[1].pop().unwrap();
    assert_eq!((long.len(), long.chars().count()), (4096, 2048), "whole characters");
    let wanted: [&[&str]; 4] = [
        &[],
        &["retry 1 of 7: no ACK"],
        &["dropped: wrong Q_Key", "twice"],
        &["NAK: sequence error"],
    ];
    assert_eq!(comments, wanted);
}

/// A port that looks, while it works, whether the tap over it may write for another thread.
#[derive(Debug)]
struct Looks {
    port: crate::udp::UdpPort,
    tap: OnceLock<TapHandle>,
    free: AtomicBool,
}

impl Port for Arc<Looks> {
    pass_on! {
        self => self.port;
        caps fd wait_writable join leave next_deadline serve stats check
    }

    fn recv(&self, batch: &mut RxBatch) -> io::Result<usize> {
        self.look();
        self.port.recv(batch)
    }

    fn send(&self, batch: &mut TxBatch) -> io::Result<()> {
        self.look();
        self.port.send(batch)
    }
}

impl Looks {
    fn look(&self) {
        self.free.store(self.tap.get().unwrap().0.file.try_lock().is_some(), Ordering::Relaxed);
    }
}

#[test]
fn an_answer_is_not_written_before_what_it_answers() {
    let (a, b) = (loopback(61), loopback(62));
    let (tap, free) = (OnceLock::new(), AtomicBool::new(true));
    let looks = Arc::new(Looks { port: udp(a), tap, free });
    let tapped = Tap::new(Arc::clone(&looks), Buffer::default(), Clock::default().read()).unwrap();
    looks.tap.set(tapped.handle()).unwrap();
    send(&tapped, flow(a, b), 0..1);
    assert_eq!(tapped.handle().counts(), (1, 0));
    assert!(!looks.free.load(Ordering::Relaxed), "the file waits for what is being sent");
}

/// What passed last is in the file soon, though nothing passes after it: whoever waits for the port
/// is told when to look.
#[test]
fn the_last_packet_is_written_while_the_port_is_idle() {
    let (a, b) = (loopback(63), loopback(64));
    let (buffer, clock) = (Buffer::default(), Clock::default());
    let tap = Tap::new(udp(a), buffer.clone(), clock.read()).unwrap();
    assert_eq!(tap.next_deadline(), None);
    clock.set(5_000_000);
    send(&tap, flow(a, b), 0..3);
    clock.set(5_040_000);
    send(&tap, flow(a, b), 3..4);
    assert_eq!(tap.next_deadline(), Some(Duration::from_millis(60)));
    let mut batch = RxBatch::new(1);
    assert_eq!(tap.recv(&mut batch).unwrap(), 0);
    assert_eq!(written(&buffer).len(), 0, "a comment may come yet");
    clock.set(5_139_000);
    tap.recv(&mut batch).unwrap();
    assert_eq!(tap.next_deadline(), Some(Duration::from_millis(1)));
    clock.set(5_140_000);
    tap.recv(&mut batch).unwrap();
    assert_eq!(written(&buffer).len(), 4);
    assert_eq!(tap.next_deadline(), None);
}

#[test]
fn what_two_threads_get_is_written_in_the_order_in_which_it_came() {
    let (tap, free) = (OnceLock::new(), AtomicBool::new(true));
    let looks = Arc::new(Looks { port: udp(loopback(69)), tap, free });
    let tapped = Tap::new(Arc::clone(&looks), Buffer::default(), Clock::default().read()).unwrap();
    looks.tap.set(tapped.handle()).unwrap();
    assert_eq!(tapped.recv(&mut RxBatch::new(4)).unwrap(), 0);
    assert!(!looks.free.load(Ordering::Relaxed), "the file waits for what is being received");
}

#[test]
fn packets_are_held_for_comments_a_short_time_only() {
    let (a, b) = (loopback(55), loopback(56));
    let (buffer, clock) = (Buffer::default(), Clock::default());
    let tap = Tap::new(udp(a), buffer.clone(), clock.read()).unwrap();
    send(&tap, flow(a, b), 0..1);
    clock.set(99_999);
    send(&tap, flow(a, b), 1..2);
    assert_eq!(written(&buffer).len(), 0);
    clock.set(1_100_000);
    send(&tap, flow(a, b), 2..3);
    assert_eq!(written(&buffer).len(), 2);
    drop(tap);
    assert_eq!(written(&buffer).len(), 3);
}

/// A disk with little room.
struct Small(Arc<AtomicUsize>);

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.load(Ordering::Relaxed) < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.fetch_sub(bytes.len(), Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_costs_the_file_and_not_the_traffic() {
    let (a, b) = (loopback(57), loopback(58));
    let (room, clock) = (Arc::new(AtomicUsize::new(4000)), Clock::default());
    let tap = Tap::new(udp(a), Small(Arc::clone(&room)), clock.read()).unwrap();
    let (handle, rx) = (tap.handle(), udp(b));
    send(&tap, flow(a, b), 0..50);
    handle.flush();
    let why = handle.failure().unwrap();
    assert!(why.starts_with("the capture file cannot be written: "), "{why}");
    // Room again does not mend a file with a hole.
    room.store(usize::MAX, Ordering::Relaxed);
    send(&tap, flow(a, b), 50..100);
    assert_eq!(drain(&rx, &mut RxBatch::new(16)).len(), 100);
    let (written, lost) = handle.counts();
    assert_eq!(written + lost, 100);
    assert!(lost >= 50, "{lost}");
    let none = Small(Arc::new(AtomicUsize::new(0)));
    assert!(Tap::new(udp(loopback(59)), none, clock.read()).is_err());
}

#[test]
fn a_tap_above_a_bad_link_sees_what_was_sent_and_one_below_what_left() {
    let (a, b) = (loopback(60), loopback(68));
    let (above, below, clock) = (Buffer::default(), Buffer::default(), Clock::default());
    let inner = Tap::new(udp(a), below.clone(), clock.read()).unwrap();
    let faults = "tx.loss=30%,tx.delay=1ms,seed=5".parse().unwrap();
    let bad = Impaired::new(inner, &faults, clock.read()).unwrap();
    let tap = Tap::new(bad, above.clone(), clock.read()).unwrap();
    send(&tap, flow(a, b), 0..40);
    clock.set(1000);
    assert!(ready(&tap, 5000));
    assert_eq!(drain(&tap, &mut RxBatch::new(1)), []);
    let (counts, _) = tap.port().counts();
    drop(tap);
    assert_eq!(
        written(&above).iter().map(|w| psn_of(&w.3)).collect::<Vec<_>>(),
        Vec::from_iter(0..40)
    );
    let left = written(&below);
    assert_eq!(left.len() as u64, 40 - counts.lost);
    assert!(counts.lost > 0 && left.iter().all(|w| w.0 == Duration::from_millis(1)));
}
