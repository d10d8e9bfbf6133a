use proptest::prelude::*;

use super::*;
use crate::Time;

mod convergence;

const GBIT: u64 = 1_000_000_000;

const fn us(micros: u64) -> Time {
    Time::from_nanos(micros * 1_000)
}

fn checked(edit: impl FnOnce(&mut Params)) -> Checked {
    let mut params = Params::paper();
    edit(&mut params);
    params.checked().unwrap()
}

fn paper(line_gbit: u64) -> ReactionPoint {
    ReactionPoint::new(&checked(|_| {}), Rate::from_bps(line_gbit * GBIT))
}

/// The rate in Mbit/s after each of the next `n` deadlines.
fn next_rates(rp: &mut ReactionPoint, n: usize) -> Vec<f64> {
    (0..n)
        .map(|_| {
            rp.on_timer(rp.deadline().unwrap());
            mbit(rp)
        })
        .collect()
}

fn mbit(rp: &ReactionPoint) -> f64 {
    let bps = u32::try_from(rp.rate().as_bps() / 1_000).unwrap();
    f64::from(bps) / 1_000.0
}

#[test]
fn at_line_rate_there_is_no_timer_and_no_wait() {
    let mut rp = paper(40);
    rp.on_sent(us(1), 1 << 30);
    rp.on_timer(us(2));
    assert!(rp.at_line_rate());
    assert_eq!((rp.deadline(), rp.may_send_at(us(3)), mbit(&rp)), (None, us(3), 40_000.0));
}

// Paper, equation 1 with α = 1, then F = 5 rounds of equation 3, then equation 4.
#[test]
fn two_cuts_then_fast_recovery_then_additive_increase() {
    let mut rp = paper(40);
    assert!(rp.on_cnp(us(100)));
    assert_eq!((mbit(&rp), rp.deadline()), (20_000.0, Some(us(155))));
    assert!(rp.on_cnp(us(150)));
    assert_eq!((mbit(&rp), rp.deadline()), (10_000.0, Some(us(205))), "the cut starts T again");
    // R_T = 20 G: half the way to it five times.
    let recovery = next_rates(&mut rp, 5);
    assert_eq!(recovery, [15_000.0, 17_500.0, 18_750.0, 19_375.0, 19_687.5]);
    // R_T rises by 40 M before each further halving.
    assert_eq!(next_rates(&mut rp, 3), [19_863.75, 19_971.875, 20_045.937]);
    assert_eq!(rp.deadline(), Some(us(150 + 9 * 55)));
}

// Paper, equation 1: α ← (1 − g) α + g at a CNP; equation 2: α ← (1 − g) α after each K without.
#[test]
fn alpha_decays_while_no_cnp_comes_and_rises_when_one_does() {
    // T is so long that only α changes.
    let params = checked(|p| {
        p.rpg_time_reset = Duration::from_secs(1);
        p.initial_alpha_value = 512;
    });
    let mut rp = ReactionPoint::new(&params, Rate::from_bps(1 << 40));
    rp.on_cnp(us(0));
    // α = 1/2 cuts a quarter.
    assert_eq!(rp.rate().as_bps(), 3 << 38);
    // α = 255/256 · 1/2 + 1/256 = 257/512, then 2 K without a CNP: · (255/256)².
    rp.on_cnp(us(2 * 55));
    let alpha = 257u128 * 255 * 255 * (1 << 30) / (512 * 256 * 256);
    let rate = (3u128 << 38) - (((3u128 << 38) * (alpha / 2)) >> 30);
    assert!(u128::from(rp.rate().as_bps()).abs_diff(rate) <= 3 << 9, "{} {rate}", rp.rate());
    // One ns less than K since then: no decay, but α rose.
    let before = u128::from(rp.rate().as_bps());
    rp.on_cnp(Time::from_nanos(3 * 55_000 - 1));
    let alpha = alpha * 255 / 256 + (1 << 22);
    let rate = before - ((before * (alpha / 2)) >> 30);
    assert!(u128::from(rp.rate().as_bps()).abs_diff(rate) <= 3 << 9, "{} {rate}", rp.rate());
}

#[test]
fn alpha_is_kept_across_recovery_and_is_nothing_after_a_long_rest() {
    let mut rp = paper(10);
    rp.on_cnp(us(0));
    rp.on_timer(Time::from_nanos(3_600 * GBIT));
    assert!(rp.at_line_rate());
    rp.on_cnp(Time::from_nanos(3_600 * GBIT));
    assert_eq!(mbit(&rp), 10_000.0, "α has decayed to nothing, so that nothing is cut");
    rp.on_cnp(Time::from_nanos(3_600 * GBIT));
    // α = g = 1/256.
    assert_eq!(rp.rate().as_bps(), 10 * GBIT - 10 * GBIT / 512);
}

