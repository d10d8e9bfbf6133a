use super::*;

/// Sends `count` packets of 100 bytes, `gap` apart; gives the arrivals in order of time, and what
/// was done with each.
fn send(config: LinkConfig, count: u64, gap: u64) -> (Vec<(u64, u8)>, Vec<Done>) {
    let mut link = Link::new(config);
    let (mut arrivals, mut done) = (Vec::new(), Vec::new());
    for i in 0..count {
        let now = Time::from_nanos(i * gap);
        let mut rng = Rng::new(&[7, i]);
        let packet = vec![u8::try_from(i % 251).unwrap(); 100];
        done.push(link.carry(now, packet, &Orders::default(), &mut rng, &mut arrivals));
    }
    arrivals.sort_by_key(|&(at, _)| at);
    (arrivals.iter().map(|(at, p)| (at.as_nanos(), p[50])).collect(), done)
}

fn count(done: &[Done], what: impl Fn(&Done) -> bool) -> usize {
    done.iter().filter(|d| what(d)).count()
}

#[test]
fn jitter_keeps_the_order() {
    let config = LinkConfig { jitter: Duration::from_micros(20), ..LinkConfig::default() };
    let (arrivals, _) = send(config, 200, 1000);
    assert!(arrivals.is_sorted_by_key(|&(_, i)| i));
    let delays: Vec<u64> = arrivals.iter().zip(0..).map(|(&(at, _), i)| at - i * 1000).collect();
    assert!(delays.iter().all(|d| *d >= 5000), "never before the delay");
    assert!(delays.iter().any(|d| *d > 15_000), "jitter shows");
}

#[test]
fn each_fault_comes_in_its_share() {
    let ten = Share::percent(10);
    let config = LinkConfig {
        loss: ten,
        duplicate: ten,
        reorder: ten,
        corrupt: ten,
        ..LinkConfig::default()
    };
    let (arrivals, done) = send(config, 10_000, 100_000);
    for (what, n) in [
        ("lost", count(&done, |d| d.lost == Some(Loss::Random))),
        ("duplicated", count(&done, |d| d.duplicated)),
        ("reordered", count(&done, |d| d.reordered)),
        ("corrupted", count(&done, |d| d.corrupted)),
    ] {
        assert!((850..1150).contains(&n), "{n} {what} of 10,000");
    }
    let lost = count(&done, |d| d.lost.is_some());
    assert_eq!(arrivals.len(), 10_000 - lost + count(&done, |d| d.duplicated));
}

#[test]
fn bursts_lose_neighbours() {
    let burst = Burst { enter: Share::percent(1), leave: Share::percent(20), loss: Share::WHOLE };
    let config = LinkConfig { burst: Some(burst), ..LinkConfig::default() };
    let (_, done) = send(config, 10_000, 1000);
    let lost = count(&done, |d| d.lost == Some(Loss::Burst));
    let pairs = done.windows(2).filter(|w| w.iter().all(|d| d.lost.is_some())).count();
    assert!((300..700).contains(&lost), "1 in 21: {lost}");
    assert!(pairs * 10 > lost * 6, "{pairs} of {lost} are followed by another");
}

#[test]
fn a_rate_spaces_packets_and_a_full_queue_loses_them() {
    // 100 bytes at 80 Mbit/s take 10 µs.
    let rate = Some(Rate::from_mbps(80));
    let config = LinkConfig { rate, queue: 1000, ..LinkConfig::default() };
    let (arrivals, done) = send(config, 20, 0);
    assert_eq!(arrivals.len(), 10, "as many as the queue holds");
    assert_eq!(count(&done, |d| d.lost == Some(Loss::TailDrop)), 10);
    let times: Vec<u64> = arrivals.iter().map(|&(at, _)| at).collect();
    assert_eq!(times, (1..=10).map(|i| i * 10_000 + 5000).collect::<Vec<_>>());
}

#[test]
fn a_cut_link_carries_nothing_for_that_time() {
    let mut link = Link::new(LinkConfig::default());
    link.cuts.push((Time::from_nanos(10), Time::from_nanos(20)));
    let mut lost = |at| {
        let mut arrivals = Vec::new();
        let rng = &mut Rng::new(&[1]);
        let done =
            link.carry(Time::from_nanos(at), vec![0; 60], &Orders::default(), rng, &mut arrivals);
        assert_eq!(arrivals.is_empty(), done.lost.is_some());
        done.lost
    };
    assert_eq!(
        [9, 10, 19, 20].map(&mut lost),
        [None, Some(Loss::Partition), Some(Loss::Partition), None]
    );
}

#[test]
fn orders_are_followed_whatever_chance_says() {
    let carry = |orders| {
        let mut arrivals = Vec::new();
        let mut link = Link::new(LinkConfig::default());
        let done = link.carry(Time::ZERO, vec![0; 60], &orders, &mut Rng::new(&[1]), &mut arrivals);
        (done, arrivals)
    };
    let (done, arrivals) = carry(Orders { drop: true, ..Orders::default() });
    assert_eq!((done.lost, arrivals.len()), (Some(Loss::Addressed), 0));
    let (done, arrivals) = carry(Orders { duplicate: true, ..Orders::default() });
    assert_eq!((done.duplicated, arrivals.len()), (true, 2));
    let (done, arrivals) = carry(Orders { corrupt: true, ..Orders::default() });
    assert!(done.corrupted && arrivals[0].1.iter().any(|&b| b != 0));
    let hold = Duration::from_millis(1);
    let (done, arrivals) = carry(Orders { hold: Some(hold), ..Orders::default() });
    assert_eq!((done.reordered, arrivals[0].0.as_nanos()), (true, 1_005_000));
}

#[test]
fn marks_follow_the_queue() {
    let ramp = Marking { from: 1000, to: 3000, most: Share::percent(50) };
    let marked = |marking: Marking, waiting| {
        (0..1000).filter(|&i| marking.marks(waiting, &mut Rng::new(&[i]))).count()
    };
    assert_eq!(marked(ramp, 1000), 0);
    assert_eq!(marked(ramp, 3001), 1000);
    assert!((200..300).contains(&marked(ramp, 2000)), "{}", marked(ramp, 2000));
    assert_eq!([999, 1000, 1001].map(|w| marked(Marking::above(1000), w)), [0, 0, 1000]);
}

#[test]
fn only_what_is_capable_of_it_is_marked() {
    let rate = Some(Rate::from_mbps(80));
    let config = LinkConfig { rate, marking: Some(Marking::above(0)), ..LinkConfig::default() };
    let mut link = Link::new(config);
    let mut marked = |tos| {
        let mut packet = vec![0; 60];
        (packet[0], packet[1]) = (0x45, tos);
        let (rng, mut arrivals) = (&mut Rng::new(&[1]), Vec::new());
        let done = link.carry(Time::ZERO, packet, &Orders::default(), rng, &mut arrivals);
        (done.marked, arrivals[0].1[1])
    };
    assert_eq!(marked(2), (false, 2), "the first finds nobody waiting");
    assert_eq!(marked(2), (true, 3));
    assert_eq!(marked(0), (false, 0), "not capable");
}
