use super::*;
use crate::{Psn, Qpn};

/// The UC SEND only of the protocol facts: 20 bytes of payload and pad, two of them pad.
const UC_SEND: [u8; 36] = [
    0x24, 0x60, 0xff, 0xff, 0, 0, 0, 0xd3, 0, 0xcf, 0x17, 0x10, 0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89,
    0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0, 0, 0x78, 0xf3, 0x53,
    0xf3,
];

#[test]
fn uc_send_parses_and_emits_itself() {
    let p = Roce::parse(&UC_SEND).unwrap();
    assert_eq!(p.bth.opcode, Opcode::from_name("UC_SEND_ONLY").unwrap());
    assert_eq!((p.bth.dest_qp, p.bth.psn), (Qpn::new(0xd3), Psn::new(0xcf_1710)));
    assert_eq!((p.payload.len(), p.pad, p.icrc), (18, &[0, 0][..], [0x78, 0xf3, 0x53, 0xf3]));
    assert_eq!(p.ext, Ext::NONE);
    let mut out = [0xaa; 40];
    assert_eq!(p.emit(&mut out), Ok(36));
    assert_eq!(out[..36], UC_SEND);
    assert_eq!(out[36..], [0xaa; 4], "nothing is written beyond the packet");
}

#[test]
fn every_defined_opcode_round_trips_and_every_other_is_refused() {
    for code in 0..=255 {
        let mut bytes = [0u8; 80];
        bytes[0] = code;
        bytes[4..12].copy_from_slice(&[0xc5, 1, 2, 3, 0x81, 4, 5, 6]);
        let Some(info) = Opcode(code).info() else {
            let err = Roce::parse(&bytes).unwrap_err();
            assert_eq!((err.header, err.field, err.got), ("BTH", "opcode", u64::from(code)));
            continue;
        };
        let len = info.header_len() + if info.payload { 12 } else { 0 } + ICRC_LEN;
        for (i, b) in (0u8..).zip(&mut bytes[12..len]) {
            // A FETH's selectivity is the one field that refuses values.
            *b = if info.headers.contains(ExtHeaders::FETH) { 0x12 } else { i ^ 0x5a };
        }
        let p = Roce::parse(&bytes[..len]).unwrap();
        assert_eq!(p.ext.headers(), info.headers, "{}", info.name);
        assert_eq!((p.header_len(), p.len()), (info.header_len(), len));
        let mut out = [0; 80];
        assert_eq!(p.emit(&mut out), Ok(len));
        assert_eq!(out[..len], bytes[..len], "{}", info.name);
        for short in 0..info.header_len() + ICRC_LEN {
            assert!(Roce::parse(&bytes[..short]).is_err(), "{} {short}", info.name);
            assert!(p.emit(&mut out[..short]).is_err(), "{} {short}", info.name);
        }
    }
}

#[test]
fn headers_are_read_in_the_order_of_their_bits() {
    let info = Opcode::from_name("XRC_FLUSH").unwrap().info().unwrap();
    let mut bytes = [0; 24];
    bytes[..4].copy_from_slice(&[0, 0, 0, 7]);
    bytes[4..8].copy_from_slice(&[0, 0, 0, 0x12]);
    bytes[16..20].copy_from_slice(&[0, 0, 0, 9]);
    let (ext, rest) = Ext::parse(info.headers, &bytes).unwrap();
    assert_eq!(ext.xrceth.unwrap().srqn, 7);
    assert_eq!(ext.feth.unwrap().level.bits(), 2);
    assert_eq!(ext.reth.unwrap().rkey, 9);
    assert!(rest.is_empty());
}

#[test]
fn a_payload_where_none_may_be_is_an_error() {
    let ack = Opcode::from_name("RC_ACKNOWLEDGE").unwrap();
    let mut bytes = [0; 24];
    bytes[0] = ack.0;
    let err = Roce::parse(&bytes).unwrap_err();
    assert_eq!(err, Error::new("RC_ACKNOWLEDGE", "payload length", 4, Wanted::Exactly(0)));
    assert!(Roce::parse(&bytes[..20]).is_ok());
    bytes[1] = 0x10;
    let err = Roce::parse(&bytes[..20]).unwrap_err();
    assert_eq!(err, Error::new("BTH", "pad count", 1, Wanted::AtMost(0)));
}

#[test]
fn pad_must_fit_and_fill_up_to_words() {
    let mut bytes = [0; 12 + 8 + ICRC_LEN];
    bytes[0] = Opcode::from_name("RC_SEND_ONLY").unwrap().0;
    bytes[1] = 0x30;
    assert_eq!(Roce::parse(&bytes[..20]).unwrap().payload.len(), 1);
    let err = Roce::parse(&bytes[..18]).unwrap_err();
    assert_eq!(err, Error::new("BTH", "pad count", 3, Wanted::AtMost(2)));
    let err = Roce::parse(&bytes[..21]).unwrap_err();
    assert_eq!((err.header, err.field, err.got), ("RC_SEND_ONLY", "payload and pad length", 5));
}

#[test]
fn new_pads_and_emit_refuses_what_would_not_parse() {
    let opcode = Opcode::from_name("RC_SEND_ONLY").unwrap();
    let bth = Bth::new(opcode, Qpn::new(5), Psn::ZERO);
    let mut out = [0; 64];
    for (len, pad) in [(0, 0), (1, 3), (2, 2), (3, 1), (4, 0)] {
        let p = Roce::new(bth, Ext::NONE, &[7; 4][..len]);
        assert_eq!((p.bth.pad, p.pad), (pad, &[0; 3][..usize::from(pad)]));
        let n = p.emit(&mut out).unwrap();
        assert_eq!(Roce::parse(&out[..n]), Ok(p));
    }
    let mut p = Roce::new(bth, Ext::NONE, &[7; 3]);
    p.bth.pad = 2;
    assert_eq!(p.emit(&mut out), Err(Error::new("BTH", "pad count", 2, Wanted::Exactly(1))));
    let ext = Ext { imm: Some(ImmDt::default()), ..Ext::NONE };
    let err = Roce::new(bth, ext, &[]).emit(&mut out).unwrap_err();
    assert_eq!(
        (err.field, err.got, err.wanted),
        ("extension header bits", 256, Wanted::Exactly(0))
    );
}

#[test]
fn longest_header_is_that_of_rd_atomics() {
    assert_eq!(MAX_HEADER_LEN, 12 + 4 + 8 + 28);
}