#[test]
fn the_byte_counter_increases_too_and_both_together_are_hyper() {
    let params = checked(|p| {
        p.rpg_threshold = 2;
        p.rpg_byte_reset = 1_000;
    });
    let mut rp = ReactionPoint::new(&params, Rate::from_bps(100 * GBIT));
    rp.on_cnp(us(0));
    rp.on_cnp(us(0));
    assert_eq!(mbit(&rp), 25_000.0);
    rp.on_sent(us(1), 999);
    assert_eq!(mbit(&rp), 25_000.0);
    rp.on_sent(us(1), 1);
    assert_eq!(mbit(&rp), 37_500.0, "BC = 1");
    rp.on_sent(us(1), 2_500);
    // BC = 2 is the last fast recovery; BC = 3 adds R_AI; 500 bytes are left over.
    assert_eq!(mbit(&rp), (43_750.0 + 50_040.0) / 2.0);
    next_rates(&mut rp, 2);
    // T = 1 and 2: BC is beyond F, T is not.
    assert_eq!(mbit(&rp), (((43_750.0 + 50_040.0) / 2.0 + 50_080.0) / 2.0 + 50_120.0) / 2.0);
    let before = mbit(&rp);
    rp.on_sent(us(150), 499);
    assert_eq!(mbit(&rp), before);
    // T = 3: both are beyond F.
    assert_eq!(next_rates(&mut rp, 1)[0], ((before + 50_520.0) / 2.0 * 1e3).floor() / 1e3);
}

#[test]
fn without_a_byte_counter_bytes_increase_nothing() {
    let params = checked(|p| p.rpg_byte_reset = 0);
    let mut rp = ReactionPoint::new(&params, Rate::from_bps(GBIT));
    rp.on_cnp(us(0));
    rp.on_sent(us(1), u64::MAX);
    assert_eq!(mbit(&rp), 500.0);
}

#[test]
fn a_late_timer_catches_up_as_if_it_had_been_on_time() {
    let (mut on_time, mut late, mut never) = (paper(40), paper(40), paper(40));
    for rp in [&mut on_time, &mut late, &mut never] {
        rp.on_cnp(us(0));
        rp.on_cnp(us(0));
    }
    next_rates(&mut on_time, 7);
    late.on_timer(us(7 * 55 + 54));
    assert_eq!(late.rate(), on_time.rate());
    assert_eq!(late.deadline(), Some(us(8 * 55)));
    never.on_sent(us(7 * 55), 100);
    assert_eq!(never.rate(), on_time.rate());
    on_time.on_cnp(us(8 * 55));
    never.on_cnp(us(8 * 55));
    assert_eq!(never.rate(), on_time.rate(), "a CNP catches up before it cuts");
}

#[test]
fn it_reaches_line_rate_and_is_at_rest() {
    for params in [Params::paper(), Params::mlx5()] {
        let params = params.checked().unwrap();
        let mut rp = ReactionPoint::new(&params, Rate::from_bps(10 * GBIT));
        for cnp in 0..50 {
            rp.on_cnp(us(cnp * 50));
        }
        let mut last = rp.rate();
        while let Some(at) = rp.deadline() {
            rp.on_timer(at);
            assert!(rp.rate() >= last, "no increase decreases");
            last = rp.rate();
        }
        assert_eq!(rp.rate(), Rate::from_bps(10 * GBIT));
        assert!(rp.at_line_rate());
    }
}

#[test]
fn near_the_line_rate_is_the_line_rate() {
    // A cut of 2 Mbit/s is half undone: 1 Mbit/s is missing, then less.
    let params = checked(|p| {
        p.initial_alpha_value = 1;
        p.rpg_gd = 10;
    });
    let line = 1_024 * 2_000_000;
    let mut rp = ReactionPoint::new(&params, Rate::from_bps(line));
    rp.on_cnp(us(0));
    assert_eq!(rp.rate().as_bps(), line - 2_000_000);
    rp.on_timer(us(55));
    assert_eq!(rp.rate().as_bps(), line - 1_000_000);
    rp.on_timer(us(110));
    assert_eq!((rp.rate().as_bps(), rp.deadline()), (line, None));
}

