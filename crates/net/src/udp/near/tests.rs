use std::cell::Cell;

use super::*;

fn address(n: u16) -> IpAddr {
    let [high, low] = n.to_be_bytes();
    [10, 0, high, low].into()
}

/// Peers are many: to ask anew for each costs more than the send.
#[test]
fn the_host_is_asked_once_a_second_however_many_destinations_there_are() {
    let (near, start, asked) = (Near::default(), Instant::now(), Cell::new(0));
    let list = || {
        asked.set(asked.get() + 1);
        Ok(vec![address(7)])
    };
    for n in (0..1000).chain(0..1000) {
        assert_eq!(near.has(address(n), start, list), n == 7);
    }
    assert_eq!(asked.get(), 1);
    // An address that came meanwhile is seen, and one that went.
    let later = start + REFRESH;
    let list = || {
        asked.set(asked.get() + 1);
        Ok(vec![address(8)])
    };
    assert!(near.has(address(8), later, list) && !near.has(address(7), later, list));
    assert_eq!(asked.get(), 2);
    // A host that does not answer changes nothing.
    let refused = || Err(io::Error::from_raw_os_error(libc::EMFILE));
    assert!(near.has(address(8), later + REFRESH, refused));
}
