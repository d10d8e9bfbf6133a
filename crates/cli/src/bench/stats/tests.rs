use super::{jain, median, percentile};

#[test]
fn the_median_is_the_middle_whatever_the_order() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
    assert_eq!(median(&[7.0]), 7.0);
    assert_eq!(median(&[]), 0.0);
    assert_eq!(median(&[1.0, 1.0, 1000.0]), 1.0, "one outlier does not count");
}

#[test]
fn a_percentile_is_a_figure_that_occurred() {
    let hundred: Vec<u64> = (1..=100).collect();
    assert_eq!(percentile(&hundred, 500), 50);
    assert_eq!(percentile(&hundred, 990), 99);
    assert_eq!(percentile(&hundred, 999), 100);
    assert_eq!(percentile(&hundred, 0), 1);
    assert_eq!(percentile(&hundred, 1000), 100);
    assert_eq!(percentile(&[5], 999), 5);
    assert_eq!(percentile(&[], 500), 0);
}

#[test]
fn jain_is_1_for_even_shares_and_falls_to_1_of_n() {
    assert!((jain(&[5, 5, 5, 5]) - 1.0).abs() < 1e-12);
    assert!((jain(&[8, 0, 0, 0]) - 0.25).abs() < 1e-12);
    // (1 + 3)² / (2 · (1 + 9))
    assert!((jain(&[1, 3]) - 0.8).abs() < 1e-12);
    assert!((jain(&[]) - 1.0).abs() < 1e-12);
    assert!((jain(&[0, 0]) - 1.0).abs() < 1e-12, "nobody has more than another");
}
