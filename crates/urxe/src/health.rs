//! What is known of a port's health.

use std::fmt::Display;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use parking_lot::Mutex;

/// Whether a port works, as far as is known.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// The last call to the port failed.
    failing: AtomicBool,
    /// Why it is taken to be broken.
    broken: Mutex<Option<String>>,
}

impl Health {
    /// Why the port is broken, if it is.
    pub(crate) fn broken(&self) -> Option<String> {
        self.broken.lock().clone()
    }

    /// A call failed; says whether that is news.
    pub(crate) fn failed(&self, why: &dyn Display) -> bool {
        self.failing.store(true, SeqCst);
        let mut broken = self.broken.lock();
        let news = broken.is_none();
        if news {
            *broken = Some(why.to_string());
        }
        news
    }

    /// A call succeeded. That alone does not make the port whole: a socket may well be read while
    /// its interface is gone.
    pub(crate) fn succeeded(&self) {
        if self.failing.load(Relaxed) {
            self.failing.store(false, SeqCst);
        }
    }

    /// The host was asked, and says that the port can carry packets; says whether that is news.
    pub(crate) fn whole(&self) -> bool {
        !self.failing.load(SeqCst) && self.broken.lock().take().is_some()
    }
}

#[cfg(test)]
mod tests;
