//! Questions of service: ours that wait for an answer, peers' that wait for the owner's, and
//! answers that are kept for duplicates.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use urxe_wire::cm::{CommId, ServiceId};

use crate::conn::Retry;
use crate::table::Stats;
use crate::{Deadline, ListenerId, Mad, Message, Route, Why};

/// Where a question stands.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Ours: its bytes, and how they are sent again.
    Asked { mad: Box<Mad>, retry: Retry },
    /// A peer's, which the owner has not answered.
    Waiting { listener: ListenerId, remote_id: CommId },
    /// A peer's: its answer.
    Answered { mad: Box<Mad>, remote_id: CommId },
}

#[derive(Debug)]
pub(crate) struct Sidr {
    pub(crate) stage: Stage,
    pub(crate) route: Route,
    pub(crate) service_id: ServiceId,
    pub(crate) tid: u64,
    pub(crate) deadline: Option<Duration>,
}

impl Sidr {
    /// Whose it is, if it is a peer's.
    fn peer(&self) -> Option<(IpAddr, CommId)> {
        match self.stage {
            Stage::Asked { .. } => None,
            Stage::Waiting { remote_id, .. } | Stage::Answered { remote_id, .. } => {
                Some((self.route.remote, remote_id))
            }
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Sidrs {
    all: BTreeMap<CommId, Sidr>,
    by_peer: BTreeMap<(IpAddr, CommId), CommId>,
    timers: BTreeSet<(Duration, CommId)>,
    answered: usize,
}

impl Sidrs {
    /// Those that wait for an answer.
    pub(crate) fn open(&self) -> usize {
        self.all.len() - self.answered
    }

    pub(crate) const fn answered(&self) -> usize {
        self.answered
    }

    pub(crate) fn get(&self, id: CommId) -> Option<&Sidr> {
        self.all.get(&id)
    }

    pub(crate) fn of_peer(&self, address: IpAddr, id: CommId) -> Option<&Sidr> {
        self.by_peer.get(&(address, id)).and_then(|id| self.all.get(id))
    }

    pub(crate) fn insert(&mut self, id: CommId, sidr: Sidr) {
        if let Some(peer) = sidr.peer() {
            self.by_peer.insert(peer, id);
        }
        if let Some(at) = sidr.deadline {
            self.timers.insert((at, id));
        }
        self.answered += usize::from(matches!(sidr.stage, Stage::Answered { .. }));
        self.all.insert(id, sidr);
    }

    pub(crate) fn remove(&mut self, id: CommId) -> Option<Sidr> {
        let sidr = self.all.remove(&id)?;
        if let Some(peer) = sidr.peer() {
            self.by_peer.remove(&peer);
        }
        if let Some(at) = sidr.deadline {
            self.timers.remove(&(at, id));
        }
        self.answered -= usize::from(matches!(sidr.stage, Stage::Answered { .. }));
        Some(sidr)
    }

    pub(crate) fn next(&self) -> Option<Deadline> {
        let &(at, id) = self.timers.first()?;
        let why = match self.all.get(&id)?.stage {
            Stage::Asked { .. } => Why::Answer(Message::SidrReq),
            _ => Why::Forget,
        };
        Some(Deadline { at, id, why })
    }

    /// Takes out one whose deadline has come.
    pub(crate) fn expired(&mut self, now: Duration) -> Option<(CommId, Sidr)> {
        let &(at, id) = self.timers.first()?;
        if at > now {
            return None;
        }
        self.remove(id).map(|sidr| (id, sidr))
    }

    /// Those of a listener that wait for the owner's answer.
    pub(crate) fn undecided(&self, listener: ListenerId) -> Vec<CommId> {
        let of = |sidr: &Sidr| match sidr.stage {
            Stage::Waiting { listener: its, .. } => its == listener,
            Stage::Asked { .. } | Stage::Answered { .. } => false,
        };
        self.all.iter().filter(|(_, sidr)| of(sidr)).map(|(&id, _)| id).collect()
    }

    pub(crate) fn count(&self, stats: &mut Stats) {
        stats.sidr = self.open();
        stats.remembered += self.answered;
    }
}
