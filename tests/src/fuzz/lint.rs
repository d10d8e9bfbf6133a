use std::io;
use std::net::Ipv4Addr;

use serde::de::IgnoredAny;
use urxe_cli::capture::Capture;
use urxe_cli::lint::{Summary, View};
use urxe_lint::{Finding, Frame, Lint, Options, Profile};
use urxe_wire::{
    Bth, Ext, Ipv4, Link, LinkType, Network, Opcode, Packet, Psn, Qpn, Roce, Udp, Vlans,
};

use super::choices::Choices;

/// More frames say nothing new.
const FRAMES: u64 = 512;

/// Any bytes are judged twice: as a capture file, and as decisions of what two hosts send each
/// other, packets that are right in themselves and anything but right together.
///
/// # Panics
/// Where a finding is about no frame, weighs more than its rule, is not counted, or is no JSON.
pub fn lint(data: &[u8]) {
    let mut choices = Choices::new(data);
    let options = options(&mut choices);
    file(data, options);
    let mut judge = Lint::new(options);
    let (mut number, mut time, mut found) = (0, 0, 0);
    while !choices.is_empty() && number < FRAMES {
        number += 1;
        // Up to 67 s, also backwards.
        time += i64::from(choices.byte().cast_signed()) << (choices.byte() % 30);
        let (link, bytes) = frame(&mut choices);
        let cut = u32::from(choices.byte()).saturating_sub(250);
        let original_len = u32::try_from(bytes.len()).unwrap_or(u32::MAX) + cut;
        let time = Some(time).filter(|_| number % 64 != 63);
        let frame = Frame { number, time, link, bytes: &bytes, original_len };
        found += checked(&judge.frame(&frame), number);
    }
    found += checked(&judge.finish(), number);
    let totals = judge.totals();
    let held_back: u64 = totals.counts.values().map(|count| count.held_back).sum();
    assert_eq!(totals.violations() + totals.notes(), found + held_back);
    assert_eq!(totals.frames, number);
    assert!(totals.packets + totals.others + totals.unseen <= number);
}

fn options(choices: &mut Choices<'_>) -> Options {
    let choice = choices.byte();
    let profile = match choice & 3 {
        0 => Profile::Rxe,
        1 => Profile::ConnectX,
        _ => Profile::Strict,
    };
    Options { profile, lossy: choice & 4 != 0, at_most: u32::from(choice >> 3) }
}

/// How many findings there are.
fn checked(found: &[Finding], frames: u64) -> u64 {
    for finding in found {
        assert!((1..=frames).contains(&finding.frame), "{finding:?}");
        assert!(finding.severity <= finding.rule.severity(), "{finding:?}");
    }
    found.len() as u64
}

fn file(data: &[u8], options: Options) {
    let Ok(mut capture) = Capture::new("fuzz", data) else { return };
    let (mut text, mut summary) = (Vec::new(), Summary::default());
    let json = View { json: true, ..View::default() };
    // What cannot be read to its end is judged as far as it goes.
    let whole = urxe_cli::lint::lint(&mut capture, options, &json, &mut text, &mut summary);
    for line in text.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        serde_json::from_slice::<IgnoredAny>(line).expect("each line is an object");
    }
    let Ok(mut again) = Capture::new("fuzz", data) else { return };
    let mut other = Summary::default();
    let plain =
        urxe_cli::lint::lint(&mut again, options, &View::default(), &mut io::sink(), &mut other);
    assert_eq!((whole.is_ok(), summary.totals), (plain.is_ok(), other.totals));
}

/// A frame: now and then of any bytes, else a packet between two QPs of two hosts.
fn frame(choices: &mut Choices<'_>) -> (LinkType, Vec<u8>) {
    let kind = choices.byte();
    if kind & 0x1f == 0 {
        let len = usize::from(choices.byte());
        let link = [LinkType::RawIp, LinkType::Ethernet, LinkType::Sll][usize::from(kind >> 6) % 3];
        return (link, choices.bytes(len).to_vec());
    }
    (LinkType::RawIp, packet(choices, kind))
}

/// Payload lengths, bytes: about a packet of the two shortest path MTUs, and of the longest.
const LENGTHS: [usize; 8] = [0, 0, 1, 8, 255, 256, 512, 4096];

fn packet(choices: &mut Choices<'_>, kind: u8) -> Vec<u8> {
    // RC mostly, for there is most to judge.
    let opcode = Opcode(choices.byte() & if kind & 0x60 == 0 { 0xff } else { 0x1f });
    let back = u32::from(kind & 1);
    let psn = Psn::new(0x00ff_ff80 + u32::from(choices.byte()));
    let bth = Bth {
        ack_req: kind & 2 != 0,
        mig_req: kind & 4 != 0,
        ..Bth::new(opcode, Qpn::new(0x10 + back + u32::from(kind & 8)), psn)
    };
    let mut headers = [0; 64];
    let given = choices.bytes(usize::from(kind >> 4));
    headers[..given.len()].copy_from_slice(given);
    let info = opcode.info();
    let ext = info.and_then(|info| Ext::parse(info.headers, &headers).ok()).map(|(ext, _)| ext);
    let payload = [0x5a; 4096];
    let payload = &payload[..LENGTHS[usize::from(choices.byte() & 7)]];
    let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let (src, dst) = if back == 0 { (a, b) } else { (b, a) };
    let mut packet = Packet {
        link: Link::RawIp,
        vlans: Vlans::NONE,
        network: Network::Ipv4 {
            header: Ipv4 { tos: kind >> 6, ..Ipv4::udp(src, dst) },
            options: &[],
            udp: Udp::roce(49_152),
        },
        roce: Roce::new(bth, ext.unwrap_or(Ext::NONE), payload),
        trailer: &[],
    };
    if packet.seal().is_err() {
        // An opcode that is not defined, or a payload where there can be none.
        packet.roce = Roce::new(bth, ext.unwrap_or(Ext::NONE), &[]);
        if packet.seal().is_err() {
            return Vec::new();
        }
    }
    let mut bytes = vec![0; packet.len()];
    let emitted = packet.emit(&mut bytes);
    emitted.map(|_| bytes).unwrap_or_default()
}
