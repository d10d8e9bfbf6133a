//! What a port counts.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of a port, readable at any time.
        #[derive(Debug, Default)]
        pub struct PortStats { $($(#[$doc])* pub(crate) $name: AtomicU64),* }

        /// The counters of a port at one time.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct PortStatsSnapshot { $($(#[$doc])* pub $name: u64),* }

        impl PortStats {
            /// All of them now.
            #[must_use]
            pub fn snapshot(&self) -> PortStatsSnapshot {
                PortStatsSnapshot { $($name: self.$name.load(Ordering::Relaxed)),* }
            }
        }

        impl PortStatsSnapshot {
            /// All of them, by name.
            pub fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }
    };
}

stats! {
    /// Packets handed to the host.
    tx_packets,
    /// Calls that took: several packets each, with segmentation offload.
    tx_calls,
    /// Packets that the path's MTU cannot carry.
    tx_too_long,
    /// Packets for which the host has no route, or which a rule of its forbids.
    tx_unreachable,
    /// Packets to a neighbour that does not answer, or for which too many waited already.
    tx_no_neighbour,
    /// Times the socket's send buffer was full.
    tx_no_room,
    /// Packets let go because there was no room for too long, or the port was broken.
    tx_given_up,
    /// Packets that came.
    rx_packets,
    /// Calls that took.
    rx_calls,
    /// Runs of packets of one size that came as one datagram, with receive offload; as many as
    /// packets without it.
    rx_runs,
    /// Packets whose ICRC was right under another IP identification than those expected: 0, and the
    /// place in a run.
    rx_icrc_solved,
    /// Packets whose ICRC was wrong.
    rx_icrc_bad,
    /// Packets too short for a BTH and an ICRC.
    rx_short,
    /// Frames cut short, or whose lengths do not agree.
    rx_malformed,
    /// Packets whose IPv4 header checksum is wrong.
    rx_ip_checksum,
    /// Fragments: RoCEv2 has none.
    rx_fragment,
    /// Packets that the host dropped because a socket's buffer was full; read every ten
    /// milliseconds at most.
    rx_overrun,
    /// Packets to a group that the port did not join.
    rx_other_group,
    /// Packets for another process on a shared address, which the host had gathered with ours.
    rx_other_slot,
}

impl PortStats {
    /// Counts packets that the driver lets go: the port did not take them in time.
    pub fn give_up(&self, packets: usize) {
        Self::add(&self.tx_given_up, packets as u64);
    }

    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}
