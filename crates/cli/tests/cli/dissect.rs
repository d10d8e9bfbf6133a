//! What `dissect` shows of golden captures and of files made by hand, as snapshots.

use crate::made::{ethernet, golden, in_vlans, on_link, packet, pcap, pcapng, sealed, shown};
use urxe_cli::dissect::{Filter, Options, Palette, TimeStyle};
use urxe_wire::{
    Aeth, AtomicAckEth, AtomicEth, CmMessage, CnpPad, Credit, Deth, Ext, Feth, FlushLevel,
    FlushScope, Ieth, ImmDt, LinkType, MAD_LEN, NakCode, Packet, Psn, QKey, Qpn, Reth, RnrTimer,
    Syndrome, XrcEth,
    cm::{CommId, Rej, RejMessage, RejReason},
};

fn plain() -> Options {
    Options::default()
}

fn filtered(terms: &str) -> Options {
    Options { filter: terms.parse::<Filter>().unwrap(), ..plain() }
}

#[test]
fn golden_rping() {
    insta::assert_snapshot!("golden_rping", shown(&golden("rping"), &plain()));
}

#[test]
fn golden_udaddy() {
    insta::assert_snapshot!("golden_udaddy", shown(&golden("udaddy"), &plain()));
}

#[test]
fn golden_atomic_faa() {
    insta::assert_snapshot!("golden_atomic_faa", shown(&golden("atomic_faa"), &plain()));
}

#[test]
fn golden_rc_ipv6() {
    insta::assert_snapshot!("golden_rc_ipv6", shown(&golden("rc_ipv6"), &plain()));
}

#[test]
fn golden_loss_of_two_psns() {
    let options = Options { time: TimeStyle::Delta, ..filtered("psn=4013089..4013092") };
    insta::assert_snapshot!("golden_loss_of_two_psns", shown(&golden("loss_send"), &options));
}

#[test]
fn golden_cm_req_and_rep_field_by_field() {
    let options = Options { verbose: true, ..filtered("psn=0") };
    insta::assert_snapshot!("golden_cm_req_and_rep", shown(&golden("rping"), &options));
}

#[test]
fn golden_read_field_by_field_with_payload() {
    let options =
        Options { verbose: true, hex: true, ..filtered("opcode=*READ*,psn=3456209,qp=0x14") };
    insta::assert_snapshot!("golden_read_verbose", shown(&golden("rping"), &options));
}

#[test]
fn golden_rping_as_json() {
    let options = Options { json: true, ..plain() };
    insta::assert_snapshot!("golden_rping_json", shown(&golden("rping"), &options));
}

#[test]
fn golden_udaddy_with_absolute_times_and_colours() {
    let options = Options { time: TimeStyle::Absolute, palette: Palette::COLOURED, ..plain() };
    let text = shown(&golden("udaddy"), &options).replace('\u{1b}', "␛");
    insta::assert_snapshot!("golden_udaddy_coloured", text);
}

fn aeth(syndrome: Syndrome) -> Ext {
    Ext { aeth: Some(Aeth::new(syndrome, Psn::new(7))), ..Ext::NONE }
}

const RETH: Reth = Reth { va: 0x7f00_1234_5678, rkey: 0x1a2b, dma_len: 4096 };

