//! Drawing a whole plan.

use std::time::Duration;

use urxe_engine::QpKind;
use urxe_memory::Access;

use super::conns::{node, without};
use super::layout::all_rights;
use super::{Deed, DeedKind, Doom, Plan, Word};
use crate::{Rng, Settings};

/// What is known while a plan is drawn.
pub(super) struct Draft<'a> {
    pub(super) rng: Rng,
    pub(super) settings: &'a Settings,
    pub(super) plan: Plan,
    /// Regions with all rights, by node; the first can have windows.
    pub(super) open: Vec<Vec<usize>>,
    /// Regions without remote write, and without remote read, by node.
    pub(super) no_write: Vec<usize>,
    pub(super) no_read: Vec<usize>,
    /// The region that each pair will lose.
    pub(super) victims: Vec<Option<usize>>,
    /// When the last work request is posted, at the latest, unless it waits.
    pub(super) duration: Duration,
    /// What went before in each send queue.
    pub(super) past: Vec<[super::ops::Past; 2]>,
    /// Whether a pair has had its slip.
    pub(super) slipped: Vec<bool>,
    /// Whether receives of a side come late.
    pub(super) late: Vec<[bool; 2]>,
}

impl Plan {
    /// The plan of a seed.
    #[must_use]
    pub fn draw(seed: u64, settings: &Settings) -> Self {
        let mut rng = Rng::new(&[seed, 1]);
        let v6 = rng.one_in(3);
        let nodes = (0..settings.nodes).map(|n| node(&mut rng, n, v6, settings)).collect();
        let mut plan = Self {
            seed,
            nodes,
            regions: Vec::new(),
            words: Vec::new(),
            windows: Vec::new(),
            srqs: Vec::new(),
            conns: Vec::new(),
            ops: Vec::new(),
            recvs: Vec::new(),
            deeds: Vec::new(),
        };
        for _ in 0..settings.qps {
            let conn = plan.conn(&mut rng, settings);
            plan.conns.push(conn);
        }
        let mut draft = Draft::new(plan, rng, settings);
        while draft.plan.ops.len() < settings.ops {
            draft.draw_op();
        }
        draft.draw_deeds();
        let Draft { mut plan, mut rng, .. } = draft;
        plan.lay_out(&mut rng);
        plan
    }
}

impl<'a> Draft<'a> {
    fn new(mut plan: Plan, mut rng: Rng, settings: &'a Settings) -> Self {
        let (mut open, mut no_write, mut no_read) = (Vec::new(), Vec::new(), Vec::new());
        for node in 0..plan.nodes.len() {
            let mut regions = vec![plan.region(&mut rng, node, all_rights())];
            for _ in 0..rng.below(3) {
                let zero_based = if rng.one_in(3) { Access::ZERO_BASED } else { Access::empty() };
                regions.push(plan.region(&mut rng, node, all_rights() | zero_based));
            }
            open.push(regions);
            no_write.push(plan.region(&mut rng, node, without(Access::REMOTE_WRITE)));
            no_read.push(plan.region(&mut rng, node, without(Access::REMOTE_READ)));
            for swaps in [false, true] {
                for _ in 0..rng.between(1, 2) {
                    let region = open[node][rng.index(open[node].len())];
                    let span = plan.span(&mut rng, region, 8, 8);
                    plan.words.push(Word { span, swaps });
                }
            }
        }
        let mut victims = Vec::new();
        for i in 0..plan.conns.len() {
            let conn = plan.conns[i];
            let node = conn.nodes[rng.index(2)];
            let dies = conn.doom == Doom::Dereg;
            victims.push(dies.then(|| plan.region(&mut rng, node, all_rights())));
            if conn.doom == Doom::Slip && rng.one_in(4) {
                plan.conns[i].access = [without(Access::REMOTE_ATOMIC); 2];
            }
        }
        let late = plan.conns.iter().map(|_| [rng.one_in(4), rng.one_in(4)]).collect();
        let micros = rng.pick(&[0, 50, 500, 3000]);
        let count = plan.conns.len();
        Self {
            rng,
            settings,
            plan,
            open,
            no_write,
            no_read,
            victims,
            duration: Duration::from_micros(micros),
            past: vec![Default::default(); count],
            slipped: vec![false; count],
            late,
        }
    }

    /// A random time from the start to `slack` after the last work request.
    pub(super) fn time(&mut self, slack: Duration) -> Duration {
        let most = self.duration + slack;
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.rng.below(nanos.saturating_add(1)))
    }

    /// Some pairs have a send queue drained.
    fn draw_drain(&mut self, conn: usize) {
        let sends = if self.plan.conns[conn].kind == QpKind::XrcInit { 1 } else { 2 };
        if self.rng.one_in(4) {
            let side = self.rng.index(sends);
            let (at, length) = (self.time(Duration::from_micros(50)), self.rng.between(1, 500));
            let what = DeedKind::Drain(conn, side, Duration::from_micros(length));
            self.plan.deeds.push(Deed { at, what });
        }
    }

    fn draw_deeds(&mut self) {
        for conn in 0..self.plan.conns.len() {
            let side = self.rng.index(2);
            self.draw_drain(conn);
            let what = match self.plan.conns[conn].doom {
                Doom::None | Doom::Slip => continue,
                Doom::Dereg => match self.victims[conn] {
                    Some(region) => DeedKind::Dereg(region),
                    None => continue,
                },
                Doom::Deed => match self.rng.below(3) {
                    0 => DeedKind::ToError(conn, side),
                    1 => DeedKind::Reset(conn, side),
                    _ => DeedKind::Destroy(conn, side),
                },
            };
            let at = self.time(Duration::from_micros(300));
            self.plan.deeds.push(Deed { at, what });
        }
        if let Some(length) = self.settings.partition
            && self.plan.nodes.len() > 1
        {
            let count = self.plan.nodes.len();
            let a = self.rng.index(count);
            let b = (a + 1 + self.rng.index(count - 1)) % count;
            let at = self.time(Duration::from_micros(100));
            self.plan.deeds.push(Deed { at, what: DeedKind::Cut(a, b, length) });
        }
    }
}
