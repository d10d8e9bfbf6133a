//! What one packet shows by itself.

use urxe_wire::{
    CmMessage, Error, MAD_LEN, MAX_MESSAGE, MadHeader, ManagementClass, Mtu, Network, Operation,
    Packet, QKey, Qpn, Repr, Syndrome, Transport, Verdict,
};

use crate::fact::Fact;
use crate::report::{Place, Report};
use crate::rule::Rule;

/// A packet that does not parse.
pub(crate) fn malformed(error: &Error, place: &Place, report: &mut Report) {
    let rule = match (error.header, error.field) {
        ("BTH", "version") => Rule::Version,
        ("BTH", "opcode") => Rule::Opcode,
        ("BTH", "pad count") | (_, "payload and pad length") => Rule::PadCount,
        _ => Rule::Malformed,
    };
    let what = format!("{} {}", error.header, error.field);
    report.find(rule, place, what, error.got, error.wanted);
}

/// A batch that is cut into packets further down has a payload that no packet can have, and the
/// ICRC of its last one.
pub(crate) fn before_segmentation(packet: &Packet<'_>, whole: bool) -> bool {
    packet.roce.payload.len() > Mtu::B4096.bytes() as usize
        && (!whole || matches!(packet.icrc_verdict(), Verdict::Bad { .. }))
}

/// All that needs no other packet; `whole` if every byte of it was captured.
pub(crate) fn check(packet: &Packet<'_>, fact: &Fact, whole: bool, report: &mut Report) {
    let place = &Place::of(fact);
    if whole {
        checksums(packet, place, report);
        // IBA 9.2.4
        if packet.roce.pad.iter().any(|byte| *byte != 0) {
            let got = format!("{:02x?}", packet.roce.pad);
            report.find(Rule::PadZero, place, "pad bytes are not 0", got, "zeros");
        }
    }
    reserved(packet, place, report);
    // IBA 10.9.1
    if packet.roce.bth.pkey.0 & 0x7fff == 0 {
        let got = format!("{:#06x}", packet.roce.bth.pkey.0);
        report.find(Rule::PKey, place, "invalid P_Key", got, "a key whose low 15 bits are not 0");
    }
    congestion(packet, fact, place, report);
    if let Some(aeth) = fact.aeth {
        syndrome(aeth.syndrome, place, report);
    }
    sizes(packet, fact, place, report);
}

/// Whether whoever gets a packet takes it; `whole` if every byte of it was captured.
pub(crate) fn intact(packet: &Packet<'_>, fact: &Fact, whole: bool, report: &mut Report) -> bool {
    // IBA A17.3.3
    let Verdict::Bad { got, computed } = packet.icrc_verdict() else { return true };
    if whole {
        let hex = |bytes: [u8; 4]| format!("{:08x}", u32::from_be_bytes(bytes));
        report.find(Rule::Icrc, &Place::of(fact), "wrong ICRC", hex(got), hex(computed));
    }
    !whole
}

fn checksums(packet: &Packet<'_>, place: &Place, report: &mut Report) {
    if let Network::Ipv4 { header, options, .. } = &packet.network {
        let right = header.right_checksum(options);
        if header.checksum != right {
            let (offload, what) = (header.checksum == 0, "wrong IPv4 header checksum");
            let got = format!("{:#06x}", header.checksum);
            let wanted = format!("{right:#06x}");
            report.find_unless(offload, Rule::IpChecksum, place, what, got, wanted);
        }
    }
    let (Some(udp), Some(right)) = (packet.udp(), packet.compute_udp_checksum()) else { return };
    if udp.checksum != 0 && udp.checksum != right {
        let offload = udp.checksum == offloaded(packet);
        let what = if offload { "UDP checksum left to offload" } else { "wrong UDP checksum" };
        let (got, wanted) = (format!("{:#06x}", udp.checksum), format!("0, or {right:#06x}"));
        report.find_unless(offload, Rule::UdpChecksum, place, what, got, wanted);
    }
}

/// What Linux leaves for the card to complete: the sum over the pseudo-header, not inverted.
fn offloaded(packet: &Packet<'_>) -> u16 {
    let mut sum = urxe_wire::Checksum::new();
    match &packet.network {
        Network::Ipv4 { header, udp, .. } => {
            sum.add(&header.src.octets());
            sum.add(&header.dst.octets());
            sum.add(&udp.len.to_be_bytes());
        }
        Network::Ipv6 { header, udp } => {
            sum.add(&header.src.octets());
            sum.add(&header.dst.octets());
            sum.add(&udp.len.to_be_bytes());
        }
        Network::Grh(_) | Network::Local => {}
    }
    sum.add(&[0, urxe_wire::protocol::UDP]);
    !sum.finish()
}

