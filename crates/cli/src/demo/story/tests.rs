use std::time::Duration;

use urxe::{DropReason, QpKind, Qpn, Why};
use urxe_wire::{Aeth, Bth, Credit, Ext, NakCode, Opcode, Psn, Reth, Roce, Syndrome};

use super::{Told, capitals, tell};
use crate::demo::recorder::{Packet, Pair};
use crate::demo::world::Who;

const PAIR: Pair =
    Pair { kind: QpKind::Rc, alice: (Qpn::new(2), 0x1000), bob: (Qpn::new(3), 0x9000) };

/// A packet of `len` bytes that leaves at `at` µs.
fn packet(from: Who, name: &str, psn: u32, ext: Ext, len: usize, at: u64) -> Packet {
    let qp = if from == Who::Alice { PAIR.bob.0 } else { PAIR.alice.0 };
    let bth = Bth::new(Opcode::from_name(name).unwrap(), qp, Psn::new(psn));
    let mut frame = vec![0; 2048];
    let end = Roce::new(bth, ext, &vec![0; len]).emit(&mut frame).unwrap();
    frame.truncate(end);
    let left = Duration::from_micros(at);
    let arrived = Some(left + Duration::from_micros(10));
    Packet { left, arrived, from, frame, bth_at: 0, why: None, dropped: None, step: 0 }
}

fn answer(psn: u32, syndrome: Syndrome, msn: u32, at: u64) -> Packet {
    let aeth = Aeth::new(syndrome, Psn::new(msn));
    packet(Who::Bob, "RC_ACKNOWLEDGE", psn, Ext { aeth: Some(aeth), ..Ext::NONE }, 0, at)
}

fn told(packets: &[Packet]) -> Vec<Told> {
    tell(packets, &[PAIR], 1024)
}

#[test]
fn a_packet_knows_its_place_in_the_message_across_the_end_of_psns() {
    let send = |name, psn, at| packet(Who::Alice, name, psn, Ext::NONE, 1024, at);
    let ack = Syndrome::Ack(Credit::new(31).unwrap());
    let all = [
        send("RC_SEND_FIRST", 0xff_fffe, 0),
        send("RC_SEND_MIDDLE", 0xff_ffff, 1),
        send("RC_SEND_LAST", 0, 2),
        answer(0, ack, 1, 20),
        send("RC_SEND_ONLY", 1, 40),
        answer(1, ack, 2, 60),
    ];
    let told = told(&all);
    for (nth, wanted) in [
        (0, "the first of 3 packets"),
        (1, "packet 2 of 3"),
        (2, "the last of 3 packets"),
        (3, "up to PSN 0 (3 packets more than before): 1 message so far"),
        (4, "the whole message in one packet"),
        (5, "up to PSN 1 (one packet more than before): 2 messages so far"),
    ] {
        assert!(told[nth].sentence.contains(wanted), "{nth}: {}", told[nth].sentence);
    }
    assert!(told.iter().all(|t| t.notes().count() == 0));
}

#[test]
fn addresses_are_told_from_where_the_memory_begins() {
    let reth = Reth { va: 0x9100, rkey: 0x1234, dma_len: 2500 };
    let ext = Ext { reth: Some(reth), ..Ext::NONE };
    let all = [
        packet(Who::Alice, "RC_RDMA_WRITE_FIRST", 5, ext, 1024, 0),
        packet(Who::Alice, "RC_RDMA_READ_REQUEST", 8, ext, 0, 1),
    ];
    let told = told(&all);
    let wanted = "2500 bytes to bob's memory +256, and shows the key for it, rkey 0x00001234";
    assert!(told[0].sentence.contains(wanted), "{}", told[0].sentence);
    let wanted = "2500 bytes of bob's memory +256. Bob's NIC answers, his program takes no part; \
                  the answer is 3 packets, PSN 8 to 10.";
    assert!(told[1].sentence.contains(wanted), "{}", told[1].sentence);
}

#[test]
fn what_is_sent_again_says_why_and_how_often() {
    let send = |at, why| Packet { why, ..packet(Who::Alice, "RC_SEND_ONLY", 7, Ext::NONE, 10, at) };
    let all = [
        send(0, None),
        answer(7, Syndrome::Nak(NakCode::PsnSequence), 0, 20),
        send(40, Some(Why::Nak)),
        send(8440, Some(Why::Timeout)),
    ];
    let told = told(&all);
    assert_eq!(told[0].again, None);
    assert_eq!(told[2].again.as_deref(), Some("sent again, time 2: bob's NAK asks for it"));
    let wanted = "sent again, time 3: no answer came for 8.4 ms";
    assert_eq!(told[3].again.as_deref(), Some(wanted));
    assert!(told[1].sentence.starts_with("NAK, PSN sequence error: bob waits for PSN 7"));
    assert!(told[1].sentence.contains("Alice shall send everything from 7 on again."));
}

#[test]
fn every_end_of_a_packet_has_words() {
    let send = |arrived, dropped| Packet {
        arrived,
        dropped,
        ..packet(Who::Alice, "RC_SEND_ONLY", 7, Ext::NONE, 10, 0)
    };
    assert_eq!(told(&[send(None, None)])[0].end.as_deref(), Some("lost on its way"));
    for &why in DropReason::ALL {
        let told = told(&[send(Some(Duration::ZERO), Some(why))]);
        let end = told[0].end.clone().unwrap();
        assert!(end.starts_with("dropped by bob: "), "{end}");
        assert!(!end.contains('_') && end.contains(why.rule()), "{end}");
    }
}

#[test]
fn sentences_begin_with_a_capital() {
    assert_eq!(capitals("bob waits 0.32 ms. alice is told."), "Bob waits 0.32 ms. Alice is told.");
}
