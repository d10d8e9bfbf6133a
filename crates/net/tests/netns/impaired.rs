//! Faults on a link, and a peer that notices.

use std::time::{Duration, Instant};

use urxe_net::Port;
use urxe_net::impair::Impaired;
use urxe_net::raw::{RawConfig, RawPort};

use crate::namespace::pair;
use crate::pairs::address;
use crate::traffic::{collect, flow, send};

#[test]
fn a_raw_port_over_a_bad_link_delays_doubles_and_breaks() {
    let Some((a, b)) = pair() else { return };
    let (here, there) = (address(false, 1), address(false, 2));
    let open = |address| move || RawPort::open(&RawConfig::new(address)).unwrap();
    let start = Instant::now();
    let clock = move || start.elapsed();
    let faults = "duplicate=100%,tx.corrupt=100%,delay=3ms,seed=4".parse().unwrap();
    let tx = Impaired::new(a.run(open(here)), &faults, clock).unwrap();
    let rx = Impaired::new(b.run(open(there)), &faults, clock).unwrap();
    // No more than may wait for a neighbour.
    send(&tx, flow(here, there), &[256; 7]);
    let got = collect(&tx, &rx, 28);
    assert!(start.elapsed() >= Duration::from_millis(6));
    assert!(got.iter().all(|g| !g.2.is_ok()), "{got:?}");
    assert_eq!(rx.stats().snapshot().rx_icrc_bad, 28);
    assert_eq!(tx.counts().0.corrupted, 14);
    assert_eq!(rx.counts().1.duplicated, 14);
}
