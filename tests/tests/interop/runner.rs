//! Runs cases one after the other, whatever happens to the guest.

use std::fs;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rxe_lab::{Lab, Watch};
use urxe_cli::capture::Capture;
use urxe_lint::{Addr, Finding, Frame, Lint, Options, Profile, Rule, Severity};

use crate::bench::{Bench, Column};
use crate::cases::Case;
use crate::departures::{Departure, Met};
use crate::ours::Setting;
use crate::say;

/// A case that goes on for longer has hung: the longest takes a tenth of it.
const LONGEST: Duration = Duration::from_secs(400);
/// For a case whose guest was taken away, to end.
const GRACE: Duration = Duration::from_secs(60);
/// For a guest that lives, to say so.
const SIGN: &str = "true";

/// Runs cases in a lab.
pub struct Runner {
    pub lab: Lab,
    folder: PathBuf,
    deadline: Deadline,
}

impl Runner {
    /// Keeps the packets of cases that fail in a folder, which it empties.
    pub fn new(lab: Lab, folder: PathBuf) -> Self {
        // What is there is of an older run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self { lab, folder, deadline: Deadline::start() }
    }

    /// Runs a case; gives where rxe departed, or why the case failed. Then a guest is there that
    /// answers.
    pub fn run(&mut self, case: &Case, column: Column, number: usize) -> Result<Met, String> {
        let file = format!("{number}-{column}").replace([' ', '→'], "-");
        let pcap = self.folder.join(&file).with_extension("pcapng");
        let watch = self.lab.guest(1).watch().clone();
        self.deadline.set(Some((case.name, watch.clone())));
        let result = attempt(case, column, &pcap, &watch);
        let expired = self.deadline.set(None);
        let result = result.and_then(|met| judged(&pcap, case, &met, column));
        let Err(why) = result else {
            let _ = fs::remove_file(&pcap);
            return result;
        };
        let mut text = match (expired, watch.died()) {
            (true, _) => format!("it was not over in {LONGEST:?}; then: {why}"),
            (false, Some(died)) => died.to_string(),
            (false, None) => why,
        };
        text.push_str(&format!("\n  {}", pcap.display()));
        if watch.died().is_some() || silent(&watch) {
            let console = self.folder.join(&file).with_extension("console");
            if fs::copy(watch.console(), &console).is_ok() {
                text.push_str(&format!("\n  {}", console.display()));
            }
            if let Err(error) = self.lab.replace(1) {
                text.push_str(&format!("\n  and no other guest came up: {error}"));
            }
        }
        Err(text)
    }
}

/// Judges what passed in a case: neither side may break a rule of the protocol. What comes from the
/// peer over a link with faults may be in any disorder. Gives where rxe departed beside.
fn judged(pcap: &Path, case: &Case, met: &Met, column: Column) -> Result<Met, String> {
    let by_rxe: Vec<Rule> = met.iter().flat_map(|departure| departure.breaks()).copied().collect();
    let ours = Addr::Ip(column.host());
    let counts = |finding: &Finding| {
        let from_us = finding.ends.is_some_and(|(src, _)| src == ours);
        !by_rxe.contains(&finding.rule)
            && !case.excused.contains(&finding.rule)
            && (from_us || !case.faulty)
    };
    let found = judge(pcap, Profile::Rxe)?;
    let wrong: Vec<String> = found.iter().filter(|f| counts(f)).map(|f| format!("{f:?}")).collect();
    if !wrong.is_empty() {
        return Err(format!("urxe lint:\n{}", wrong.join("\n")));
    }
    let strict = judge(pcap, Profile::Strict)?;
    let known = strict.iter().filter(|finding| found.iter().all(|f| f.rule != finding.rule));
    let known = known.filter_map(|finding| Departure::known(finding.rule));
    Ok(known.chain(met.iter().copied()).collect())
}

/// The violations in a capture.
pub fn judge(pcap: &Path, profile: Profile) -> Result<Vec<Finding>, String> {
    let file = fs::File::open(pcap).map_err(|error| error.to_string())?;
    let name = pcap.display().to_string();
    let mut capture =
        Capture::new(&name, BufReader::new(file)).map_err(|error| error.to_string())?;
    let mut judge = Lint::new(Options { profile, ..Options::default() });
    let mut found = Vec::new();
    while let Some(frame) = capture.next_frame().map_err(|error| error.to_string())? {
        let Some(link) = frame.link_type() else { continue };
        found.extend(judge.frame(&Frame {
            number: frame.number,
            time: frame.time.and_then(|time| i64::try_from(time.0).ok()),
            link,
            bytes: frame.bytes,
            original_len: frame.original_len,
        }));
    }
    found.extend(judge.finish());
    found.retain(|finding| finding.severity == Severity::Violation);
    Ok(found)
}

/// Whether a guest that lives answers no more.
fn silent(watch: &Watch) -> bool {
    !matches!(watch.session().and_then(|mut session| session.exec(SIGN)), Ok((0, _)))
}

/// Runs a case; gives what it panicked with.
fn attempt(case: &Case, column: Column, pcap: &Path, watch: &Watch) -> Result<Met, String> {
    let setting = Setting {
        address: column.host(),
        port: column.port(),
        pcap: Some(pcap.to_owned()),
        watch: watch.clone(),
    };
    let tried = catch_unwind(AssertUnwindSafe(|| {
        let mut bench = Bench::new(column, &setting);
        (case.run)(&mut bench);
        bench.met
    }));
    tried.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "a panic without words".to_owned())
    })
}

/// What is running, since when, and whether it was ended.
struct Running {
    name: &'static str,
    watch: Watch,
    end: Instant,
    expired: bool,
}

/// Ends what hangs: takes its guest away, and if that does not help ends this program.
struct Deadline {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    running: Mutex<Option<Running>>,
    changed: Condvar,
}

impl Deadline {
    fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let watched = shared.clone();
        std::thread::spawn(move || watched.watch());
        Self { shared }
    }

    /// What runs from now on; gives whether what ran before was ended.
    fn set(&self, next: Option<(&'static str, Watch)>) -> bool {
        let next = next.map(|(name, watch)| {
            let end = Instant::now() + LONGEST;
            Running { name, watch, end, expired: false }
        });
        let mut running = self.shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.changed.notify_one();
        std::mem::replace(&mut *running, next).is_some_and(|before| before.expired)
    }
}

impl Shared {
    /// Looks at what runs, when it should be over.
    fn watch(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            let next = running.as_mut().map_or(LONGEST, |running| running.look(now));
            let waited = self.changed.wait_timeout(running, next);
            running = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Running {
    /// Ends what goes on for too long; when to look again.
    fn look(&mut self, now: Instant) -> Duration {
        let end = self.end + if self.expired { GRACE } else { Duration::ZERO };
        if now < end {
            return end - now;
        }
        if self.expired {
            say(&format!("FAILED  {}: hangs even without its guest; all ends here", self.name));
            std::process::exit(1);
        }
        self.expired = true;
        self.watch.kill();
        GRACE
    }
}
