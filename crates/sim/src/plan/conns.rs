//! Drawing NICs and pairs of QPs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use urxe_engine::{Profile, QpKind};
use urxe_memory::Access;
use urxe_wire::{AckTimeout, Mtu, RnrTimer};

use super::layout::all_rights;
use super::{Conn, Doom, Node, Plan, Polling, Srq};
use crate::{Rng, Settings, Share};

/// Bytes of a receive that may get any message of its queue.
const SHARED_ROOM: u32 = 12 << 10;

pub(super) fn node(rng: &mut Rng, number: usize, v6: bool, settings: &Settings) -> Node {
    let low = u16::try_from(number + 1).unwrap_or(u16::MAX);
    let address = if v6 {
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, low))
    } else {
        let [high, low] = low.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(10, 0, high, low))
    };
    Node {
        address,
        profile: settings.profile.unwrap_or_else(|| rng.pick(&Profile::ALL)),
        polling: rng.pick(&[Polling::Eager, Polling::Lazy, Polling::Armed]),
        cqs: rng.index(3) + 1,
    }
}

impl Plan {
    pub(super) fn conn(&mut self, rng: &mut Rng, settings: &Settings) -> Conn {
        let kind = rng.pick(&[
            QpKind::Rc,
            QpKind::Rc,
            QpKind::Rc,
            QpKind::Rc,
            QpKind::XrcInit,
            QpKind::XrcInit,
            QpKind::Uc,
            QpKind::Ud,
        ]);
        let count = self.nodes.len();
        let a = rng.index(count);
        // One in eight stays on its own node.
        let other = |rng: &mut Rng| (a + 1 + rng.index(count - 1)) % count;
        let b = if count == 1 || rng.one_in(8) { a } else { other(rng) };
        let doom = self.doom(rng, settings, kind);
        let [retry, rnr_retry] = self.retries(rng, settings, [a, b], doom);
        let mut conn = Conn {
            kind,
            nodes: [a, b],
            mtu: settings.mtu.unwrap_or_else(|| rng.pick(&Mtu::ALL)),
            psn: [psn(rng), psn(rng)],
            timeout: timeout(rng, settings),
            retry,
            rnr_retry,
            rnr_timer: RnrTimer::from_syndrome(u8::try_from(rng.between(1, 14)).unwrap_or(1)),
            rd_atomic: u8::try_from(rng.pick(&[1_u64, 1, 2, 3, 4, 8, 16])).unwrap_or(1),
            depth: rng.pick(&[1, 2, 4, 16, 64, 256]),
            sig_all: [rng.one_in(8), rng.one_in(8)],
            srq: [None, None],
            access: [all_rights(), all_rights()],
            traffic_class: traffic_class(rng, settings),
            doom,
        };
        self.queues(rng, &mut conn);
        conn
    }

    fn doom(&self, rng: &mut Rng, settings: &Settings, kind: QpKind) -> Doom {
        if !settings.trouble || !rng.one_in(3) {
            return Doom::None;
        }
        match kind {
            QpKind::Rc | QpKind::XrcInit => {
                rng.pick(&[Doom::Slip, Doom::Slip, Doom::Dereg, Doom::Deed])
            }
            _ => rng.pick(&[Doom::Dereg, Doom::Deed]),
        }
    }

    /// Retries without end only where no peer ever falls silent.
    fn retries(
        &self,
        rng: &mut Rng,
        settings: &Settings,
        nodes: [usize; 2],
        doom: Doom,
    ) -> [u8; 2] {
        let endless = |n: usize| self.nodes[n].profile.infinite_retry_at_7;
        let rnr_retry = if settings.trouble && rng.one_in(6) { 3 } else { 7 };
        let any = nodes.iter().any(|&n| endless(n));
        let all = nodes.iter().all(|&n| endless(n));
        let safe = all && doom == Doom::None && rnr_retry == 7;
        let most = if any && !safe { 6 } else { 7 };
        let retry = if rng.one_in(8) { rng.between(1, most) } else { most };
        [u8::try_from(retry).unwrap_or(6), rnr_retry]
    }

    /// XRC needs SRQs at its receiving end; RC and UD may have one.
    fn queues(&mut self, rng: &mut Rng, conn: &mut Conn) {
        for side in 0..2 {
            let node = conn.nodes[side];
            let kind = conn.kind;
            let wants = match conn.kind {
                QpKind::XrcInit => side == 1,
                QpKind::Rc | QpKind::Ud => rng.one_in(4),
                _ => false,
            };
            if wants {
                let find = |s: &Srq| s.node == node && s.kind == kind;
                let found = self.srqs.iter().position(find).filter(|_| !rng.one_in(3));
                conn.srq[side] = Some(found.unwrap_or_else(|| {
                    self.srqs.push(Srq { node, kind, room: SHARED_ROOM });
                    self.srqs.len() - 1
                }));
            }
        }
    }
}

/// Half of all start near the end of the circle, or near its middle.
fn psn(rng: &mut Rng) -> u32 {
    let around = |rng: &mut Rng, centre: u32| centre.wrapping_sub(rng.between32(0, 40)) & 0xff_ffff;
    match rng.below(4) {
        0 => around(rng, 0),
        1 => around(rng, 0x80_0000),
        _ => rng.between32(0, 0xff_ffff),
    }
}

/// Long enough that only loss makes it run out.
fn timeout(rng: &mut Rng, settings: &Settings) -> AckTimeout {
    let hops = match settings.topology {
        crate::Topology::Mesh => 1,
        crate::Topology::Star => 2,
    };
    let least = settings.link.slowest() * 2 * hops * 2 + Duration::from_micros(500);
    let fits = |code: &u8| AckTimeout::new(*code).ok()?.duration().filter(|d| *d >= least);
    let first = (1..=31).find(|code| fits(code).is_some()).unwrap_or(31);
    let extra = u8::try_from(rng.below(3)).unwrap_or(0);
    AckTimeout::new(first.saturating_add(extra).min(31)).unwrap_or_default()
}

fn traffic_class(rng: &mut Rng, settings: &Settings) -> u8 {
    let dscp = u8::try_from(rng.below(64)).unwrap_or(0) << 2;
    let capable = settings.marks() || rng.chance(Share::percent(50));
    dscp | if capable { 2 } else { 0 }
}

/// Rights less one.
pub(super) fn without(access: Access) -> Access {
    all_rights() - access
}
