use super::*;

/// The loopback interface is the first of every namespace.
const LO: u32 = 1;

#[test]
fn the_loopback_interface_has_an_mtu_and_no_address() {
    let link = Netlink::open().unwrap().link(LO).unwrap();
    assert_eq!((link.mac, link.hardware), (Mac([0; 6]), libc::ARPHRD_LOOPBACK));
    assert!(link.mtu >= 1500, "{link:?}");
}

#[test]
fn what_is_not_there_is_an_error_of_the_kernels() {
    let netlink = Netlink::open().unwrap();
    let gone = netlink.link(0x7fff_fff0).unwrap_err();
    assert_eq!(gone.raw_os_error(), Some(libc::ENODEV), "{gone}");
    assert_eq!(netlink.neighbour([192, 0, 2, 7].into(), LO), None);
}

#[test]
fn our_own_addresses_are_local() {
    let netlink = Netlink::open().unwrap();
    let route = netlink.route([127, 0, 0, 1].into(), LO).unwrap();
    assert_eq!(route, Route { local: true, gateway: None });
}

#[test]
fn attributes_are_found_behind_each_other_and_never_beyond_the_end() {
    let mut body = vec![9; 12];
    for (kind, value) in [(5_u16, &[1, 2, 3][..]), (7, &[4, 5, 6, 7])] {
        let len = u16::try_from(value.len() + 4).unwrap();
        body.extend_from_slice(&len.to_ne_bytes());
        body.extend_from_slice(&kind.to_ne_bytes());
        body.extend_from_slice(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    assert_eq!(find(&body, 12, 5), Some(&[1, 2, 3][..]));
    assert_eq!(find(&body, 12, 7), Some(&[4, 5, 6, 7][..]));
    assert_eq!(find(&body, 12, 8), None);
    for len in 0..body.len() {
        assert_ne!(find(&body[..len], 12, 7), Some(&[4, 5, 6, 7][..]), "cut to {len}");
    }
    // An attribute that says it has no length would never be passed.
    assert_eq!(find(&[0; 8], 0, 3), None);
}

#[test]
fn an_error_message_gives_its_code() {
    let mut message = [0; 20];
    message[4..6].copy_from_slice(&u16::try_from(libc::NLMSG_ERROR).unwrap().to_ne_bytes());
    message[16..].copy_from_slice(&(-libc::ENETUNREACH).to_ne_bytes());
    let e = body_of(&message).unwrap_err();
    assert_eq!(e.raw_os_error(), Some(libc::ENETUNREACH));
    assert_eq!(body_of(&message[..9]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}
