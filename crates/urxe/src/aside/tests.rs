use super::*;

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

#[test]
fn it_stands_aside_after_a_poll_and_no_longer() {
    let mut aside = Aside::default();
    assert_eq!(aside.rest(ms(10), Time::ZERO), None, "nobody polls");
    assert_eq!(aside.rest(ms(10), ms(9)), Some(Duration::from_millis(1)));
    assert!(aside.ends());
    assert_eq!(aside.rest(ms(12), ms(9)), None);
    aside.ended(ms(12), false);
    assert!(!aside.ends());
    assert!(aside.rest(ms(20), ms(19)).is_some(), "nothing had waited");
}

#[test]
fn once_packets_have_waited_polls_do_not_count_each_time_for_longer() {
    let mut aside = Aside::default();
    let mut now = ms(10);
    for wanted in [16, 32, 64, 128, 256, 512, 1000, 1000] {
        assert!(aside.rest(now, now).is_some());
        aside.ended(now, true);
        let last = now + Duration::from_millis(wanted - 1);
        assert_eq!(aside.rest(last, last), None, "{wanted}");
        now = now + Duration::from_millis(wanted);
    }
    assert!(aside.rest(now, now).is_some());
}

#[test]
fn where_the_poller_is_always_first_it_stands_aside_again() {
    let mut aside = Aside::default();
    for round in 0..2 {
        aside.ended(ms(10), true);
        for _ in 0..15 {
            aside.looked(false);
        }
        aside.looked(true);
        for _ in 0..15 {
            aside.looked(false);
            assert_eq!(aside.rest(ms(11), ms(11)), None, "{round}");
        }
        aside.looked(false);
        assert!(aside.rest(ms(11), ms(11)).is_some(), "{round}");
    }
}
