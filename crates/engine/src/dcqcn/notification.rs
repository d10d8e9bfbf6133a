//! The notification point: which marked packets are answered with a CNP.

use std::time::Duration;

use crate::Time;

/// Decides when a CNP is sent (the paper's NP): at most one per interval and destination.
///
/// `K` names a destination, such as the peer's address and QPN. The last `slots` destinations
/// that were sent a CNP are remembered; when a further one comes, the one that was told longest
/// ago is forgotten, and may be told again before its interval ends. Nothing allocates after
/// [`new`](Self::new). A look-up goes through all slots, and is made for marked packets only.
#[derive(Clone, Debug)]
pub struct NotificationPoint<K> {
    /// The paper's N.
    min_time_between_cnps: Duration,
    slots: usize,
    pub(super) told: Vec<(K, Time)>,
}

impl<K: Copy + Eq> NotificationPoint<K> {
    /// The paper's interval, N = 50 µs (§3.1).
    pub const PAPER_INTERVAL: Duration = Duration::from_micros(50);
    /// ConnectX's interval, 4 µs (NVIDIA, "DCQCN CC Parameters").
    pub const MLX5_INTERVAL: Duration = Duration::from_micros(4);

    /// At most one CNP per `min_time_between_cnps` to each of `slots` destinations (at least 1).
    #[must_use]
    pub fn new(min_time_between_cnps: Duration, slots: usize) -> Self {
        let slots = slots.max(1);
        Self { min_time_between_cnps, slots, told: Vec::with_capacity(slots) }
    }

    /// A marked packet of `destination`'s came at `now`. Returns whether to send it a CNP now.
    pub fn on_ce(&mut self, now: Time, destination: K) -> bool {
        if let Some((_, told)) = self.told.iter_mut().find(|(key, _)| *key == destination) {
            if now < *told + self.min_time_between_cnps {
                return false;
            }
            *told = now;
            return true;
        }
        if self.told.len() < self.slots {
            self.told.push((destination, now));
        } else if let Some(oldest) = self.told.iter_mut().min_by_key(|(_, told)| *told) {
            *oldest = (destination, now);
        }
        true
    }
}
