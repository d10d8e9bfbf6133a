//! What the rounds of a case come to.

use std::collections::BTreeMap;

use serde::Serialize;

use super::case::{Case, Unit};
use super::stats::median;
use super::targets::{Bound, names, target};
use super::work::Sample;

#[cfg(test)]
mod tests;

/// A round: the case, and what it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Round {
    pub(super) own: Sample,
    pub(super) rivals: Vec<Sample>,
}

/// A case's figures; each is the median of its rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) case: String,
    pub(super) unit: &'static str,
    #[serde(skip)]
    pub(super) of: Unit,
    pub(super) rounds: usize,
    #[serde(flatten)]
    pub(super) value: Spread,
    /// Percentiles, for one.
    #[serde(flatten)]
    pub(super) more: BTreeMap<&'static str, f64>,
    pub(super) ratios: Vec<Ratio>,
}

/// The median of some figures, and how far they reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) value: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Spread {
    fn of(figures: &[f64]) -> Self {
        let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { value: median(figures), least, most }
    }
}

/// A case beside what it is compared with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Ratio {
    pub(super) to: &'static str,
    #[serde(skip)]
    pub(super) text: &'static str,
    /// What that did; nothing where a figure is a ratio by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) baseline: Option<f64>,
    /// Of one round each.
    pub(super) ratio: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<Bound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) met: Option<bool>,
}

impl Ratio {
    fn of(
        case: &Case,
        (to, text): (&'static str, &'static str),
        baseline: Option<f64>,
        ratios: &[f64],
    ) -> Self {
        let Spread { value: ratio, least, most } = Spread::of(ratios);
        let target = target(&case.name, to);
        let met = target.map(|bound| bound.is_met(ratio));
        Self { to, text, baseline, ratio, least, most, target, met }
    }
}

impl Row {
    /// Sums up rounds, of which there is at least one.
    pub(super) fn of(case: &Case, rounds: &[Round]) -> Self {
        let own: Vec<f64> = rounds.iter().map(|round| round.own.value).collect();
        let mut more: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for &(name, figure) in rounds.iter().flat_map(|round| &round.own.more) {
            more.entry(name).or_default().push(figure);
        }
        let mut ratios = Vec::new();
        for (nth, rival) in case.rivals.iter().enumerate() {
            let theirs: Vec<f64> = rounds.iter().map(|round| round.rivals[nth].value).collect();
            let each: Vec<f64> = own.iter().zip(&theirs).map(|(own, its)| own / its).collect();
            let name = (rival.name, rival.text);
            ratios.push(Ratio::of(case, name, Some(median(&theirs)), &each));
        }
        if let Some(shares) = more.remove(names::JAIN) {
            let name = (names::JAIN, "even shares (Jain)");
            ratios.push(Ratio::of(case, name, None, &shares));
        }
        Self {
            case: case.name.clone(),
            unit: case.unit.name(),
            of: case.unit,
            rounds: rounds.len(),
            value: Spread::of(&own),
            more: more.into_iter().map(|(name, figures)| (name, median(&figures))).collect(),
            ratios,
        }
    }

    /// The targets that it misses.
    pub(super) fn missed(&self) -> impl Iterator<Item = String> {
        self.ratios.iter().filter(|ratio| ratio.met == Some(false)).map(|ratio| {
            let Ratio { to, ratio, target, .. } = ratio;
            let bound = target.map(|bound| bound.to_string()).unwrap_or_default();
            format!("{} to {to}: {ratio:.3}, wanted {bound}", self.case)
        })
    }
}

impl Unit {
    /// Its name in JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::BytesPerSecond => "bytes/s",
            Self::MessagesPerSecond => "messages/s",
            Self::RoundTrip => "ns",
            Self::Core => "cores",
            Self::Bytes => "bytes",
        }
    }

    /// A figure, for a reader.
    pub(super) fn show(self, figure: f64) -> String {
        match self {
            Self::BytesPerSecond if figure >= 1e9 => format!("{:.2} GB/s", figure / 1e9),
            Self::BytesPerSecond => format!("{:.1} MB/s", figure / 1e6),
            Self::MessagesPerSecond if figure >= 1e6 => format!("{:.2} M/s", figure / 1e6),
            Self::MessagesPerSecond => format!("{:.1} k/s", figure / 1e3),
            Self::RoundTrip if figure >= 1e6 => format!("{:.2} ms", figure / 1e6),
            Self::RoundTrip => format!("{:.2} µs", figure / 1e3),
            Self::Core => format!("{:.2} %", figure * 100.0),
            Self::Bytes => format!("{figure:.0} B"),
        }
    }
}