#[test]
fn a_cut_is_bounded_by_share_and_by_the_least_rate() {
    let params = checked(|p| p.rpg_min_dec_fac = 80);
    let mut rp = ReactionPoint::new(&params, Rate::from_bps(10 * GBIT));
    rp.on_cnp(us(0));
    assert_eq!(mbit(&rp), 8_000.0);

    let params = checked(|p| p.rpg_min_rate = Rate::from_mbps(3_000));
    let mut rp = ReactionPoint::new(&params, Rate::from_bps(10 * GBIT));
    rp.on_cnp(us(0));
    assert_eq!(mbit(&rp), 5_000.0);
    rp.on_cnp(us(0));
    assert_eq!(mbit(&rp), 3_000.0);

    let params = checked(|p| p.rpg_gd = 10);
    let mut rp = ReactionPoint::new(&params, Rate::from_bps(10 * GBIT));
    rp.on_cnp(us(0));
    assert_eq!(mbit(&rp), 1.0, "gd 10 takes α itself, here all, and leaves the least rate");

    let mut rp = ReactionPoint::new(&params, Rate::from_bps(1_000));
    rp.on_cnp(us(0));
    assert_eq!(rp.rate().as_bps(), 1_000, "a line slower than the least rate is not cut");
}

#[test]
fn a_fresh_cut_is_not_followed_by_another() {
    let mut rp = ReactionPoint::new(&Params::mlx5().checked().unwrap(), Rate::from_bps(10 * GBIT));
    assert!(rp.on_cnp(us(10)));
    let cut = rp.rate();
    assert!(!rp.on_cnp(Time::from_nanos(13_999)));
    assert_eq!(rp.rate(), cut);
    assert!(rp.on_cnp(us(14)));
    assert!(rp.rate() < cut);
}

#[test]
fn the_first_cut_may_start_from_a_set_rate() {
    let params = checked(|p| p.rate_to_set_on_first_cnp = Some(Rate::from_mbps(4_000)));
    let mut rp = ReactionPoint::new(&params, Rate::from_bps(10 * GBIT));
    rp.on_cnp(us(0));
    assert_eq!(mbit(&rp), 2_000.0);
    assert_eq!(next_rates(&mut rp, 1), [3_000.0], "the target was set, too");
    let mut rp = ReactionPoint::new(&params, Rate::from_bps(GBIT));
    rp.on_cnp(us(0));
    assert_eq!(mbit(&rp), 500.0, "not above the line rate");
}

/// Two cuts with `between` them; the rate after one increase tells the target.
fn target_after(edit: fn(&mut Params), between: fn(&mut ReactionPoint)) -> u64 {
    let params = checked(|p| {
        p.rpg_byte_reset = 1_000;
        p.dce_tcp_rtt = Duration::from_secs(1);
        edit(p);
    });
    let mut rp = ReactionPoint::new(&params, Rate::from_bps(16 * GBIT));
    rp.on_cnp(us(0));
    between(&mut rp);
    rp.on_cnp(us(60));
    let cut = rp.rate().as_bps();
    rp.on_timer(us(125));
    (2 * rp.rate().as_bps() - cut) / GBIT
}

#[test]
fn what_a_second_cut_does_to_the_target_is_the_clamps_choice() {
    let off = |p: &mut Params| {
        p.clamp_tgt_rate = false;
        p.clamp_tgt_rate_after_time_inc = false;
        p.rpg_time_reset = Duration::from_micros(60);
    };
    let by_time = |p: &mut Params| {
        p.clamp_tgt_rate = false;
        p.rpg_time_reset = Duration::from_micros(60);
    };
    let by_time_unreached = |p: &mut Params| {
        p.clamp_tgt_rate = false;
        p.rpg_time_reset = Duration::from_micros(61);
    };
    let on = |p: &mut Params| p.rpg_time_reset = Duration::from_micros(61);
    let bytes = |rp: &mut ReactionPoint| rp.on_sent(us(1), 1_000);
    // Line 16 G: the first cut leaves 8 G, one increase makes 12 G of it.
    assert_eq!(target_after(off, |_| {}), 16, "the timer does not count");
    assert_eq!(target_after(by_time, |_| {}), 12, "the timer counts");
    assert_eq!(target_after(on, |_| {}), 8, "clamped always");
    assert_eq!(target_after(off, bytes), 14, "bytes count, and the timer came after them");
    assert_eq!(target_after(by_time_unreached, bytes), 12, "bytes count");
}

