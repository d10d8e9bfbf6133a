use super::*;

#[test]
fn all_faults_are_read() {
    let text = "loss=1%, burst=0.1%:20,duplicate=0.5 %,reorder=2%:3ms,corrupt=0.01%,\
                delay=1.5ms,jitter=250us,rate=2.5gbit,queue=50";
    let faults: Faults = text.parse().unwrap();
    assert_eq!(
        faults,
        Faults {
            loss: Share::percent(1),
            burst: "0.1%".parse().unwrap(),
            burst_length: 20,
            duplicate: "0.5%".parse().unwrap(),
            reorder: Share::percent(2),
            reorder_by: Duration::from_millis(3),
            corrupt: "0.01%".parse().unwrap(),
            delay: Duration::from_micros(1500),
            jitter: Duration::from_micros(250),
            rate: Some(2_500_000_000),
            queue: 50,
        }
    );
    assert_eq!("".parse::<Faults>(), Ok(Faults::default()));
}

#[test]
fn each_direction_has_its_own_faults() {
    let all: Impairment =
        "tx.loss=2%,rx.loss=1%,seed=18446744073709551615,rx.delay=1s,dup=3%".parse().unwrap();
    assert_eq!((all.tx.duplicate, all.rx.duplicate), (Share::percent(3), Share::percent(3)));
    assert_eq!((all.tx.loss, all.rx.loss), (Share::percent(2), Share::percent(1)));
    assert_eq!((all.tx.delay, all.rx.delay), (Duration::ZERO, Duration::from_secs(1)));
    assert_eq!(all.seed, u64::MAX);
}

#[test]
fn errors_name_what_is_wrong() {
    for (text, wanted) in [
        ("loss", "`loss` is no fault"),
        ("loss=1%,", "`` is no fault"),
        ("los=1%", "there is no fault `los`"),
        ("up.loss=1%", "there is no fault `up.loss`"),
        ("tx.seed=1", "there is no fault `tx.seed`"),
        ("loss=1%,loss=2%", "`loss` is given twice"),
        ("tx.loss=1%,tx.loss=1%", "`tx.loss` is given twice"),
        ("dup=1%,duplicate=2%", "`duplicate` is given twice"),
        ("rx.dup=1%,rx.duplicate=2%", "`rx.duplicate` is given twice"),
        ("tx.loss=1%,rx.loss=2%,loss=3%", "`loss` is given twice: for both directions, and as `tx"),
        ("dup=1%,rx.dup=2%", "`duplicate` is given twice: for both directions, and as `rx.dupl"),
        ("loss=150%", "loss: `150%` is more than the whole"),
        ("loss=", "loss: `` is no share"),
        ("loss=1%:3", "loss: `1%:3` is no share"),
        ("burst=1%:0", "burst: `0` is no number from 1 to 1000000"),
        ("reorder=1%:5", "reorder: `5` is no time"),
        ("delay=5", "delay: `5` is no time"),
        ("delay=0.5ns", "delay: `0.5ns` is no time"),
        ("delay=1001s", "delay: `1001s` is no time"),
        ("jitter=-1ms", "jitter: `-1ms` is no time"),
        ("rate=0bit", "rate: `0bit` is no rate"),
        ("rate=99999999999gbit", "rate: `99999999999gbit` is no rate"),
        ("queue=0", "queue: `0` is no number"),
        ("seed=-1", "seed: `-1` is no number from 0 to 18446744073709551615"),
    ] {
        let error = text.parse::<Impairment>().unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{text}: {error}");
    }
    assert!("seed=1".parse::<Faults>().is_err(), "a seed is of both directions");
}