/// A packet of each kind that the golden captures do not hold.
fn rarities() -> Vec<Packet<'static>> {
    let nak = |code| packet("RC_ACKNOWLEDGE", 3, aeth(Syndrome::Nak(code)), &[]);
    let credit = |n| Syndrome::Ack(Credit::new(n).unwrap());
    let timer = RnrTimer::new(13).unwrap();
    let feth =
        Feth::new(FlushScope::MemoryRegion, FlushLevel::GLOBAL.union(FlushLevel::PERSISTENT));
    let atomic = Some(AtomicEth { va: 0x1000, rkey: 0x1a2b, swap_add: u64::MAX, compare: 1 << 63 });
    let imm = Some(ImmDt { data: [1, 2, 3, 4] });
    let (ieth, xrceth) = (Some(Ieth { rkey: 0x99 }), Some(XrcEth { reserved: 0, srqn: 0x42 }));
    let mut all = vec![
        packet("RC_ACKNOWLEDGE", 2, aeth(Syndrome::RnrNak(timer)), &[]),
        packet("RC_ACKNOWLEDGE", 2, aeth(credit(10)), &[]),
        packet("RC_ACKNOWLEDGE", 2, aeth(credit(1)), &[]),
        packet("RC_ACKNOWLEDGE", 2, aeth(Syndrome::Reserved(0x45)), &[]),
        nak(NakCode::InvalidRequest),
        nak(NakCode::RemoteAccess),
        nak(NakCode::RemoteOperational),
        nak(NakCode::InvalidRdRequest),
        packet("RC_SEND_ONLY_WITH_INVALIDATE", 4, Ext { ieth, ..Ext::NONE }, b"abc"),
        packet(
            "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE",
            5,
            Ext { reth: Some(RETH), imm, ..Ext::NONE },
            b"abcd",
        ),
        packet("RC_FLUSH", 6, Ext { feth: Some(feth), reth: Some(RETH), ..Ext::NONE }, &[]),
        packet("RC_ATOMIC_WRITE", 7, Ext { reth: Some(RETH), ..Ext::NONE }, &[0; 8]),
        packet("RC_COMPARE_SWAP", 8, Ext { atomic, ..Ext::NONE }, &[]),
        packet("XRC_SEND_ONLY", 9, Ext { xrceth, ..Ext::NONE }, b"xrc!"),
        packet("CNP", 0, Ext { cnp: Some(CnpPad::default()), ..Ext::NONE }, &[]),
    ];
    let mut flagged = packet("UC_SEND_LAST", 10, Ext::NONE, b"abcd");
    (flagged.roce.bth.solicited, flagged.roce.bth.fecn) = (true, true);
    all.push(flagged);
    if let Some(cnp) = all.iter_mut().find(|p| p.roce.ext.cnp.is_some()) {
        cnp.roce.bth.becn = true;
    }
    let original = Some(AtomicAckEth { original: 0xdead_beef });
    let ack = Ext { atomic_ack: original, ..aeth(Syndrome::Ack(Credit::UNLIMITED)) };
    all.push(packet("RC_ATOMIC_ACKNOWLEDGE", 8, ack, &[]));
    all
}

#[test]
fn rarities_in_text_and_json() {
    let file = ethernet(&rarities().into_iter().map(sealed).collect::<Vec<_>>());
    insta::assert_snapshot!("rarities_text", shown(&file, &plain()));
    let options = Options { verbose: true, ..filtered("opcode=RC_FLUSH,opcode=CNP") };
    insta::assert_snapshot!("rarities_verbose", shown(&file, &options));
    let options = Options { json: true, ..filtered("opcode=*ATOMIC*,opcode=XRC*") };
    insta::assert_snapshot!("rarities_json", shown(&file, &options));
}

/// A datagram to QP1 with this payload.
fn to_qp1(payload: &[u8]) -> Packet<'_> {
    let deth = Deth { qkey: QKey::GSI, reserved: 0, src_qp: Qpn::GSI };
    let mut packet = packet("UD_SEND_ONLY", 1, Ext { deth: Some(deth), ..Ext::NONE }, payload);
    packet.roce.bth.dest_qp = Qpn::GSI;
    packet
}

#[test]
fn management_datagrams_good_foreign_and_broken() {
    let reject = CmMessage::from(Rej {
        local_comm_id: CommId(1),
        remote_comm_id: CommId(2),
        message: RejMessage::Req,
        reason: RejReason::InvalidServiceId,
        ..Rej::default()
    });
    let mut rej = [0; MAD_LEN];
    reject.emit(&reject.header(77), &mut rej).unwrap();
    let (mut performance, mut unknown, mut version) = (rej, rej, rej);
    performance[1] = 4;
    unknown[17] = 0x30;
    version[2] = 1;
    let mads: [&[u8]; 5] = [&rej, &performance, &unknown, &version, &rej[..100]];
    let file = ethernet(&mads.map(|mad| sealed(to_qp1(mad))));
    insta::assert_snapshot!("management_datagrams", shown(&file, &plain()));
    let options = Options { json: true, ..plain() };
    insta::assert_snapshot!("management_datagrams_json", shown(&file, &options));
}

#[test]
fn every_link_type_in_one_pcapng() {
    let send = || packet("RC_SEND_ONLY", 0x00ff_ffff, Ext::NONE, b"over any link");
    let mut frames = Vec::new();
    for link in LinkType::ALL {
        for ipv6 in [false, true] {
            let code = u16::try_from(link.to_pcap()).unwrap();
            frames.push((code, sealed(on_link(send(), link, ipv6))));
        }
    }
    // What BSDs call raw IP, and IPv4 and IPv6 by their own numbers.
    for (code, ipv6) in [(12, false), (14, true), (228, false), (229, true)] {
        frames.push((code, sealed(on_link(send(), LinkType::RawIp, ipv6))));
    }
    frames.push((1, sealed(in_vlans(send(), &[100]))));
    frames.push((1, sealed(in_vlans(send(), &[7, 4094]))));
    frames.push((105, vec![0; 64]));
    let file = pcapng(&frames);
    insta::assert_snapshot!("every_link_type", shown(&file, &plain()));
    let options = Options { verbose: true, ..plain() };
    insta::assert_snapshot!("every_link_type_verbose", shown(&file, &options));
    let options = Options { json: true, ..plain() };
    insta::assert_snapshot!("every_link_type_json", shown(&file, &options));
}

