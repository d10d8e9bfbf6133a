//! What `urxe run --report` shows: what a process's NIC counted, and what failed and why.
//!
//! `URXE_REPORT` names the file, with `%p` for the process's id. It is written anew whenever the
//! last device is closed, and when the process exits; a process that is killed leaves none behind.

use std::collections::BTreeMap;
use std::env;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use urxe::{Completion, Context, WcStatus};

#[cfg(test)]
mod tests;

/// Different failures that are told apart; what comes after them is counted only.
const KINDS: usize = 64;

/// Whether anybody wants to know.
static WANTED: AtomicBool = AtomicBool::new(false);
static BOOK: Mutex<Book> = Mutex::new(Book::new());

/// Counters that are not 0, by name.
#[derive(Clone, Debug)]
struct Counts {
    engine: BTreeMap<&'static str, u64>,
    port: BTreeMap<&'static str, u64>,
}

impl Counts {
    /// Adds what a NIC counted.
    fn add(&mut self, nic: &Context) {
        for (name, n) in nic.counters() {
            *self.engine.entry(name).or_default() += n;
        }
        for (name, n) in nic.port_stats().by_name().filter(|&(_, n)| n != 0) {
            *self.port.entry(name).or_default() += n;
        }
    }
}

/// What this process's NICs counted and what failed on them.
#[derive(Debug)]
struct Book {
    process: u32,
    address: Option<IpAddr>,
    /// What NICs counted that are closed.
    closed: Counts,
    /// By call and errno: the words of the first, and how many.
    refused: BTreeMap<(&'static str, i32), (String, u64)>,
    /// By QP and status likewise.
    failed: BTreeMap<(u32, u32), (String, u64)>,
    untold: u64,
}

impl Book {
    const fn new() -> Self {
        Self {
            process: 0,
            address: None,
            closed: Counts { engine: BTreeMap::new(), port: BTreeMap::new() },
            refused: BTreeMap::new(),
            failed: BTreeMap::new(),
            untold: 0,
        }
    }

    /// Writes it with these counts; `ended` once there is no more to come from a device.
    fn write(&self, path: &Path, counts: &Counts, ended: bool) {
        let mut object = self.object(counts);
        object["ended"] = ended.into();
        // Whole or not at all: another process may be reading.
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let written = std::fs::write(&new, format!("{object}\n"));
        let written = written.and_then(|()| std::fs::rename(&new, path));
        // Whoever wanted it has gone, as `urxe run` has when a program leaves processes behind.
        if let Err(error) = written
            && error.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("urxe: URXE_REPORT={}: {error}; give a file to write", path.display());
        }
    }

    fn object(&self, counts: &Counts) -> Value {
        let refused = self.refused.iter().map(|(&(call, errno), (why, n))| {
            json!({"call": call, "errno": errno, "why": why, "count": n})
        });
        let failed = self.failed.iter().map(|(&(qpn, status), (why, n))| {
            json!({"qpn": qpn, "status": status, "why": why, "count": n})
        });
        json!({
            "process": self.process,
            "program": program(),
            "address": self.address,
            "engine": counts.engine,
            "port": counts.port,
            "refused_calls": refused.collect::<Vec<_>>(),
            "failed_requests": failed.collect::<Vec<_>>(),
            "other_failures": self.untold,
        })
    }
}

fn program() -> String {
    let name = env::args_os().next().unwrap_or_default();
    let name = Path::new(&name).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn file() -> Option<std::path::PathBuf> {
    let name = env::var_os("URXE_REPORT").filter(|name| !name.is_empty())?;
    Some(urxe::of_this_process(Path::new(&name)))
}

/// The process opens its NIC.
pub(crate) fn opened(nic: &Context) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function lives as long as the library, which is never unloaded.
        let _ = unsafe { libc::atexit(exits) };
    });
    let Some(path) = file() else { return };
    WANTED.store(true, Ordering::Relaxed);
    let mut book = BOOK.lock();
    if book.process != std::process::id() {
        // The parent's, before a fork.
        *book = Book { process: std::process::id(), ..Book::new() };
    }
    book.address = Some(nic.address());
    book.write(&path, &book.closed, false);
}

/// What the parent has counted is not this process's.
///
/// # Safety
/// No other thread is there.
pub(crate) unsafe fn in_child() {
    // SAFETY: the caller's.
    unsafe { crate::fork::renew(&BOOK, Book::new()) };
}

/// The process closes its NIC.
pub(crate) fn closes(nic: &Context) {
    let Some(path) = file().filter(|_| nic.is_ours()) else { return };
    let book = &mut *BOOK.lock();
    book.closed.add(nic);
    book.write(&path, &book.closed, true);
}

/// The process exits with its NIC open. It may yet be closed, which counts then.
fn leaves(nic: &Context) {
    let Some(path) = file() else { return };
    let book = BOOK.lock();
    let mut counts = book.closed.clone();
    counts.add(nic);
    book.write(&path, &counts, true);
}

/// The process exits. What is open then is not closed: other threads may be using it.
extern "C" fn exits() {
    let _ = std::panic::catch_unwind(|| {
        crate::nic::if_open(|nic| {
            // The ACK of the last message, say, for which its sender waits.
            nic.flush();
            nic.flush_capture();
            if WANTED.load(Ordering::Relaxed) {
                leaves(nic);
            }
        });
    });
}

/// A call was refused.
pub(crate) fn refused(call: &'static str, errno: i32, why: &str) {
    if WANTED.load(Ordering::Relaxed) {
        let book = &mut *BOOK.lock();
        count(&mut book.refused, (call, errno), || why.to_owned(), &mut book.untold);
    }
}

/// A completion was handed to the program.
pub(crate) fn completed(completion: &Completion) {
    if completion.status != WcStatus::Success && WANTED.load(Ordering::Relaxed) {
        let book = &mut *BOOK.lock();
        let key = (completion.qpn.value(), completion.status as u32);
        count(&mut book.failed, key, || completion.explain(), &mut book.untold);
    }
}

fn count<K: Ord>(
    all: &mut BTreeMap<K, (String, u64)>,
    key: K,
    why: impl FnOnce() -> String,
    untold: &mut u64,
) {
    if let Some((_, n)) = all.get_mut(&key) {
        *n += 1;
    } else if all.len() < KINDS {
        all.insert(key, (why(), 1));
    } else {
        *untold += 1;
    }
}
