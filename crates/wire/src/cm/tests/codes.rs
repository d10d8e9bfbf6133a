use core::time::Duration;

use crate::{Mtu, cm::*};

#[test]
fn a_service_id_is_a_port_space_and_a_port() {
    assert_eq!(ServiceId::tcp(7174).0, 0x0000_0000_0106_1c06);
    assert_eq!(ServiceId::udp(7174).0, 0x0000_0000_0111_1c06);
    for space in [PortSpace::IpoIb, PortSpace::Tcp, PortSpace::Udp, PortSpace::Ib] {
        for port in [0, 1, 0xffff] {
            assert_eq!(ServiceId::new(space, port).port(), Some((space, port)));
        }
    }
    assert_eq!(ServiceId(0x0100_0000_0106_1c06).port(), None, "a prefix");
    assert_eq!(ServiceId(0x0107_1c06).port(), None, "another protocol");
    assert_eq!(ServiceId::tcp(7174).to_string(), "0x0000000001061c06 (TCP port 7174)");
    assert_eq!(ServiceId(0x10).to_string(), "0x0000000000000010");
}

#[test]
fn a_timeout_is_a_power_of_two_of_4_microseconds() {
    let time = |code| CmTimeout::new(code).unwrap();
    assert_eq!(time(0).duration(), Duration::from_nanos(4096));
    assert_eq!(time(20).duration(), Duration::from_nanos(4_294_967_296));
    assert_eq!(time(31).duration().as_secs(), 8796);
    assert_eq!(time(20).code(), 20);
    assert_eq!(time(20).to_string(), "20 (4.294967296s)");
    assert!(CmTimeout::new(32).is_err());
    assert_eq!(CmTimeout::at_least(Duration::ZERO), time(0));
    assert_eq!(CmTimeout::at_least(Duration::from_nanos(4096)), time(0));
    assert_eq!(CmTimeout::at_least(Duration::from_nanos(4097)), time(1));
    assert_eq!(CmTimeout::at_least(Duration::from_secs(4)), time(20));
    assert_eq!(CmTimeout::at_least(Duration::MAX), CmTimeout::MAX);
}

#[test]
fn seven_rnr_retries_are_without_end() {
    assert_eq!(RetryCount::new(6).unwrap().rnr_limit(), Some(6));
    assert_eq!(RetryCount::new(6).unwrap().count(), 6);
    assert_eq!(RetryCount::MAX.rnr_limit(), None);
    let error = RetryCount::new(8).unwrap_err();
    assert_eq!(error.to_string(), "CM retry count: got 8, wanted at most 7");
}

#[test]
fn an_mtu_code_is_kept_and_read_when_needed() {
    assert_eq!(MtuCode(3).mtu(), Ok(Mtu::B1024));
    assert_eq!(MtuCode::from(Mtu::B4096), MtuCode(5));
    assert!(MtuCode(0).mtu().is_err());
    assert!(MtuCode(6).mtu().is_err());
}

#[test]
fn every_reject_reason_has_its_code_and_text() {
    assert_eq!(RejReason::KNOWN.len(), 34);
    for code in 0..=100 {
        let reason = RejReason::from_code(code);
        assert_eq!(reason.code(), code);
        let known = matches!(code, 1..=33 | 35);
        assert_eq!(RejReason::KNOWN.contains(&reason), known, "{code}");
        assert_eq!(matches!(reason, RejReason::Other(_)), !known, "{code}");
        assert_eq!(reason.text() == "reserved", !known, "{code}");
    }
    assert_eq!(RejReason::InvalidServiceId.code(), 8);
    assert_eq!(RejReason::StaleConnection.code(), 10);
    assert_eq!(RejReason::InvalidMtu.code(), 26);
    assert_eq!(RejReason::ConsumerDefined.to_string(), "28 (refused by the program)");
    assert_eq!(RejReason::Other(34).to_string(), "34 (reserved)");
}

#[test]
fn no_two_codes_share_a_text() {
    let texts: Vec<_> = RejReason::KNOWN.iter().map(|r| r.text()).collect();
    for (i, text) in texts.iter().enumerate() {
        assert!(!texts[i + 1..].contains(text), "{text}");
    }
}
