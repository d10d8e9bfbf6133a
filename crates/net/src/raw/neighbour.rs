//! Where a packet goes first: the way to an address, and the hardware address at its first hop.
//!
//! The kernel is asked first. If it does not know a neighbour, the port asks the link itself, a
//! few times, while a few packets wait. No socket here and no clock: questions, frames and time
//! come in, frames go out.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use urxe_wire::Mac;

use super::discover::{Heard, Us};
use crate::netlink::Route;

#[cfg(test)]
mod tests;

/// What is known of routes and neighbours outside the port.
pub(super) trait Knows {
    /// The way to an address; an error where there is none.
    fn route(&self, to: IpAddr) -> std::io::Result<Route>;
    /// The hardware address of a neighbour.
    fn neighbour(&self, of: IpAddr) -> Option<Mac>;
}

/// How long an answer of the kernel's counts.
const ROUTE_LIFE: Duration = Duration::from_secs(10);
/// How long an answer of the neighbour's own counts.
const HEARD_LIFE: Duration = Duration::from_secs(30);
/// Between one request and the next.
pub(super) const INTERVAL: Duration = Duration::from_millis(500);
/// Requests before a neighbour counts as absent.
pub(super) const TRIES: u32 = 4;
/// How long one counts as absent, or an address as without a way.
const ABSENT_LIFE: Duration = Duration::from_secs(1);
/// Packets that wait for one neighbour.
pub(super) const WAITING: usize = 16;
/// Addresses remembered.
const MOST: usize = 4096;

/// Where a packet goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To this host itself.
    Local,
    /// To this hardware address.
    Link(Mac),
    /// To this neighbour, whose hardware address is being asked for.
    Ask(IpAddr),
    /// Nowhere: there is no route.
    NoRoute,
    /// Nowhere: the neighbour does not answer.
    Absent,
}

#[derive(Clone, Copy, Debug)]
struct Hop {
    way: Option<Route>,
    until: Instant,
}

#[derive(Debug)]
enum Neighbour {
    /// Known; after `until` asked for again, `tries` times so far without an answer.
    Known { mac: Mac, until: Instant, tries: u32 },
    /// Asked for `tries` times, next at `at`; these frames wait.
    Asked { tries: u32, at: Instant, frames: VecDeque<Vec<u8>> },
    /// Silent.
    Absent { until: Instant },
}

/// All ways that packets take.
#[derive(Debug)]
pub(super) struct Ways {
    us: Us,
    hops: HashMap<IpAddr, Hop>,
    neighbours: HashMap<IpAddr, Neighbour>,
    /// How many of them are being asked for.
    asked: usize,
    /// Frames to be sent.
    pub(super) out: Vec<Vec<u8>>,
    /// Packets dropped since they were last counted, because a neighbour stayed silent.
    pub(super) dropped: u64,
    /// When the port's timer runs out.
    pub(super) armed: Option<Instant>,
    /// When the port last listened to neighbours.
    pub(super) attended: Option<Instant>,
}

impl Ways {
    pub(super) fn new(us: Us) -> Self {
        let (hops, neighbours) = (HashMap::new(), HashMap::new());
        let (out, dropped, armed, attended) = (Vec::new(), 0, None, None);
        Self { us, hops, neighbours, asked: 0, out, dropped, armed, attended }
    }

    /// The way to `dst`, no group.
    pub(super) fn to(&mut self, dst: IpAddr, now: Instant, kernel: &impl Knows) -> Way {
        let way = match self.hops.get(&dst) {
            Some(hop) if now < hop.until => hop.way,
            _ => {
                let way = kernel.route(dst).ok();
                let life = if way.is_some() { ROUTE_LIFE } else { ABSENT_LIFE };
                make_room(&mut self.hops);
                self.hops.insert(dst, Hop { way, until: now + life });
                way
            }
        };
        match way {
            None => Way::NoRoute,
            Some(Route { local: true, .. }) => Way::Local,
            Some(Route { gateway, .. }) => self.neighbour(gateway.unwrap_or(dst), now, kernel),
        }
    }