fn reserved(packet: &Packet<'_>, place: &Place, report: &mut Report) {
    let (bth, ext) = (&packet.roce.bth, &packet.roce.ext);
    let ip = match &packet.network {
        Network::Ipv4 { header, .. } => u32::from(header.reserved),
        _ => 0,
    };
    let fields = [
        ("the IPv4 reserved flag", ip),
        ("the six reserved bits of the BTH beside FECN and BECN", u32::from(bth.reserved6)),
        ("the seven reserved bits of the BTH beside AckReq", u32::from(bth.reserved7)),
        ("the reserved byte of the DETH", ext.deth.map_or(0, |h| h.reserved.into())),
        ("the reserved byte of the XRCETH", ext.xrceth.map_or(0, |h| h.reserved.into())),
        ("the reserved bits of the FETH", ext.feth.map_or(0, |h| h.reserved)),
        ("the reserved bit of the AETH", ext.aeth.map_or(0, |h| h.reserved.into())),
    ];
    for (name, value) in fields {
        if value != 0 {
            report.find(Rule::Reserved, place, name, format!("{value:#x}"), 0);
        }
    }
}

fn congestion(packet: &Packet<'_>, fact: &Fact, place: &Place, report: &mut Report) {
    let bth = &packet.roce.bth;
    if fact.info.operation != Operation::CongestionNotification {
        if bth.fecn || bth.becn {
            let got = format!("FECN {}, BECN {}", u8::from(bth.fecn), u8::from(bth.becn));
            report.find(Rule::Congestion, place, "congestion bits of the BTH are set", got, "0, 0");
        }
        return;
    }
    // IBA A17.9.3
    let zeros = packet.roce.ext.cnp.is_none_or(|pad| pad.bytes == [0; 16]);
    let faults = [
        (!bth.becn, "BECN of a CNP", "0", "1"),
        (bth.ack_req, "AckReq of a CNP", "1", "0"),
        (bth.solicited, "SE of a CNP", "1", "0"),
        (bth.psn.value() != 0, "PSN of a CNP", "another", "0"),
        (!zeros, "the 16 bytes after a CNP's BTH", "others", "zeros"),
    ];
    for (wrong, what, got, wanted) in faults {
        if wrong {
            report.find(Rule::Cnp, place, what, got, wanted);
        }
    }
}

fn syndrome(syndrome: Syndrome, place: &Place, report: &mut Report) {
    // IBA 9.7.5.2.8
    let meaningless = match syndrome {
        Syndrome::Reserved(_) => true,
        Syndrome::Nak(code) => code == urxe_wire::NakCode::InvalidRdRequest,
        Syndrome::Ack(_) | Syndrome::RnrNak(_) => false,
    };
    let rd = place.opcode.and_then(urxe_wire::Opcode::info).map(|info| info.transport);
    if meaningless && rd != Some(Transport::Rd) {
        let got = format!("{:#04x}", syndrome.bits());
        report.find(Rule::Syndrome, place, "AETH syndrome", got, "an ACK, RNR NAK or NAK code");
    }
}

fn sizes(packet: &Packet<'_>, fact: &Fact, place: &Place, report: &mut Report) {
    let datagram = fact.info.transport == Transport::Ud;
    if datagram && fact.len > Mtu::B4096.bytes() {
        let (got, wanted) = (format!("{} bytes", fact.len), "at most 4096 bytes");
        report.find(Rule::DatagramSize, place, "datagram longer than any path MTU", got, wanted);
    }
    let ranged = matches!(fact.info.operation, Operation::Write | Operation::ReadRequest);
    // IBA C9-94
    if let Some(reth) = fact.reth
        && ranged
        && reth.dma_len > MAX_MESSAGE
    {
        let what = "the RETH asks for a longer message than there can be";
        report.find(Rule::MessageSize, place, what, reth.dma_len, "at most 2147483648");
    }
    if let Some(atomic) = fact.atomic
        && !atomic.va.is_multiple_of(8)
    {
        let got = format!("{:#x}", atomic.va);
        report.find(Rule::AtomicAlign, place, "an atomic's address", got, "a multiple of 8");
    }
    if fact.info.operation == Operation::AtomicWrite && fact.len != 8 {
        report.find(Rule::AtomicWriteSize, place, "payload of an ATOMIC WRITE", fact.len, 8);
    }
    if let Some(deth) = packet.roce.ext.deth
        && fact.flow.qpn == Qpn::GSI
        && deth.qkey != QKey::GSI
    {
        let (got, wanted) = (format!("{:#010x}", deth.qkey.0), "0x80010000");
        report.find(Rule::GsiQKey, place, "Q_Key of a datagram to QP1", got, wanted);
    }
}

/// A CM message, if the packet carries one.
pub(crate) fn mad(
    packet: &Packet<'_>,
    whole: bool,
    fact: &Fact,
    report: &mut Report,
) -> Option<(MadHeader, CmMessage)> {
    let to_gsi = fact.flow.qpn == Qpn::GSI && fact.info.transport == Transport::Ud;
    if !to_gsi || fact.info.operation != Operation::Send || !whole {
        return None;
    }
    let payload = packet.roce.payload;
    if let Ok((header, _)) = MadHeader::parse(payload)
        && header.class != ManagementClass::Communication
        && payload.len() == MAD_LEN
    {
        return None;
    }
    match CmMessage::parse(payload) {
        Ok(both) => Some(both),
        Err(error) => {
            let what = format!("{} {} of a CM MAD", error.header, error.field);
            report.find(Rule::CmMad, &Place::of(fact), what, error.got, error.wanted);
            None
        }
    }
}