#[test]
fn packets_are_spaced_by_the_rate() {
    let mut rp = paper(8);
    rp.on_cnp(us(100));
    assert_eq!((mbit(&rp), rp.may_send_at(us(100))), (4_000.0, us(100)));
    // 4 Gbit/s: 2 ns a byte.
    rp.on_sent(us(100), 1_000);
    assert_eq!(rp.may_send_at(us(100)), us(102));
    rp.on_sent(us(101), 1_000);
    assert_eq!(rp.may_send_at(us(101)), us(104), "a schedule, not a distance");
    assert_eq!(rp.may_send_at(us(110)), us(110));
    rp.on_cnp(us(112));
    assert_eq!(mbit(&rp), 2_000.0);
    rp.on_sent(us(112), 4_000);
    assert_eq!(rp.may_send_at(us(112)), us(104 + 16), "a cut keeps the schedule");
}

#[test]
fn a_pacer_makes_up_for_lateness_but_not_for_rest() {
    let rate = Rate::from_bps(8_000_000);
    let mut pacer = Pacer::new(us(1_000));
    // 1 µs a byte.
    pacer.on_sent(us(1_000), 10, rate);
    pacer.on_sent(us(1_060), 10, rate);
    assert_eq!(pacer.may_send_at(us(1_000)), us(1_020), "50 µs late are made up for");
    pacer.on_sent(us(2_000), 10, rate);
    assert_eq!(pacer.may_send_at(us(1_000)), us(2_000 - 50 + 10));
    assert_eq!(pacer.may_send_at(us(2_000)), us(2_000));
    let mut early = Pacer::default();
    early.on_sent(us(1), 1, rate);
    assert_eq!(early.may_send_at(Time::ZERO), us(1), "time does not go below zero");
}

#[test]
fn rates_are_rounded_against_the_sender_and_shown() {
    assert_eq!(Rate::from_bps(3).time_for(1), Duration::from_nanos(2_666_666_667));
    assert_eq!(Rate::from_bps(0).time_for(1), Duration::from_secs(8));
    assert_eq!(Rate::from_mbps(100_000).time_for(0), Duration::ZERO);
    assert_eq!(Rate::from_bps(1).time_for(u64::MAX), Duration::from_nanos(u64::MAX));
    let shown = [400 * GBIT, 12_500_000_000, GBIT, 999_999_999, 1_000_000, 1_500, 0, 64_001]
        .map(|bps| Rate::from_bps(bps).to_string());
    let wanted = [
        "400 Gbit/s",
        "12.5 Gbit/s",
        "1 Gbit/s",
        "999.999999 Mbit/s",
        "1 Mbit/s",
        "1.5 kbit/s",
        "0 kbit/s",
        "64.001 kbit/s",
    ];
    assert_eq!(shown, wanted);
}

#[test]
fn parameters_out_of_range_are_named() {
    let says = |edit: fn(&mut Params)| {
        let mut params = Params::mlx5();
        edit(&mut params);
        params.checked().map_err(|e| e.to_string()).map(|_| ())
    };
    let edits: &[fn(&mut Params)] = &[
        |p| p.rpg_time_reset = Duration::from_nanos(999),
        |p| p.rpg_byte_reset = 63,
        |p| p.rpg_threshold = 32,
        |p| p.rpg_ai_rate = Rate::from_bps(999_999),
        |p| p.rpg_hai_rate = Rate::from_bps(0),
        |p| p.rpg_gd = 12,
        |p| p.rpg_gd = 9,
        |p| p.rpg_min_dec_fac = 101,
        |p| p.rpg_min_rate = Rate::from_bps(1),
        |p| p.rate_to_set_on_first_cnp = Some(Rate::from_bps(0)),
        |p| p.initial_alpha_value = 1_025,
        |p| p.initial_alpha_value = 0,
        |p| p.dce_tcp_g = 1_024,
        |p| p.dce_tcp_rtt = Duration::ZERO,
        |p| p.rate_reduce_monitor_period = Duration::from_secs(2),
    ];
    let lines: Vec<_> = edits.iter().map(|edit| says(*edit).unwrap_err()).collect();
    insta::assert_snapshot!(lines.join("\n"));
    assert_eq!(says(|p| p.rpg_byte_reset = 0), Ok(()));
    assert_eq!(says(|p| p.rpg_byte_reset = 64), Ok(()));
    assert_eq!(*Params::default().checked().unwrap(), Params::paper());
}

#[test]
fn one_cnp_per_interval_and_destination() {
    let mut np = NotificationPoint::new(NotificationPoint::<u32>::PAPER_INTERVAL, 4);
    assert!(np.on_ce(us(10), 1));
    assert!(!np.on_ce(us(10), 1));
    assert!(np.on_ce(us(20), 2), "another destination has its own interval");
    assert!(!np.on_ce(Time::from_nanos(59_999), 1));
    assert!(np.on_ce(us(60), 1));
    assert!(!np.on_ce(us(69), 2));
    assert!(!np.on_ce(us(109), 1), "from the last CNP, not from the last mark");
    assert!(np.on_ce(us(110), 1));
}

