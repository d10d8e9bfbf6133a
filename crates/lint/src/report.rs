//! Findings, and how they are collected.

use std::collections::BTreeMap;
use std::fmt::Display;

use urxe_wire::{Opcode, Psn, Qpn};

use crate::fact::{Addr, Fact, Flow};
use crate::rule::{Rule, Severity};
use crate::{Frame, Options, Profile};

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The frame it was found at.
    pub frame: u64,
    /// When that was captured, nanoseconds from any point in time.
    pub time: Option<i64>,
    /// The rule.
    pub rule: Rule,
    /// How much it weighs here.
    pub severity: Severity,
    /// From whom to whom the packet went, where that much could be read.
    pub ends: Option<(Addr, Addr)>,
    /// Its opcode.
    pub opcode: Option<Opcode>,
    /// Its destination QPN.
    pub dest_qp: Option<Qpn>,
    /// The QPN at its other end: from the packet itself, or learned from the capture.
    pub src_qp: Option<Qpn>,
    /// Its PSN.
    pub psn: Option<Psn>,
    /// What is the matter.
    pub what: String,
    /// What was there.
    pub got: String,
    /// What should have been.
    pub wanted: String,
}

/// Where something was seen, for findings that come out later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) frame: u64,
    pub(crate) time: Option<i64>,
    pub(crate) flow: Option<Flow>,
    pub(crate) src_qp: Option<Qpn>,
    pub(crate) opcode: Option<Opcode>,
    pub(crate) psn: Option<Psn>,
}

impl Place {
    pub(crate) fn of(fact: &Fact) -> Self {
        Self {
            frame: fact.frame,
            time: fact.time,
            flow: Some(fact.flow),
            src_qp: fact.src_qp,
            opcode: Some(fact.info.opcode),
            psn: Some(fact.psn),
        }
    }

    /// A frame that could not be read.
    pub(crate) const fn at(frame: &Frame<'_>) -> Self {
        Self {
            frame: frame.number,
            time: frame.time,
            flow: None,
            src_qp: None,
            opcode: None,
            psn: None,
        }
    }
}

/// How many flows have their findings counted; those of further ones are never held back.
const COUNTED_FLOWS: usize = 1 << 16;

/// All that was found, and what is not yet fetched.
#[derive(Debug)]
pub(crate) struct Report {
    options: Options,
    /// Frames were missed for sure: what a missing frame explains is a note.
    pub(crate) lossy: bool,
    found: Vec<Finding>,
    shown: BTreeMap<(Option<Flow>, Rule), u32>,
    counts: BTreeMap<Rule, Count>,
}

/// How often a rule was found broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// As a violation.
    pub violations: u64,
    /// As a note.
    pub notes: u64,
    /// How many of both were counted only.
    pub held_back: u64,
}

impl Report {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            lossy: options.lossy,
            found: Vec::new(),
            shown: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    pub(crate) const fn profile(&self) -> Profile {
        self.options.profile
    }

    pub(crate) fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.found)
    }

    pub(crate) const fn counts(&self) -> &BTreeMap<Rule, Count> {
        &self.counts
    }

    /// A finding of the rule's own weight.
    pub(crate) fn find(
        &mut self,
        rule: Rule,
        place: &Place,
        what: impl Display,
        got: impl Display,
        wanted: impl Display,
    ) {
        self.weigh(rule, rule.severity(), place, what, got, wanted);
    }

    /// A finding that is a note if `excused`.
    pub(crate) fn find_unless(
        &mut self,
        excused: bool,
        rule: Rule,
        place: &Place,
        what: impl Display,
        got: impl Display,
        wanted: impl Display,
    ) {
        let severity = if excused { Severity::Note } else { rule.severity() };
        self.weigh(rule, severity, place, what, got, wanted);
    }

    fn weigh(
        &mut self,
        rule: Rule,
        severity: Severity,
        place: &Place,
        what: impl Display,
        got: impl Display,
        wanted: impl Display,
    ) {
        let count = self.counts.entry(rule).or_default();
        match severity {
            Severity::Violation => count.violations += 1,
            Severity::Note => count.notes += 1,
        }
        let key = (place.flow, rule);
        if self.options.at_most != 0
            && (self.shown.contains_key(&key) || self.shown.len() < COUNTED_FLOWS)
        {
            let shown = self.shown.entry(key).or_default();
            if *shown >= self.options.at_most {
                count.held_back += 1;
                return;
            }
            *shown += 1;
        }
        self.found.push(Finding {
            frame: place.frame,
            time: place.time,
            rule,
            severity,
            ends: place.flow.map(|flow| (flow.src, flow.dst)),
            opcode: place.opcode,
            dest_qp: place.flow.map(|flow| flow.qpn),
            src_qp: place.src_qp,
            psn: place.psn,
            what: what.to_string(),
            got: got.to_string(),
            wanted: wanted.to_string(),
        });
    }
}
