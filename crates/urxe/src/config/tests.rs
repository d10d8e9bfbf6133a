use super::*;

fn set(name: &str, value: &str) -> Result<Config, String> {
    let mut config = Config::default();
    config.set(name, value).map(|()| config).map_err(|e| e.to_string())
}

#[test]
fn each_setting_is_read() {
    let address = Address::Of("10.0.0.1".parse().unwrap());
    assert_eq!(set("ADDR", "10.0.0.1").unwrap().address, address);
    assert_eq!(set("ADDR", "auto").unwrap().address, Address::Loopback);
    assert_eq!(set("mtu", "2048").unwrap().mtu, Some(Mtu::B2048));
    assert_eq!(set("PROFILE", "rxe").unwrap().profile, Profile::RXE);
    assert_eq!(set("ICRC", "strict").unwrap().icrc, IcrcMode::Strict);
    assert_eq!(set("GSO", "off").unwrap().gso, Some(false));
    assert_eq!(set("GSO", "auto").unwrap().gso, None);
    assert_eq!(set("SHARED", "on").unwrap().shared, Some(true));
    assert_eq!(set("SHARED", "off").unwrap().shared, Some(false));
    assert_eq!(set("SHARED", "auto").unwrap().shared, None);
    assert_eq!(set("WINDOW", "64").unwrap().window, 64);
    assert_eq!(set("PORT", "raw:eth0").unwrap().port, PortKind::Raw("eth0".into()));
    assert_eq!(set("PORT", "udp").unwrap().port, PortKind::Udp);
    assert_eq!(set("PCAP", "a.pcapng").unwrap().pcap, Some("a.pcapng".into()));
    assert_eq!(set("LOSS", "5%").unwrap().faults, "loss=5%");
    assert_eq!(set("FAULTS", "tx.loss=5%").unwrap().faults, "tx.loss=5%");
    assert_eq!(set("BUFFER", "8192").unwrap().buffer, 8192);
    assert_eq!(set("VLAN", "7:3").unwrap().vlan, Some(VlanTag { id: 7, priority: 3 }));
    assert_eq!(set("IP_ID", "counter").unwrap().ip_id, Some(IpId::Counter));
    assert_eq!(set("IP_ID", "random").unwrap().ip_id, Some(IpId::Random(0)));
    assert_eq!(set("IP_ID", "65535").unwrap().ip_id, Some(IpId::Fixed(0xffff)));
    assert!(set("UDP6_CHECKSUM", "on").unwrap().udp6_checksum);
    assert_eq!(set("SEED", "9").unwrap().seed, Some(9));
    assert!(set("TRACE", "on").unwrap().trace && !set("TRACE", "off").unwrap().trace);
    assert!(set("LOG", "whatever").is_ok(), "not a device's");
}

#[test]
fn what_cannot_be_read_says_what_is_wanted() {
    let wants = |name, value, wanted: &str| {
        let text = set(name, value).unwrap_err();
        assert!(text.contains(wanted), "{text}");
        assert!(text.contains(value), "{text}");
    };
    wants("ADDR", "localhorst", "IP address");
    wants("MTU", "1500", "256, 512, 1024, 2048 or 4096");
    wants("MTU", "big", "not a number");
    wants("PROFILE", "mlx", "strict, rxe or connectx");
    wants("ICRC", "maybe", "strict, solve or off");
    wants("GSO", "1", "on, off or auto");
    wants("SHARED", "yes", "on, off or auto");
    wants("WINDOW", "3", "4 to 4194304");
    wants("PORT", "raw:", "raw:eth0");
    wants("PORT", "tcp", "wanted udp");
    wants("LOSS", "much", "%");
    wants("DUP", "200%", "100");
    wants("BUFFER", "1", "4096 to 1073741824");
    wants("TRACE", "yes", "wanted on or off");
    wants("VLAN", "4095", "0 to 4094");
    wants("VLAN", "7:8", "priority 0 to 7");
    wants("IP_ID", "65536", "counter, random");
    wants("UDP6_CHECKSUM", "auto", "on or off");
    wants("SEED", "-1", "not a number");
}

#[test]
fn every_name_is_a_setting() {
    for name in Config::NAMES {
        // Only a file may be called this.
        assert_eq!(set(name, "?").is_ok(), name == "pcap", "{name}");
    }
}

#[test]
fn a_files_name_need_be_no_text() {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let mut config = Config::default();
    config.set_os("PCAP", OsStr::from_bytes(b"a\xff%p")).unwrap();
    let name = crate::link::of_this_process(config.pcap.as_deref().unwrap());
    let wanted = [b"a\xff", std::process::id().to_string().as_bytes()].concat();
    assert_eq!(name.into_os_string().into_vec(), wanted);
    let error = config.set_os("MTU", OsStr::from_bytes(b"\xff")).unwrap_err().to_string();
    assert!(error.contains("256 to 4096"), "{error}");
}

#[test]
fn a_fault_given_twice_is_an_error() {
    for (first, second) in [
        (("LOSS", "1%"), ("FAULTS", "tx.loss=2%")),
        (("FAULTS", "loss=1%"), ("LOSS", "1%")),
        (("DUP", "1%"), ("FAULTS", "rx.duplicate=2%")),
        (("FAULTS", "dup=1%"), ("DUP", "2%")),
    ] {
        let mut config = Config::default();
        config.set(first.0, first.1).unwrap();
        let error = config.set(second.0, second.1).unwrap_err().to_string();
        assert!(error.contains("is given twice"), "{error}");
    }
}
