use urxe_wire::{IcrcPrefix, LinkType, Packet, ParseError, Roce, Verdict};

/// The first byte chooses the link type, the others are a frame. A packet is taken or refused; what
/// is taken is emitted byte for byte, all its checksums can be computed, and once sealed its ICRC
/// is right. The frame is then tried as a transport packet too, as a UDP socket would give it.
///
/// # Panics
/// Where emitted bytes differ from those that were parsed, or a sealed packet is not right.
pub fn packet(data: &[u8]) {
    let Some((&choice, frame)) = data.split_first() else { return };
    let link = LinkType::ALL[usize::from(choice) % LinkType::ALL.len()];
    match Packet::parse(link, frame) {
        Ok(packet) => whole(&packet, frame),
        Err(ParseError::NotRoce(why)) => drop(why.to_string()),
        Err(ParseError::Bad(error)) => drop(error.to_string()),
    }
    transport(frame);
}

fn whole(packet: &Packet<'_>, frame: &[u8]) {
    let mut out = vec![0xa5; frame.len()];
    assert_eq!(packet.len(), frame.len());
    assert_eq!(packet.emit(&mut out), Ok(frame.len()));
    assert_eq!(out, frame);
    let full = packet.icrc_verdict();
    if let Verdict::Bad { got, computed } = full {
        assert_eq!((got, computed), (packet.roce.icrc, packet.compute_icrc()));
    }
    let _ = packet.icrc_verdict_hidden_id();
    assert_eq!(packet.compute_vcrc().is_some(), packet.udp().is_none());
    assert_eq!(packet.compute_udp_checksum().is_some(), packet.udp().is_some());

    let mut sealed = *packet;
    sealed.seal().expect("what parses is not too long");
    assert_eq!(sealed.icrc_verdict(), Verdict::Ok);
    assert_eq!(sealed.emit(&mut out), Ok(frame.len()));
    assert_eq!(Packet::parse(packet.link.link_type(), &out), Ok(sealed));
}

/// What a UDP socket gives: BTH to ICRC, and the addresses.
fn transport(bytes: &[u8]) {
    let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    let prefix = IcrcPrefix::socket_v4(src, dst, 0xc000, 0, len);
    if let Verdict::OkSolvedId(id) = prefix.verify_hidden_id(bytes) {
        assert_eq!(prefix.with_id(id).verify(bytes), Verdict::Ok);
    }
    let Ok(roce) = Roce::parse(bytes) else { return };
    let mut out = vec![0xa5; bytes.len()];
    assert_eq!(roce.emit(&mut out), Ok(bytes.len()));
    assert_eq!(out, bytes);
    let mut icrc = prefix.start(&bytes[..roce.header_len()]);
    icrc.update(roce.payload);
    icrc.update(roce.pad);
    assert_eq!(icrc.finish(), prefix.compute(&bytes[..bytes.len() - 4]), "slices are as the whole");
}
