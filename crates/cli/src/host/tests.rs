use std::net::UdpSocket;

use super::*;

#[test]
fn capabilities_are_a_hexadecimal_set() {
    let status = "Name:\turxe\nCapPrm:\t0000000000000000\nCapEff:\t0000000000003000\nX:\t1\n";
    assert_eq!(effective(status), Some(0x3000));
    assert_eq!(effective("Name:\turxe\n"), None);
    assert_eq!(effective("CapEff:\tall\n"), None);
}

/// Looked at, not tried: `urxe ports` takes nobody's port, not even for a moment.
#[test]
fn a_port_is_taken_by_who_has_its_address_or_all() {
    let state = |address: &str, holders: &[&str]| {
        let holder = |a: &&str| Holder { address: a.parse().unwrap(), inode: 1 };
        let holders: Vec<_> = holders.iter().map(holder).collect();
        port_state(address.parse().unwrap(), Some(&holders))
    };
    // Addresses for documentation, which nobody shares here.
    for (address, holders, wanted) in [
        ("192.0.2.1", &[][..], PortState::Free),
        ("192.0.2.1", &["192.0.2.2", "2001:db8::1"], PortState::Free),
        ("192.0.2.1", &["192.0.2.2", "192.0.2.1"], PortState::Taken),
        ("192.0.2.1", &["0.0.0.0"], PortState::Taken),
        ("192.0.2.1", &["::"], PortState::Taken),
        ("2001:db8::1", &["::"], PortState::Taken),
        ("2001:db8::1", &["0.0.0.0"], PortState::Free),
    ] {
        assert_eq!(state(address, holders), wanted, "{address} beside {holders:?}");
    }
    assert_eq!(port_state(Ipv4Addr::LOCALHOST.into(), None), PortState::Unknown);
}

#[test]
fn a_limit_may_be_none() {
    let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                  Max cpu time              unlimited            unlimited            seconds\n\
                  Max open files            1024                 524288               files\n";
    assert_eq!(soft_limit(limits, "Max open files"), Some(1024));
    assert_eq!(soft_limit(limits, "Max cpu time"), None);
    assert_eq!(soft_limit(limits, "Max of nothing"), None);
}

#[test]
#[cfg(target_endian = "little")]
fn sockets_of_the_port_are_found_in_the_tables() {
    let v4 = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
        \x20 12: 0100007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000  \
        0 4242 2 0000000000000000 0\n\
        \x20 13: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0  \
        0 4243 2 0000000000000000 0\n";
    let localhost: IpAddr = Ipv4Addr::LOCALHOST.into();
    assert_eq!(held(v4), [Holder { address: localhost, inode: 4242 }]);
    let v6 = "  sl  local_address\n\
        \x20 1: 000000FD000000000000000002000000:12B7 00000000000000000000000000000000:0000 07 \
        00000000:00000000 00:00000000 00000000     0        0 77 2 0000000000000000 0\n";
    assert_eq!(held(v6), [Holder { address: "fd00::2".parse().unwrap(), inode: 77 }]);
    for broken in ["head\n1: zz:12B7 0 0", "head\n1: 0100007F:12B7", "head\n\n", "", "head\n1: 01"]
    {
        assert_eq!(held(broken), [], "{broken}");
    }
}

#[test]
fn the_process_that_has_a_socket_is_named() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
    let inode = socket_number(Path::new(&format!("/proc/self/fd/{fd}"))).unwrap();
    let owners = owners(&[inode]);
    assert_eq!(owners.of.len(), 1);
    assert_eq!(owners.of[&inode].1, std::process::id());
}

#[test]
fn rdma_devices_are_told_apart() {
    let root = std::env::temp_dir().join(format!("urxe-host-{}", std::process::id()));
    fs::create_dir_all(root.join("mlx5_0/device/net/eth7")).unwrap();
    fs::create_dir_all(root.join("rxe0")).unwrap();
    fs::write(root.join("rxe0/parent"), "eth1\n").unwrap();
    fs::create_dir_all(root.join("new0")).unwrap();
    let found = rdma_devices(&root);
    fs::remove_dir_all(&root).unwrap();
    let of = |name: &str, interface: Option<&str>, software| RdmaDevice {
        name: name.into(),
        interface: interface.map(Into::into),
        software,
    };
    let wanted = [
        of("mlx5_0", Some("eth7"), false),
        of("new0", None, false),
        of("rxe0", Some("eth1"), true),
    ];
    assert_eq!(found, wanted);
    assert_eq!(rdma_devices(&root), []);
}
