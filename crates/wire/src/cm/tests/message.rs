use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::{Error, FieldValue, Fields, MAD_LEN, MadHeader, Repr, Wanted, cm::*};

fn rtu() -> CmMessage {
    Rtu { local_comm_id: CommId(1), remote_comm_id: CommId(2), private_data: [7; 224] }.into()
}

fn rtu_mad() -> [u8; MAD_LEN] {
    let mut mad = [0; MAD_LEN];
    let message = rtu();
    message.emit(&message.header(0x1122_3344_5566_7788), &mut mad).unwrap();
    mad
}

#[test]
fn a_mad_header_stands_at_its_offsets() {
    let mad = rtu_mad();
    let expected =
        [1, 7, 2, 3, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0x14];
    assert_eq!(mad[..18], expected);
    assert_eq!(mad[18..24], [0; 6]);

    let mut bytes = [0; 24];
    bytes[4..8].copy_from_slice(&[0x0a, 0x0b, 0x0c, 0x0d]);
    bytes[18..24].copy_from_slice(&[1, 2, 3, 4, 5, 6]);
    let (header, _) = MadHeader::parse(&bytes).unwrap();
    assert_eq!((header.status, header.class_specific), (0x0a0b, 0x0c0d));
    assert_eq!((header.reserved, header.attribute_modifier), (0x0102, 0x0304_0506));
}

#[test]
fn what_is_no_cm_message_is_refused_by_its_field() {
    let cases = [
        (0, 2, "MAD base version: got 2, wanted 1"),
        (1, 3, "MAD class: got 3, wanted 7"),
        (2, 1, "MAD class version: got 1, wanted 2"),
        (3, 0x81, "MAD method: got 129, wanted 3"),
        (17, 0x0f, "CM attribute id: got 15, wanted 16 to 26"),
        (17, 0x1b, "CM attribute id: got 27, wanted 16 to 26"),
    ];
    for (at, byte, text) in cases {
        let mut mad = rtu_mad();
        mad[at] = byte;
        assert_eq!(CmMessage::parse(&mad).unwrap_err().to_string(), text);
    }
}

#[test]
fn a_mad_is_256_bytes_long() {
    let mad = rtu_mad();
    let mut long = [0; 257];
    long[..256].copy_from_slice(&mad);
    for bytes in [&mad[..0], &mad[..23], &mad[..255], &long] {
        let got = bytes.len() as u64;
        let error = Error::new("MAD", "length", got, Wanted::Exactly(256));
        assert_eq!(CmMessage::parse(bytes), Err(error));
    }
    let mut short = [9; 255];
    let error = rtu().emit(&rtu().header(0), &mut short).unwrap_err();
    assert_eq!(error, Error::short("MAD", 255, 256));
    assert_eq!(short, [9; 255], "nothing is written");
}

#[test]
fn the_attribute_sent_is_the_messages_own() {
    let header = CmMessage::from(Drep::default()).header(5);
    let mut mad = [0; MAD_LEN];
    rtu().emit(&header, &mut mad).unwrap();
    let (header, message) = CmMessage::parse(&mad).unwrap();
    assert_eq!(header.attribute_id, CmAttribute::Rtu.code());
    assert_eq!((message, message.name()), (rtu(), "CM RTU"));
}

#[test]
fn the_comm_ids_of_any_message_are_at_hand() {
    assert_eq!(rtu().local_comm_id(), Some(CommId(1)));
    assert_eq!(rtu().remote_comm_id(), Some(CommId(2)));
    let req = CmMessage::from(Req { local_comm_id: CommId(3), ..Req::default() });
    assert_eq!((req.local_comm_id(), req.remote_comm_id()), (Some(CommId(3)), None));
    assert_eq!(CmMessage::from(SidrReq::default()).local_comm_id(), None);
}

#[test]
fn private_data_is_padded_and_its_length_checked() {
    assert_eq!(private_data::<4>(&[1, 2]), Ok([1, 2, 0, 0]));
    assert_eq!(private_data::<4>(&[1; 4]), Ok([1; 4]));
    let error = private_data::<4>(&[1; 5]).unwrap_err();
    assert_eq!(error.to_string(), "CM private data length: got 5, wanted at most 4");
}