    fn neighbour(&mut self, of: IpAddr, now: Instant, kernel: &impl Knows) -> Way {
        match self.neighbours.get(&of) {
            Some(Neighbour::Known { mac, until, .. }) if now < *until => return Way::Link(*mac),
            Some(Neighbour::Absent { until }) if now < *until => return Way::Absent,
            Some(Neighbour::Asked { .. }) => return Way::Ask(of),
            _ => {}
        }
        if let Some(mac) = kernel.neighbour(of) {
            self.insert(of, Neighbour::Known { mac, until: now + ROUTE_LIFE, tries: 0 });
            return Way::Link(mac);
        }
        if self.neighbours.len() >= MOST && !self.neighbours.contains_key(&of) {
            make_room(&mut self.neighbours);
            if self.neighbours.len() >= MOST {
                return Way::Absent;
            }
        }
        self.out.extend(self.us.ask(of));
        match self.neighbours.get_mut(&of) {
            // What was right until now is used until the neighbour has not answered often enough.
            Some(Neighbour::Known { mac, until, tries }) if *tries < TRIES => {
                (*until, *tries) = (now + INTERVAL, *tries + 1);
                Way::Link(*mac)
            }
            _ => {
                let frames = VecDeque::new();
                self.asked += 1;
                self.insert(of, Neighbour::Asked { tries: 1, at: now + INTERVAL, frames });
                Way::Ask(of)
            }
        }
    }

    fn insert(&mut self, of: IpAddr, neighbour: Neighbour) {
        make_room(&mut self.neighbours);
        self.neighbours.insert(of, neighbour);
    }

    /// Lets a frame wait for a neighbour that was asked for; of too many the oldest is dropped.
    pub(super) fn wait(&mut self, of: IpAddr, frame: Vec<u8>) {
        let Some(Neighbour::Asked { frames, .. }) = self.neighbours.get_mut(&of) else {
            self.dropped += 1;
            return;
        };
        if frames.len() == WAITING {
            frames.pop_front();
            self.dropped += 1;
        }
        frames.push_back(frame);
    }

    /// Takes in a frame that may tell of a neighbour. `answers`: whether a question for our address
    /// is ours to answer.
    pub(super) fn hear(&mut self, frame: &[u8], now: Instant, answers: bool) {
        let Some(heard) = self.us.hear(frame) else {
            return;
        };
        if heard.asks_us && answers {
            self.out.extend(self.us.answer(&heard));
        }
        let Heard { of, mac, .. } = heard;
        // Only of those we talk to: a stranger cannot fill the table.
        let Some(neighbour) = self.neighbours.get_mut(&of) else {
            return;
        };
        let known = Neighbour::Known { mac, until: now + HEARD_LIFE, tries: 0 };
        if let Neighbour::Asked { frames, .. } = std::mem::replace(neighbour, known) {
            self.asked -= 1;
            for mut frame in frames {
                frame[..6].copy_from_slice(&mac.0);
                self.out.push(frame);
            }
        }
    }

    /// Asks again where an answer is overdue, and gives up where none came.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.asked == 0 {
            return;
        }
        for (of, neighbour) in &mut self.neighbours {
            let Neighbour::Asked { tries, at, frames } = neighbour else {
                continue;
            };
            if now < *at {
                continue;
            }
            if *tries < TRIES {
                (*tries, *at) = (*tries + 1, now + INTERVAL);
                self.out.extend(self.us.ask(*of));
                continue;
            }
            self.dropped += frames.len() as u64;
            self.asked -= 1;
            tracing::debug!(neighbour = %of, packets = frames.len(), "no answer from neighbour");
            *neighbour = Neighbour::Absent { until: now + ABSENT_LIFE };
        }
    }

    /// When [`Self::expire`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.asked == 0 {
            return None;
        }
        let at = |n: &Neighbour| match n {
            Neighbour::Asked { at, .. } => Some(*at),
            _ => None,
        };
        self.neighbours.values().filter_map(at).min()
    }
}

/// A full table starts anew, but for the neighbours being asked for; the kernel knows the rest.
fn make_room<T: Keep>(table: &mut HashMap<IpAddr, T>) {
    if table.len() >= MOST {
        table.retain(|_, entry| entry.keep());
    }
}

trait Keep {
    fn keep(&self) -> bool;
}

impl Keep for Hop {
    fn keep(&self) -> bool {
        false
    }
}

impl Keep for Neighbour {
    fn keep(&self) -> bool {
        matches!(self, Self::Asked { .. })
    }
}
