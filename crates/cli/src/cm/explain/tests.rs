//! Each message has its sentence, and private data is readable.

use urxe_wire::CmMessage;
use urxe_wire::cm::{Dreq, Mra, Rej, RejReason, SidrRep, SidrStatus};

use super::{explain, text_of};

#[test]
fn a_sentence_tells_who_does_what() {
    let mra = Mra { private_data: [0; 222], ..Mra::default() };
    assert_eq!(
        explain(&CmMessage::Mra(mra), false),
        "The peer asks for patience: the REQ has come, its answer takes up to 4 us."
    );
    let mut dreq = Dreq { remote_qpn: urxe_wire::Qpn::new(0x12), ..Dreq::default() };
    dreq.private_data[..3].copy_from_slice(b"bye");
    assert_eq!(
        explain(&CmMessage::Dreq(dreq), true),
        "We end the connection of QP 0x12: nothing more comes; private data: “bye”."
    );
    let rej = Rej { reason: RejReason::InvalidServiceId, ..Rej::default() };
    let text = explain(&CmMessage::Rej(rej), false);
    assert!(text.ends_with("(nothing listens to that port)."), "{text}");
    let rep = SidrRep { status: SidrStatus::Rejected, ..SidrRep::default() };
    let text = explain(&CmMessage::SidrRep(rep), false);
    assert!(text.starts_with("The peer answers: no, "), "{text}");
}

#[test]
fn private_data_is_text_where_it_is_some() {
    assert_eq!(text_of(b"hello\0\0").as_deref(), Some("“hello”"));
    assert_eq!(text_of(&[1, 2, 0xff, 0]).as_deref(), Some("0102ff"));
    assert_eq!(text_of(&[0; 5]), None);
}
