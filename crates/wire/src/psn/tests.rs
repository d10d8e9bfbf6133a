use proptest::prelude::*;

use super::*;

/// 2^24 and 2^23, as the model counts.
const CIRCLE: i64 = 1 << 24;
const HALF: i64 = 1 << 23;

/// The model: the one value of −2^23 to 2^23 − 1 that is a − b around the circle.
fn distance(a: i64, b: i64) -> i64 {
    (a - b + HALF).rem_euclid(CIRCLE) - HALF
}

/// Values near 0, near half the circle, near its end, and anywhere.
fn value() -> impl Strategy<Value = u32> {
    prop_oneof![0..5_u32, 0x7f_fffd..0x80_0003_u32, 0xff_fffc..0x100_0000_u32, any::<u32>()]
}

proptest! {
    #[test]
    fn arithmetic_is_the_model_s(a in value(), b in value()) {
        let (x, y) = (Psn::new(a), Psn::new(b));
        let (i, j) = (i64::from(a) % CIRCLE, i64::from(b) % CIRCLE);
        prop_assert_eq!(i64::from(x.value()), i);
        prop_assert_eq!(i64::from(x.add(b).value()), (i + j) % CIRCLE);
        prop_assert_eq!(i64::from(x.sub(b).value()), (i - j).rem_euclid(CIRCLE));
        prop_assert_eq!(i64::from(x.next().value()), (i + 1) % CIRCLE);
        prop_assert_eq!(i64::from(x.since(y)), (i - j).rem_euclid(CIRCLE));
        prop_assert_eq!(i64::from(x.distance(y)), distance(i, j));
        prop_assert_eq!(x.serial_cmp(y), distance(i, j).cmp(&0));
        prop_assert_eq!(x.is_before(y), distance(i, j) < 0);
        prop_assert_eq!(x.is_after(y), distance(i, j) > 0);
    }

    #[test]
    fn add_and_sub_undo_each_other(a in value(), n in value()) {
        let psn = Psn::new(a);
        prop_assert_eq!(psn.add(n).sub(n), psn);
        prop_assert_eq!(psn.add(n).since(psn), n % (1 << 24));
    }
}

#[test]
fn the_window_is_half_the_circle() {
    // IBA 9.7.2: 2^23 − 1 steps ahead is after, 2^23 is before.
    for start in [Psn::ZERO, Psn::new(5), Psn::MAX] {
        assert!(start.add(Psn::WINDOW - 1).is_after(start));
        assert!(start.add(Psn::WINDOW).is_before(start));
        assert!(start.next().is_after(start) && start.is_before(start.next()));
    }
    assert_eq!(Psn::MAX.next(), Psn::ZERO);
    assert_eq!(Psn::ZERO.distance(Psn::MAX), 1);
}