#[test]
fn both_byte_orders_and_resolutions_show_the_same() {
    let frame = sealed(packet("RC_SEND_ONLY", 1, Ext::NONE, b"same"));
    let len = u32::try_from(frame.len()).unwrap();
    let frames = [(&frame[..], len), (&frame[..], len)];
    let text = |big, fine| shown(&pcap(big, fine, 1, &frames), &plain());
    let first = text(false, false);
    assert!(first.contains("  2  0.000001  10.0.0.1 → 10.0.0.2"), "{first}");
    assert_eq!(text(true, false), first);
    // Nanoseconds have three more digits.
    for big in [false, true] {
        let fine = text(big, true);
        assert!(fine.contains("  2  0.000001000  10.0.0.1 → "), "{fine}");
        assert_eq!(fine.replace("000  10.0.0.1", "  10.0.0.1"), first);
    }
}

/// Frames with one fault each.
fn faults() -> Vec<Vec<u8>> {
    let good = || sealed(packet("RC_SEND_ONLY", 1, Ext::NONE, b"abcdefgh"));
    let with = |at: usize, to: u8| {
        let mut frame = good();
        frame[at] = to;
        frame
    };
    let mut tcp = with(23, 6);
    tcp.truncate(54);
    vec![
        good(),
        with(57, b'X'), // a byte of the payload
        with(42, 0x1f), // opcode
        with(43, 0x01), // transport header version
        with(43, 0x30), // pad count
        with(39, 0),    // UDP length
        with(17, 200),  // IPv4 total length
        with(14, 0x44), // IPv4 header length
        with(37, 1),    // UDP port
        tcp,
        with(13, 6),    // ethertype: ARP
        with(12, 0x88), // ethertype 0x8800
        good()[..50].to_vec(),
        vec![1, 2, 3],
        good(),
    ]
}

#[test]
fn faults_are_told_and_do_not_stop_the_rest() {
    let file = ethernet(&faults());
    insta::assert_snapshot!("faults", shown(&file, &plain()));
    let options = Options { json: true, ..plain() };
    insta::assert_snapshot!("faults_json", shown(&file, &options));
}

/// A filter sees the BTH of a packet that is broken elsewhere.
#[test]
fn broken_packets_are_filtered_by_what_can_be_read() {
    let file = ethernet(&faults());
    assert_eq!(shown(&file, &filtered("psn=1")).matches("  broken  ").count(), 3);
    assert_eq!(shown(&file, &filtered("psn=2")).matches("  broken  ").count(), 0);
}

/// What a host sees of its own packets before its card segments them.
#[test]
fn a_batch_before_segmentation_is_named() {
    let batch = vec![0; 4100];
    let file = ethernet(&[sealed(packet("RC_SEND_MIDDLE", 1, Ext::NONE, &batch))]);
    let text = shown(&file, &plain());
    assert!(text.contains("longer than any path MTU: captured before segmentation?"), "{text}");
}

/// With `-x`, a packet that is broken shows all its bytes.
#[test]
fn the_bytes_of_a_broken_packet_can_be_had() {
    let options = Options { hex: true, ..plain() };
    let text = shown(&ethernet(&[vec![0x41, 2, 3]]), &options);
    assert!(text.contains("        0000  41 02 03  "), "{text}");
    assert!(text.contains("  A..\n"), "{text}");
}

#[test]
fn what_a_snap_length_cut_is_no_fault() {
    let write = Ext { reth: Some(RETH), ..Ext::NONE };
    let frame = sealed(packet("RC_RDMA_WRITE_FIRST", 1, write, &[7; 1024]));
    let original = u32::try_from(frame.len()).unwrap();
    // The last lengths: ICRC cut, RETH cut, BTH cut, IP cut.
    let cuts = [frame.len(), 128, frame.len() - 1, 69, 50, 20];
    let frames = cuts.map(|len| (&frame[..len], original));
    let mut frames = frames.to_vec();
    frames.push((&frame[..128], 100_000));
    // What is broken in the part that is there is broken all the same.
    let mut version = frame.clone();
    version[43] = 1;
    frames.push((&version[..128], original));
    // Something else is something else, if so much is there.
    let mut icmp = frame.clone();
    icmp[23] = 1;
    frames.push((&icmp[..60], original));
    let file = pcap(false, false, 1, &frames);
    insta::assert_snapshot!("cut", shown(&file, &plain()));
    let options = Options { json: true, ..plain() };
    insta::assert_snapshot!("cut_json", shown(&file, &options));
    let options = Options { verbose: true, hex: true, ..filtered("psn=1") };
    let text = shown(&pcap(false, false, 1, &[(&frame[..128], original)]), &options);
    insta::assert_snapshot!("cut_verbose", text);
}
