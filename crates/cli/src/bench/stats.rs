//! What is made of many figures.

#[cfg(test)]
mod tests;

/// The middle one; of an even number the mean of the middle two. 0 of none.
pub(super) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(half)) {
        (_, None) => 0.0,
        (1, Some(middle)) => *middle,
        (_, Some(upper)) => f64::midpoint(sorted[half - 1], *upper),
    }
}

/// The least figure that at least `permille` of 1,000 do not exceed (nearest rank); `sorted` is in
/// rising order. 0 of none.
pub(super) fn percentile(sorted: &[u64], permille: usize) -> u64 {
    let rank = (sorted.len() * permille).div_ceil(1000).clamp(1, sorted.len().max(1));
    sorted.get(rank - 1).copied().unwrap_or(0)
}

/// Jain's index of how even the shares are: 1 where all are the same, 1/n where one has all
/// (Jain, Chiu, Hawe 1984). 1 of none.
pub(super) fn jain(shares: &[u64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), &share| {
        let share = float(share);
        (sum + share, squares + share * share)
    });
    if squares == 0.0 { 1.0 } else { sum * sum / (count(shares.len()) * squares) }
}

/// As a figure to reckon with.
#[expect(clippy::cast_precision_loss, reason = "53 bits are more than any clock here gives")]
pub(super) const fn float(n: u64) -> f64 {
    n as f64
}

/// As [`float`], of a count.
pub(super) const fn count(n: usize) -> f64 {
    float(n as u64)
}
