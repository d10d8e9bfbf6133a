use super::*;

#[test]
fn vlan_tags_are_read() {
    assert_eq!("77".parse(), Ok(VlanTag { id: 77, priority: 0 }));
    assert_eq!("4094:7".parse(), Ok(VlanTag { id: 4094, priority: 7 }));
    for bad in ["", "4095", "1:8", "1:", ":1", "-1", "x"] {
        assert_eq!(bad.parse::<VlanTag>(), Err(NotAVlan(bad.to_owned())));
    }
}

#[test]
fn an_interface_that_is_not_there_or_has_not_the_address_is_named() {
    let open = |address: [u8; 4], name: &str| {
        let interface = Some(name.to_owned());
        RawPort::open(&RawConfig { interface, ..RawConfig::new(address.into()) }).unwrap_err()
    };
    let none = open([127, 0, 0, 1], "nosuch0");
    assert!(matches!(&none, PortError::NoInterface(name) if name == "nosuch0"), "{none}");
    let other = open([192, 0, 2, 1], "lo");
    assert!(matches!(other, PortError::NotOfInterface { .. }), "{other}");
    let foreign = RawPort::open(&RawConfig::new([192, 0, 2, 1].into())).unwrap_err();
    assert!(matches!(foreign, PortError::NotOurs(_)), "{foreign}");
}
