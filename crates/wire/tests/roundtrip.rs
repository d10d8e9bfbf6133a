//! Round trips of anything that could stand on a wire.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::{collection::vec, prelude::*, sample::select};
use urxe_wire::{
    Aeth, AtomicAckEth, AtomicEth, Bth, CnpPad, Deth, Error, Ethernet, Ext, Feth, Grh, Ieth, ImmDt,
    Ipv4, Ipv6, Link, LinkType, Lrh, MAX_VLANS, Network, NextHeader, Opcode, Packet, ParseError,
    RdEth, Repr, Reth, Roce, Sll, Sll2, Udp, Verdict, Vlan, Vlans, XrcEth, protocol,
};

/// What parses emits the bytes it was parsed from, and parses again to the same value.
fn exact<R: Repr + PartialEq + core::fmt::Debug>(bytes: &[u8]) -> Result<R, Error> {
    let (header, rest) = R::parse(bytes)?;
    let mut out = vec![0; R::LEN];
    assert_eq!(header.emit(&mut out), Ok(R::LEN));
    assert_eq!(out, bytes[..R::LEN]);
    assert_eq!(rest, &bytes[R::LEN..]);
    assert!(header.emit(&mut out[1..]).is_err(), "a byte too few");
    assert!(R::parse(&bytes[..R::LEN - 1]).is_err(), "a byte too few");
    Ok(header)
}

proptest! {
    #[test]
    fn every_header_round_trips(bytes in vec(any::<u8>(), 64)) {
        macro_rules! always {
            ($($header:ident)*) => {$(
                prop_assert!(exact::<$header>(&bytes).is_ok(), stringify!($header));
            )*};
        }
        always!(Reth Aeth AtomicEth AtomicAckEth ImmDt Ieth Deth XrcEth RdEth CnpPad);
        always!(Ethernet Vlan Sll Sll2 Udp);
    }

    #[test]
    fn headers_that_refuse_values_refuse_just_those(mut bytes in vec(any::<u8>(), 64)) {
        prop_assert_eq!(exact::<Bth>(&bytes).is_ok(), bytes[1] & 0xf == 0);
        prop_assert_eq!(exact::<Feth>(&bytes).is_ok(), bytes[3] >> 4 & 3 < 2);
        prop_assert_eq!(exact::<Ipv4>(&bytes).is_ok(), (0x45..=0x4f).contains(&bytes[0]));
        prop_assert_eq!(exact::<Ipv6>(&bytes).is_ok(), bytes[0] >> 4 == 6);
        prop_assert_eq!(exact::<Grh>(&bytes).is_ok(), bytes[0] >> 4 == 6);
        prop_assert_eq!(exact::<Lrh>(&bytes).is_ok(), bytes[0] & 0xf == 0);
        bytes[0] = 0x45;
        bytes[1] &= 0xf0;
        bytes[3] &= 0xdf;
        prop_assert!(exact::<Bth>(&bytes).is_ok() && exact::<Feth>(&bytes).is_ok());
        prop_assert!(exact::<Ipv4>(&bytes).is_ok());
        bytes[0] = 0x60;
        prop_assert!(exact::<Ipv6>(&bytes).is_ok() && exact::<Grh>(&bytes).is_ok());
        prop_assert!(exact::<Lrh>(&bytes).is_ok());
    }
}

/// The bytes that a packet is made of; owned, for a packet borrows.
#[derive(Debug, Clone)]
struct Parts {
    link: LinkType,
    v6: bool,
    udp_checksum: bool,
    headers: Vec<u8>,
    vlans: usize,
    options: Vec<u8>,
    opcode: Opcode,
    payload: Vec<u8>,
    pad: [u8; 3],
    trailer: Vec<u8>,
}

fn parts() -> impl Strategy<Value = Parts> {
    let opcodes: Vec<_> = (0..=255).map(Opcode).filter(|o| o.info().is_some()).collect();
    let link = (select(&LinkType::ALL[..]), any::<bool>(), any::<bool>(), 0..=MAX_VLANS);
    let bytes = (vec(any::<u8>(), 256), vec(any::<u8>(), 0..300), any::<[u8; 3]>());
    let rest = (0..=10_usize, vec(any::<u8>(), 0..20), select(opcodes));
    (link, bytes, rest).prop_map(|(link, (headers, payload, pad), (words, trailer, opcode))| {
        let (link, v6, udp_checksum, vlans) = link;
        let options = headers[200..200 + words * 4].to_vec();
        Parts { link, v6, udp_checksum, headers, vlans, options, opcode, payload, pad, trailer }
    })
}

/// The first header of type `R` that some of these bytes hold, its fields as random as can be.
fn any_header<R: Repr>(bytes: &[u8], force: impl Fn(&mut [u8])) -> R {
    let mut bytes = bytes[..R::LEN].to_vec();
    force(&mut bytes);
    R::parse(&bytes).unwrap().0
}

