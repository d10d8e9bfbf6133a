use urxe_wire::{Opcode, Psn, Qpn};

use super::*;

fn shown(bytes: &[u8], sent: bool, fate: Result<(), Drop>, verdict: Verdict) -> String {
    let (a, b) = ("127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap());
    let flow =
        Flow { src: a, dst: b, src_port: 50000, traffic_class: 0, hop_limit: 64, flow_label: 0 };
    let time = Duration::from_millis(1500);
    let at = Instant::now();
    Passage { at, time, sent, flow, bytes, why: None, verdict, fate }.to_string()
}

#[test]
fn a_packet_is_one_line() {
    let mut bytes = [0; 64];
    let send = Opcode::from_name("RC_SEND_ONLY").unwrap();
    Bth::new(send, Qpn::new(0x11), Psn::new(7)).emit(&mut bytes).unwrap();
    let line = shown(&bytes, true, Ok(()), Verdict::Ok);
    assert_eq!(line, "out 1.500000  127.0.0.1 → 127.0.0.2  RC_SEND_ONLY  qp 0x11  psn 7  64 B");
    let bad = Verdict::Bad { got: [0; 4], computed: [1; 4] };
    let line = shown(&bytes, false, Err(Drop::Malformed), bad);
    assert!(line.starts_with("in ") && line.ends_with("dropped: wrong ICRC"), "{line}");
    let line = shown(&bytes[..3], false, Err(Drop::NoSuchQp), Verdict::Ok);
    assert!(line.contains("3 B, too short for a BTH  dropped: "), "{line}");
}
