use super::*;

#[test]
fn it_doubles_below_the_threshold_and_adds_one_a_round_above() {
    let mut w = Window::new(256);
    assert_eq!(w.size(), 64);
    w.on_ack(64, Psn::new(64));
    assert_eq!(w.size(), 128);
    w.on_loss(Psn::new(200));
    assert_eq!(w.size(), 64);
    w.on_ack(63, Psn::new(127));
    assert_eq!(w.size(), 64);
    w.on_ack(1, Psn::new(128));
    assert_eq!(w.size(), 65);
}

#[test]
fn one_flight_halves_once() {
    let mut w = Window::new(256);
    w.on_loss(Psn::new(64));
    w.on_loss(Psn::new(64));
    assert_eq!(w.size(), 32);
    // The flight is over once its last PSN is acknowledged; then a new loss counts.
    w.on_ack(1, Psn::new(64));
    w.on_loss(Psn::new(90));
    assert_eq!(w.size(), 16);
}

#[test]
fn it_never_falls_below_the_least_nor_rises_above_the_most() {
    let mut w = Window::new(128);
    for _ in 0..20 {
        w.on_timeout(Psn::new(1));
    }
    assert_eq!(w.size(), MIN);
    for _ in 0..100_000 {
        w.on_ack(8, Psn::new(2));
    }
    assert_eq!(w.size(), 128);
}
