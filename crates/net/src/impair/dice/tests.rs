use super::*;

const US: Duration = Duration::from_micros(1);

fn fates(text: &str, seed: u64, n: u32) -> Vec<Fate> {
    let mut dice = Dice::new(text.parse().unwrap(), seed, 0);
    (0..n).map(|i| dice.fate(US * i, 1040, 0)).collect()
}

fn count(fates: &[Fate], f: impl Fn(&Fate) -> bool) -> usize {
    fates.iter().filter(|fate| f(fate)).count()
}

#[test]
fn loss_is_as_frequent_as_asked_and_the_same_for_a_seed() {
    // Four standard deviations of the binomial: sqrt(100,000 * 0.1 * 0.9) is 95.
    for seed in 0..20 {
        let lost = count(&fates("loss=10%", seed, 100_000), |f| *f == Fate::Lost);
        assert!((9_620..=10_380).contains(&lost), "seed {seed}: {lost}");
    }
    let first: Vec<_> = fates("loss=10%", 7, 60);
    let lost: Vec<_> = (0..60).filter(|&i| first[i] == Fate::Lost).collect();
    assert_eq!(lost, LOST_OF_SEED_7, "a seed means the same for ever");
    assert_ne!(fates("loss=10%", 7, 60), fates("loss=10%", 8, 60));
}

/// What the first run gave.
const LOST_OF_SEED_7: [usize; 3] = [15, 55, 59];

#[test]
fn no_faults_do_nothing_and_all_do_everything() {
    for (i, fate) in (0..).zip(fates("", 1, 1000)) {
        let first = Landing { at: US * i, flip: None };
        assert_eq!(fate, Fate::Arrives { first, again: None, reordered: false });
    }
    assert_eq!(count(&fates("loss=100%", 1, 1000), |f| *f == Fate::Lost), 1000);
    let twice = |f: &Fate| matches!(f, Fate::Arrives { again: Some(_), .. });
    assert_eq!(count(&fates("duplicate=100%", 1, 1000), twice), 1000);
}

#[test]
fn a_burst_loses_packets_in_a_row() {
    let fates = fates("burst=1%:5", 3, 50_000);
    let lost: Vec<bool> = fates.iter().map(|f| *f == Fate::LostInBurst).collect();
    let mut runs: Vec<usize> = lost.split(|lost| !lost).map(<[bool]>::len).collect();
    runs.retain(|&n| n != 0);
    // One run can follow another at once.
    assert!(runs.iter().all(|n| n % 5 == 0), "{runs:?}");
    // Out of 100 packets that do not belong to a run, one starts one.
    assert!((400..=560).contains(&runs.len()), "{}", runs.len());
}

#[test]
fn to_change_one_fault_leaves_the_others_as_they_were() {
    let alone = fates("loss=5%", 9, 5000);
    let with = fates("loss=5%,duplicate=10%,corrupt=10%,jitter=1ms,reorder=5%", 9, 5000);
    for (i, (alone, with)) in alone.iter().zip(&with).enumerate() {
        assert_eq!(*alone == Fate::Lost, *with == Fate::Lost, "packet {i}");
    }
}

#[test]
fn a_turned_bit_is_never_one_that_the_icrc_leaves_out() {
    let mut seen = [false; 24];
    for fate in {
        let mut dice = Dice::new("corrupt=100%".parse().unwrap(), 4, 1);
        (0..10_000).map(|_| dice.fate(US, 24, 0)).collect::<Vec<_>>()
    } {
        let Fate::Arrives { first: Landing { flip: Some(bit), .. }, .. } = fate else {
            panic!("{fate:?}");
        };
        seen[bit / 8] = true;
    }
    for (byte, seen) in seen.iter().enumerate() {
        assert_eq!(*seen, byte != 4, "byte {byte}");
    }
}

#[test]
fn jitter_keeps_order_and_reordering_does_not() {
    let times = |text: &str| -> Vec<Duration> {
        fates(text, 5, 2000)
            .iter()
            .map(|f| match f {
                Fate::Arrives { first, .. } => first.at,
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let jitter = times("delay=1ms,jitter=500us");
    assert!(jitter.is_sorted());
    assert!(jitter.iter().zip(0..).all(|(at, i)| {
        let sent = US * i;
        (sent + 1000 * US..=sent + 1500 * US).contains(at)
    }));
    assert!(!times("reorder=1%:50us").is_sorted());
}

#[test]
fn a_rate_spaces_packets_and_a_full_queue_loses_them() {
    let mut dice = Dice::new("rate=8mbit,queue=3".parse().unwrap(), 1, 0);
    for nth in 1..=3 {
        let first = Landing { at: US * 1000 * nth, flip: None };
        let held = usize::try_from(nth - 1).unwrap();
        let wanted = Fate::Arrives { first, again: None, reordered: false };
        assert_eq!(dice.fate(Duration::ZERO, 1000, held), wanted);
    }
    assert_eq!(dice.fate(Duration::ZERO, 1000, 3), Fate::Overflow);
    // The link is free again later, and owes nothing.
    let first = Landing { at: US * 11_000, flip: None };
    let wanted = Fate::Arrives { first, again: None, reordered: false };
    assert_eq!(dice.fate(US * 10_000, 1000, 0), wanted);
}
