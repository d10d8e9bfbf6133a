//! Which addresses are of this host.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::RwLock;

#[cfg(test)]
mod tests;

/// So long what the host said is taken to hold.
const REFRESH: Duration = Duration::from_secs(1);

/// The addresses of this host, as of a short while ago: to ask each time would cost more than a
/// send.
#[derive(Debug, Default)]
pub(super) struct Near(RwLock<Option<(Instant, Vec<IpAddr>)>>);

impl Near {
    /// Whether an address is of this host, `list` gives all that are. If it cannot, what was known
    /// holds.
    pub(super) fn has(
        &self,
        address: IpAddr,
        now: Instant,
        list: impl FnOnce() -> io::Result<Vec<IpAddr>>,
    ) -> bool {
        if let Some(has) = Self::look(&self.0.read(), address, now) {
            return has;
        }
        let known = &mut *self.0.write();
        // Another thread may have asked meanwhile.
        if let Some(has) = Self::look(known, address, now) {
            return has;
        }
        let old = known.take().map(|(_, addresses)| addresses).unwrap_or_default();
        let addresses = list().unwrap_or(old);
        let has = addresses.contains(&address);
        *known = Some((now, addresses));
        has
    }

    fn look(known: &Option<(Instant, Vec<IpAddr>)>, address: IpAddr, now: Instant) -> Option<bool> {
        let (at, addresses) = known.as_ref()?;
        (now.saturating_duration_since(*at) < REFRESH).then(|| addresses.contains(&address))
    }
}
