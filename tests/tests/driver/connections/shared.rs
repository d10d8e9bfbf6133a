//! Several devices on one address: the broker hands MADs on to whom they are for.

use std::net::{IpAddr, Ipv4Addr};
use std::thread;

use urxe::cm::Listener;

use super::{Host, life, soon, talk};

fn own(last: u8) -> IpAddr {
    let [.., c, d] = std::process::id().to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, c.clamp(1, 254), d.clamp(1, 254), last))
}

#[test]
fn each_gets_the_requests_to_its_own_port() {
    let here = own(90);
    let servers = [Host::at(here), Host::at(here), Host::at(here)];
    let listeners: Vec<_> = servers.iter().map(Host::listen).collect();
    let outside = Host::open();
    let inside = Host::at(here);
    for client in [&outside, &inside] {
        for (server, listener) in servers.iter().zip(&listeners) {
            thread::scope(|scope| {
                let far = scope.spawn(|| server.accept(listener.incoming().unwrap(), &soon()));
                let near = client.connect(listener.local_addr(), &soon()).unwrap();
                let far = far.join().unwrap().unwrap();
                talk((client, &near), (server, &far));
                near.disconnect().unwrap();
            });
        }
    }
}

#[test]
fn a_port_is_one_device_s() {
    let here = own(91);
    let (a, b) = (Host::at(here), Host::at(here));
    let first = a.listen();
    let why = Listener::bind(&b.context, first.local_addr()).unwrap_err().to_string();
    assert!(why.contains("another process"), "{why}");
    let to = first.local_addr();
    drop(first);
    // It is free again with its holder.
    let second = Listener::bind(&b.context, to).unwrap();
    assert_eq!(second.local_addr(), to);
}

#[test]
fn a_connection_lives_and_dies_on_a_shared_address() {
    let here = own(92);
    life(&Host::at(here), &Host::at(here));
}
