use super::*;

fn interface(name: &str, mtu: u32, address: &str, ethernet: bool) -> Interface {
    let address = address.parse().unwrap();
    Interface { name: name.into(), index: 3, mtu, address, up: name != "down0", ethernet }
}

#[test]
fn what_a_port_would_meet_is_said() {
    // No processes have such numbers.
    let holders =
        [(1, u32::MAX), (5, 0), (63, u32::MAX - 1)].map(|(slot, pid)| Holder { slot, pid });
    let shared = urxe::Sharing { broker: u32::MAX - 2, holders: holders.to_vec(), unrouted: 3 };
    let rows = [
        row(&interface("lo", 65536, "127.0.0.1", true), &PortState::Free, Some(true)),
        row(&interface("eth0", 1500, "10.0.0.9", true), &PortState::Taken, Some(true)),
        row(&interface("eth1", 1500, "10.0.1.9", true), &PortState::Shared(shared), Some(true)),
        row(&interface("eth0", 1500, "fd00::9", true), &PortState::Free, Some(false)),
        row(&interface("eth0", 1500, "fe80::9", true), &PortState::Free, Some(true)),
        row(&interface("tun0", 300, "10.1.0.9", false), &PortState::Free, Some(true)),
        row(&interface("down0", 9000, "10.2.0.9", true), &PortState::Unknown, None),
    ];
    let mut out = Vec::new();
    table(&rows, &Palette::PLAIN, &mut out).unwrap();
    insta::assert_snapshot!("ports", String::from_utf8(out).unwrap());
    insta::assert_snapshot!("ports_json", serde_json::to_string(&rows[1]).unwrap());
    insta::assert_snapshot!("ports_json_shared", serde_json::to_string(&rows[2]).unwrap());
}
