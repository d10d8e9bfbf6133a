use super::*;

#[test]
fn a_gid_is_an_ip_address_and_ipv4_is_mapped() {
    for text in ["10.77.0.12", "2001:db8::7", "fe80::1"] {
        let ip: IpAddr = text.parse().unwrap();
        assert_eq!(Gid::from(ip).ip(), ip);
    }
    let v4: IpAddr = "10.77.0.12".parse().unwrap();
    let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 12];
    assert_eq!(Gid::from(v4), Gid(mapped));
    assert_eq!(Gid(mapped).to_string(), "::ffff:10.77.0.12");
    assert_eq!(format!("{:?}", Gid(mapped)), "Gid(::ffff:10.77.0.12)");
}