#[test]
fn the_destination_told_longest_ago_is_forgotten() {
    let mut np = NotificationPoint::new(Duration::from_micros(50), 2);
    assert!(np.on_ce(us(0), 'a') && np.on_ce(us(10), 'b') && np.on_ce(us(50), 'a'));
    assert!(np.on_ce(us(51), 'c'), "takes the place of b");
    assert!(!np.on_ce(us(52), 'a') && !np.on_ce(us(52), 'c'));
    assert!(np.on_ce(us(53), 'b'), "was forgotten; takes the place of a");
    assert!(np.on_ce(us(54), 'a'));
    assert_eq!((np.told.len(), np.told.capacity()), (2, 2));
    let mut one = NotificationPoint::new(Duration::from_micros(50), 0);
    assert!(one.on_ce(us(0), 'a') && !one.on_ce(us(1), 'a'), "one slot at least");
}

#[test]
fn an_interval_of_zero_answers_every_mark() {
    let mut np = NotificationPoint::new(Duration::ZERO, 1);
    assert!(np.on_ce(us(0), ()) && np.on_ce(us(0), ()));
}

fn any_params() -> impl Strategy<Value = Checked> {
    let times = (1_000..1_000_000u64, 1_000..1_000_000u64, 0..100_000u64);
    let rates = (1..1_000u32, 1..1_000u32, 1..1_000u32, prop::option::of(1..200_000u32));
    let rest = (any::<(bool, bool)>(), 64..100_000u64, 0..32u32, 10..12u8, 0..101u8);
    (times, rates, rest, 1..1_025u16, 0..1_024u16).prop_map(|(t, r, rest, alpha, keep)| {
        let ((clamp, ati), bytes, threshold, gd, fac) = rest;
        let params = Params {
            clamp_tgt_rate: clamp,
            clamp_tgt_rate_after_time_inc: ati,
            rpg_time_reset: Duration::from_nanos(t.0),
            rpg_byte_reset: bytes,
            rpg_threshold: threshold,
            rpg_ai_rate: Rate::from_mbps(r.0),
            rpg_hai_rate: Rate::from_mbps(r.1),
            rpg_gd: gd,
            rpg_min_dec_fac: fac,
            rpg_min_rate: Rate::from_mbps(r.2),
            rate_to_set_on_first_cnp: r.3.map(Rate::from_mbps),
            initial_alpha_value: alpha,
            dce_tcp_g: keep,
            dce_tcp_rtt: Duration::from_nanos(t.1),
            rate_reduce_monitor_period: Duration::from_nanos(t.2),
        };
        params.checked().unwrap()
    })
}

proptest! {
    #[test]
    fn a_cnp_never_raises_the_rate_and_all_else_never_lowers_it(
        params in any_params(),
        line in 0..1_000_000_000_000u64,
        steps in prop::collection::vec((0..3u8, 0..200_000u64), 1..200),
    ) {
        let mut rp = ReactionPoint::new(&params, Rate::from_bps(line));
        let mut now = 0;
        let least = params.rpg_min_rate.as_bps().min(line);
        let least = least.min(params.rate_to_set_on_first_cnp.map_or(line, Rate::as_bps));
        for (what, amount) in steps {
            now += amount;
            rp.on_timer(Time::from_nanos(now));
            let before = rp.rate();
            match what {
                0 => {
                    let cut = rp.on_cnp(Time::from_nanos(now));
                    prop_assert!(rp.rate() <= before);
                    prop_assert!(cut || rp.rate() == before);
                }
                1 => {
                    rp.on_sent(Time::from_nanos(now), amount);
                    prop_assert!(rp.rate() >= before);
                }
                _ => {
                    now += amount;
                    rp.on_timer(Time::from_nanos(now));
                    prop_assert!(rp.rate() >= before);
                }
            }
            prop_assert!((least..=line).contains(&rp.rate().as_bps()));
            prop_assert_eq!(rp.deadline().is_none(), rp.at_line_rate());
            prop_assert!(rp.deadline().is_none_or(|at| at > Time::from_nanos(now)));
            prop_assert!(!rp.at_line_rate() || rp.rate().as_bps() == line);
            prop_assert!(rp.may_send_at(Time::from_nanos(now)) >= Time::from_nanos(now));
        }
    }
}
