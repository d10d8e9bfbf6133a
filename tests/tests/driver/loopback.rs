//! Two devices of one process on loopback.

use urxe::{Config, Context};

use crate::operations::{self, Link};
use crate::rig::{open, patient};

#[test]
fn every_operation() {
    operations::all(&open(), &open(), Link::Clean);
}

#[test]
fn every_operation_over_a_faulty_link() {
    for seed in 1..=3 {
        let faults = format!("tx.loss=5%,tx.duplicate=5%,tx.reorder=5%,tx.corrupt=5%,seed={seed}");
        let config = Config { faults, ..patient() };
        let (a, b) = (Context::open(&config).unwrap(), Context::open(&config).unwrap());
        operations::all(&a, &b, Link::Faulty);
    }
}

/// Buffers that hold a few packets: what overflows is lost and sent again.
#[test]
fn every_operation_with_tiny_socket_buffers() {
    let config = Config { buffer: 4096, ..patient() };
    let (a, b) = (Context::open(&config).unwrap(), Context::open(&config).unwrap());
    operations::all(&a, &b, Link::Faulty);
    let overran = |context: &Context| context.port_stats().rx_overrun;
    assert!(overran(&a) + overran(&b) > 0, "nothing overflowed");
}
