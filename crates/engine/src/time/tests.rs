use super::*;

#[test]
fn arithmetic_is_exact_and_saturates() {
    let t = Time::from_nanos(1_500) + Duration::from_micros(2);
    assert_eq!(t.as_nanos(), 3_500);
    assert_eq!(t.saturating_since(Time::from_nanos(500)), Duration::from_nanos(3_000));
    assert_eq!(Time::ZERO.saturating_since(t), Duration::ZERO);
    assert_eq!(t + Duration::MAX, Time::MAX);
    assert_eq!(Time::MAX + Duration::from_nanos(1), Time::MAX);
    assert_eq!(Time::default(), Time::ZERO);
    assert!(Time::ZERO < t && t < Time::MAX);
}

#[test]
fn a_deadline_says_what_whose_and_when() {
    let shown = [TimerKind::Retransmit, TimerKind::Rnr, TimerKind::Pace, TimerKind::RateIncrease]
        .map(|why| {
            Deadline { at: Time::from_nanos(1_000_002_500), qpn: Qpn::new(17), why }.to_string()
        });
    assert_eq!(
        shown,
        [
            "local ACK timeout of QP 0x000011 at 1.000002500s",
            "RNR wait of QP 0x000011 at 1.000002500s",
            "pacing of QP 0x000011 at 1.000002500s",
            "rate increase of QP 0x000011 at 1.000002500s",
        ]
    );
}