#[test]
fn an_ipv6_header_leads_the_private_data() {
    let source = SocketAddr::new(IpAddr::V6("2001:db8::7".parse().unwrap()), 0xe01e);
    let destination: IpAddr = "2001:db8::8".parse().unwrap();
    let ip = IpHeader::new(source, destination).unwrap();
    let private_data: [u8; 92] = ip.with_data(b"hello").unwrap();
    assert_eq!(private_data[..4], [0, 0x60, 0xe0, 0x1e]);
    assert_eq!(private_data[4..20], "2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
    assert_eq!(private_data[20..36], "2001:db8::8".parse::<Ipv6Addr>().unwrap().octets());

    let req = Req { service_id: ServiceId::tcp(1), private_data, ..Req::default() };
    let (parsed, data) = req.ip_header().unwrap();
    assert_eq!((parsed.source(), parsed.destination()), (source, destination));
    assert_eq!((&data[..5], data.len()), (&b"hello"[..], 56));

    let error = ip.with_data::<92>(&[0; 57]).unwrap_err();
    assert_eq!(error.to_string(), "CM IP data length: got 57, wanted at most 56");
}

#[test]
fn an_ipv4_header_keeps_its_pads() {
    let mut bytes: [u8; 36] = core::array::from_fn(|i| u8::try_from(i).unwrap());
    bytes[1] = 0x4f;
    let (ip, _) = IpHeader::parse(&bytes).unwrap();
    assert_eq!(ip.source().to_string(), "16.17.18.19:515");
    assert_eq!(ip.destination().to_string(), "32.33.34.35");
    let mut out = [0; 36];
    ip.emit(&mut out).unwrap();
    assert_eq!(out, bytes);
}

#[test]
fn what_is_no_ip_header_is_refused_by_its_field() {
    let refused = |service, bytes: &[u8]| {
        let private_data = private_data(bytes).unwrap();
        let req = Req { service_id: service, private_data, ..Req::default() };
        req.ip_header().unwrap_err().to_string()
    };
    let tcp = ServiceId::tcp(9);
    assert_eq!(refused(tcp, &[0x10, 0x40]), "CM IP version: got 16, wanted 0");
    assert_eq!(refused(tcp, &[0, 0x50]), "CM IP family: got 5, wanted one of 4, 6");
    let other = refused(ServiceId(9), &[0, 0x40]);
    assert!(other.starts_with("CM REQ service id: got 9, wanted one of"), "{other}");

    let v4: SocketAddr = "10.0.0.1:1".parse().unwrap();
    let error = IpHeader::new(v4, "::1".parse().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "CM IP destination family: got 6, wanted 4");
}

#[test]
fn all_fields_can_be_walked_by_name() {
    let ip = IpHeader::new("10.0.0.1:99".parse().unwrap(), "10.0.0.2".parse().unwrap()).unwrap();
    let req = CmMessage::from(Req {
        local_comm_id: CommId(0x10),
        service_id: ServiceId::tcp(7174),
        mtu: MtuCode(3),
        private_data: ip.with_data(&[]).unwrap(),
        ..Req::default()
    });
    let mut seen = vec![];
    req.for_each_field(&mut |name, _, value| seen.push((name, value.to_string())));
    let text = |name| &seen.iter().find(|(n, _)| *n == name).unwrap().1;
    assert_eq!(seen.len(), 29, "28 of the REQ and its IP header");
    assert_eq!(text("local_comm_id"), "0x00000010");
    assert_eq!(text("service_id"), "0x0000000001061c06 (TCP port 7174)");
    assert_eq!(text("transport_service"), "0 (reliable connection)");
    assert_eq!(text("mtu"), "3 (1024 bytes)");
    assert!(text("primary").contains("local_gid: ::,"), "{}", text("primary"));
    assert!(text("ip_header").contains("source: 10.0.0.1, "));

    let mut groups = 0;
    req.for_each_field(&mut |_, _, value| {
        groups += u32::from(matches!(value, FieldValue::Group(_)));
    });
    assert_eq!(groups, 3);

    let sidr = |service_id| {
        let private_data = ip.with_data(&[]).unwrap();
        let mut last = "";
        CmMessage::from(SidrReq { service_id, private_data, ..SidrReq::default() })
            .for_each_field(&mut |name, _, _| last = name);
        last
    };
    assert_eq!(sidr(ServiceId::udp(7174)), "ip_header");
    assert_eq!(sidr(ServiceId(7174)), "private_data", "no IP service, no IP header");
}

#[test]
fn fields_say_where_they_stand() {
    let ip = IpHeader::new("[::1]:99".parse().unwrap(), "::2".parse().unwrap()).unwrap();
    let messages = [
        CmMessage::from(Req {
            service_id: ServiceId::tcp(1),
            private_data: ip.with_data(&[]).unwrap(),
            ..Req::default()
        }),
        CmMessage::from(Rep::default()),
    ];
    for message in messages {
        let (mut end, mut data) = (0, 0);
        message.for_each_field(&mut |name, bits, value| {
            if name == "ip_header" {
                assert_eq!(bits, data..data + 36 * 8, "it leads the private data");
                let FieldValue::Group(header) = value else { panic!("{name} is no group") };
                let mut inner = 0;
                header.for_each_field(&mut |_, bits, _| {
                    assert_eq!(bits.start, inner);
                    inner = bits.end;
                });
                assert_eq!(inner, 36 * 8);
                return;
            }
            assert_eq!(bits.start, end, "{name}");
            (data, end) = (bits.start, bits.end);
        });
        assert_eq!(end, 232 * 8);
    }
}