impl Parts {
    /// A sealed packet of these bytes, the fields that sealing leaves alone being random.
    fn packet(&self) -> Packet<'_> {
        let h = &self.headers;
        let link = match self.link {
            LinkType::Ethernet => Link::Ethernet(any_header(h, |_| ())),
            LinkType::RawIp => Link::RawIp,
            LinkType::Sll => Link::Sll(any_header(h, |_| ())),
            LinkType::Sll2 => Link::Sll2(any_header(h, |_| ())),
            LinkType::Infiniband => {
                Link::Infiniband { lrh: any_header(h, |b| b[0] &= 0xf0), vcrc: [0; 2] }
            }
        };
        let mut vlans = Vlans::NONE;
        if link.ethertype().is_some() {
            for i in 0..self.vlans {
                vlans.push(any_header(&h[20 + i * 4..], |_| ())).unwrap();
            }
        }
        let network = self.network(link.is_native());
        let info = self.opcode.info().unwrap();
        let mut bth: Bth = any_header(&h[60..], |b| b[1] &= 0xf0);
        bth.opcode = self.opcode;
        let mut ext_bytes = h[80..140].to_vec();
        for word in ext_bytes.chunks_mut(4) {
            word[3] &= 0xdf;
        }
        let (ext, _) = Ext::parse(info.headers, &ext_bytes).unwrap();
        let payload = if info.payload { &self.payload[..] } else { &[] };
        let mut roce = Roce::new(bth, ext, payload);
        roce.pad = &self.pad[..roce.pad.len()];
        let mut packet = Packet { link, vlans, network, roce, trailer: &self.trailer };
        packet.seal().unwrap();
        packet
    }

    fn network(&self, native: bool) -> Network<'_> {
        let h = &self.headers[140..];
        let mut udp: Udp = any_header(h, |_| ());
        udp.dst_port = urxe_wire::ROCE_UDP_PORT;
        udp.checksum = u16::from(self.udp_checksum);
        match (native, self.v6) {
            (true, true) => {
                let mut grh: Grh = any_header(h, |b| b[0] = 0x6f);
                grh.next_header = protocol::IBA_TRANSPORT;
                Network::Grh(grh)
            }
            (true, false) => Network::Local,
            (false, true) => {
                let mut header: Ipv6 = any_header(h, |b| b[0] = 0x63);
                header.next_header = protocol::UDP;
                Network::Ipv6 { header, udp }
            }
            (false, false) => {
                let mut header: Ipv4 = any_header(h, |b| b[0] = 0x45);
                header.protocol = protocol::UDP;
                (header.more_fragments, header.fragment_offset) = (false, 0);
                Network::Ipv4 { header, options: &self.options, udp }
            }
        }
    }
}

/// Parses, and if that succeeds, checks that the same bytes are emitted and all can be computed.
fn accepted_is_exact(link: LinkType, bytes: &[u8]) -> Result<(), ParseError> {
    let packet = Packet::parse(link, bytes)?;
    assert_eq!(packet.len(), bytes.len());
    let mut out = vec![0; bytes.len()];
    assert_eq!(packet.emit(&mut out), Ok(bytes.len()));
    assert_eq!(out, bytes);
    let _ = (packet.icrc_verdict(), packet.icrc_verdict_hidden_id());
    let _ = (packet.compute_vcrc(), packet.compute_udp_checksum());
    Ok(())
}

proptest! {
    #[test]
    fn whole_packets_round_trip(parts in parts()) {
        let packet = parts.packet();
        let mut bytes = vec![0; packet.len()];
        prop_assert_eq!(packet.emit(&mut bytes), Ok(bytes.len()));
        prop_assert_eq!(Packet::parse(parts.link, &bytes), Ok(packet));
        prop_assert_eq!(packet.icrc_verdict(), Verdict::Ok);
        prop_assert!(accepted_is_exact(parts.link, &bytes).is_ok());
        if let Link::Infiniband { lrh, vcrc } = packet.link {
            prop_assert_eq!(packet.compute_vcrc(), Some(vcrc));
            prop_assert_eq!(lrh.next == NextHeader::Global, parts.v6);
        }
        match packet.network {
            Network::Ipv4 { mut header, udp, .. } if parts.options.is_empty() => {
                // What a socket's user sees of a sender that sets DF.
                (header.reserved, header.dont_fragment) = (false, true);
                let network = Network::Ipv4 { header, options: &[], udp };
                let mut plain = Packet { network, ..packet };
                plain.seal().unwrap();
                let id = header.id;
                let wanted = if id == 0 { Verdict::Ok } else { Verdict::OkSolvedId(id) };
                prop_assert_eq!(plain.icrc_verdict_hidden_id(), wanted);
            }
            Network::Ipv4 { .. } => {}
            _ => prop_assert_eq!(packet.icrc_verdict_hidden_id(), Verdict::Ok),
        }
    }

    #[test]
    fn a_packet_with_changed_and_missing_bytes_never_panics(
        parts in parts(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        len in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let packet = parts.packet();
        let mut bytes = vec![0; packet.len()];
        packet.emit(&mut bytes).unwrap();
        for (at, value) in changes {
            // Most in the headers, where they matter.
            let at = at.index(bytes.len().min(100));
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(len.index(bytes.len()));
        }
        let _ = accepted_is_exact(parts.link, &bytes);
    }

    #[test]
    fn random_bytes_never_panic(
        link in select(&LinkType::ALL[..]),
        bytes in vec(any::<u8>(), 0..200),
    ) {
        let _ = accepted_is_exact(link, &bytes);
        if let Ok(roce) = Roce::parse(&bytes) {
            let mut out = vec![0; bytes.len()];
            prop_assert_eq!(roce.emit(&mut out), Ok(bytes.len()));
            prop_assert_eq!(out, bytes);
        }
    }

    #[test]
    fn a_transport_packet_of_each_opcode_round_trips(
        opcode in any::<u8>(),
        mut bytes in vec(any::<u8>(), 12..120),
    ) {
        (bytes[0], bytes[1]) = (opcode, bytes[1] & 0xf0);
        match Roce::parse(&bytes) {
            Ok(roce) => {
                let mut out = vec![0; bytes.len()];
                prop_assert_eq!(roce.emit(&mut out), Ok(bytes.len()));
                prop_assert_eq!(out, bytes);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
