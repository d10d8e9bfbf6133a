//! urxe's engine, on bad links, keeps the rules: each run is captured where packets leave, so that
//! what is lost is lost behind the capture, and where they arrive, so that it is lost before.

use urxe_lint::{Finding, Frame, Lint, Options, Profile, Severity};
use urxe_sim::trace::{Record, What};
use urxe_sim::{Run, Settings};
use urxe_wire::LinkType;

/// Where packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tap {
    Leaving,
    Arriving,
}

impl Tap {
    fn sees(self, record: &Record) -> bool {
        matches!(record.what, What::Sent(_)) == (self == Self::Leaving)
    }
}

fn violations(records: &[Record], tap: Tap) -> Vec<Finding> {
    // The engine of a run has the manners of any profile; these are the ones that matter here.
    let mut lint = Lint::new(Options { profile: Profile::ConnectX, ..Options::default() });
    let mut found = Vec::new();
    for (number, record) in (1..).zip(records.iter().filter(|record| tap.sees(record))) {
        found.extend(lint.frame(&Frame {
            number,
            time: i64::try_from(record.at.as_nanos()).ok(),
            link: LinkType::RawIp,
            bytes: &record.frame,
            original_len: u32::try_from(record.frame.len()).unwrap(),
        }));
    }
    found.extend(lint.finish());
    assert!(lint.totals().packets > 0);
    found.retain(|finding| finding.severity == Severity::Violation);
    found
}

fn judge(seeds: std::ops::Range<u64>, settings: &Settings) {
    let mut wrong = Vec::new();
    for seed in seeds {
        let run = Run { keep_trace: true, ..Run::new(seed, settings.clone()) };
        let outcome = run.go();
        assert_eq!(outcome.violation, None, "seed {seed}");
        for tap in [Tap::Leaving, Tap::Arriving] {
            let found = violations(outcome.trace.records(), tap);
            wrong.extend(found.into_iter().map(|f| format!("seed {seed} {tap:?}: {f:?}")));
        }
    }
    assert!(wrong.is_empty(), "{} findings\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn runs_without_faults_break_no_rule() {
    judge(0..40, &Settings::default());
}

#[test]
fn runs_with_loss_break_no_rule() {
    let mut settings = Settings::default();
    settings.link.loss = "5%".parse().unwrap();
    judge(0..200, &settings);
}
