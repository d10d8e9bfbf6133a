//! What a run is made of, beside its seed.

use std::time::Duration;

use urxe_engine::Profile;
use urxe_wire::Mtu;

use crate::fabric::Topology;
use crate::fault::Fault;
use crate::link::LinkConfig;

/// Settings of a run. What is `None` is drawn from the seed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// NICs, 1 to 64.
    pub nodes: usize,
    /// Pairs of QPs, 1 to 1024.
    pub qps: usize,
    /// Work requests in all, about, 1 to 100,000.
    pub ops: usize,
    /// How the nodes are joined.
    pub topology: Topology,
    /// What links do.
    pub link: LinkConfig,
    /// Faults that name their packets.
    pub faults: Vec<Fault>,
    /// Two nodes are cut off from each other once, for so long.
    pub partition: Option<Duration>,
    /// Path MTU of all QPs.
    pub mtu: Option<Mtu>,
    /// Manners of all NICs.
    pub profile: Option<Profile>,
    /// Whether some pairs of QPs make mistakes, lose their memory, or are torn down.
    pub trouble: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            nodes: 3,
            qps: 6,
            ops: 60,
            topology: Topology::Mesh,
            link: LinkConfig::default(),
            faults: Vec::new(),
            partition: None,
            mtu: None,
            profile: None,
            trouble: true,
        }
    }
}

impl Settings {
    /// Whether congestion is marked, so that QPs control their rate.
    #[must_use]
    pub const fn marks(&self) -> bool {
        self.link.marking.is_some()
    }
}
