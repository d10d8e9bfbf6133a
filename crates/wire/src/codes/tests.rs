use super::*;

#[test]
fn rnr_timers_at_their_ends_and_where_rxe_differs() {
    let ms = |code| RnrTimer::new(code).unwrap().duration();
    assert_eq!(ms(0), Duration::from_micros(655_360));
    assert_eq!(ms(1), Duration::from_micros(10));
    assert_eq!(ms(12), Duration::from_micros(640));
    assert_eq!(ms(25), Duration::from_micros(61_440), "rxe has 61410");
    assert_eq!(ms(31), Duration::from_micros(491_520));
    let all: Vec<_> = (1..32).map(ms).chain([ms(0)]).collect();
    assert!(all.is_sorted_by(|a, b| a < b), "code 0 is the longest, the others rise");
    assert_eq!(RnrTimer::new(32), Err(Error::new("QP", "RNR timer", 32, Wanted::AtMost(31))));
    for bits in 0..=255 {
        assert_eq!(RnrTimer::from_syndrome(bits).code(), bits & 0x1f);
    }
}

#[test]
fn ack_timeouts_double_from_8192_ns() {
    let of = |code| AckTimeout::new(code).unwrap().duration();
    assert_eq!(of(0), None, "0 waits for ever");
    assert_eq!(of(1), Some(Duration::from_nanos(8192)));
    assert_eq!(of(14), Some(Duration::from_nanos(67_108_864)));
    assert_eq!(of(31), Some(Duration::from_nanos(8_796_093_022_208)));
    for code in 1..31 {
        assert_eq!(of(code).map(|d| d * 2), of(code + 1));
    }
    assert!(AckTimeout::new(32).is_err());
}

#[test]
fn credits_round_down() {
    let of = |messages| Credit::for_messages(messages).code();
    // Each entry has its own code, one message fewer the code before, and the last has no end.
    for code in 0..=30 {
        let messages = u32::from(Credit::new(code).unwrap().messages().unwrap());
        assert_eq!(of(messages), code);
        if code > 0 {
            assert_eq!(of(messages - 1), code - 1);
        }
    }
    assert_eq!([of(5), of(7), of(9), of(32_767), of(32_769), of(u32::MAX)], [4, 5, 6, 29, 30, 30]);
    for messages in 0..70_000 {
        let promised = Credit::for_messages(messages).messages().unwrap();
        assert!(u32::from(promised) <= messages, "{messages}: {promised} is too much");
    }
    assert_eq!(Credit::UNLIMITED.messages(), None);
    assert_eq!(Credit::new(31), Ok(Credit::UNLIMITED));
    assert!(Credit::new(32).is_err());
}

#[test]
fn mtus_have_codes_1_to_5() {
    for (code, bytes) in (1..).zip([256, 512, 1024, 2048, 4096]) {
        let mtu = Mtu::from_code(code).unwrap();
        assert_eq!((mtu.code(), mtu.bytes()), (code, bytes));
        assert_eq!(Mtu::from_bytes(bytes), Ok(mtu));
        assert!(Mtu::from_bytes(bytes - 1).is_err() && Mtu::from_bytes(bytes + 1).is_err());
    }
    assert_eq!(Mtu::from_code(0), Err(Error::new("path", "MTU code", 0, Wanted::Between(1, 5))));
    assert!(Mtu::from_code(6).is_err());
}

#[test]
fn active_mtu_is_the_largest_that_fits_the_link() {
    let of = |link| Mtu::largest_for_link(link).map(Mtu::bytes);
    assert_eq!(of(1500), Some(1024));
    assert_eq!(of(9000), Some(4096));
    assert_eq!(of(4200), Some(4096));
    for mtu in Mtu::ALL {
        assert_eq!(of(mtu.bytes() + 88), Some(mtu.bytes()));
        assert_ne!(of(mtu.bytes() + 87), Some(mtu.bytes()));
    }
    assert_eq!(of(343), None);
}

#[test]
fn pkeys_match_unless_both_are_limited_or_of_other_partitions() {
    let full = PKey(0x8123);
    let limited = PKey(0x0123);
    assert!(full.matches(full) && full.matches(limited) && limited.matches(full));
    assert!(!limited.matches(limited));
    assert!(!full.matches(PKey(0x8124)) && !full.matches(PKey(0x0124)));
    assert!(PKey::DEFAULT.matches(PKey(0x7fff)));
}

#[test]
fn qpns_have_24_bits_and_qkeys_a_top_bit_that_asks_for_the_qp_s_own() {
    assert_eq!(Qpn::new(0xffff_ffff), Qpn::MULTICAST);
    assert_eq!(Qpn::GSI.to_string(), "0x000001");
    assert!(QKey(0x8000_0000).asks_for_own() && QKey::GSI.asks_for_own());
    assert!(!QKey(0x7fff_ffff).asks_for_own() && !QKey::RDMA_CM_UDP.asks_for_own());
}
