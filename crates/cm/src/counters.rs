//! Why messages were not acted upon, and what else is counted.

use std::fmt;

use urxe_wire::cm::{CmAttribute, RejReason};

/// Defines an enum of names, each with its counter's name.
macro_rules! names {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$vdoc:meta])* $v:ident $key:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $v),* }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$v),*];

            /// Its counter's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$v => $key),* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

names! {
    /// Why a message that came changed nothing. Duplicates and the like are answered all the same.
    Drop {
        /// It is no CM message of 256 bytes.
        Malformed "drop_malformed";
        /// Its class version is not 2.
        ClassVersion "drop_class_version";
        /// Its receiver's id names no connection.
        UnknownId "drop_unknown_id";
        /// The connection that it names is with another address.
        WrongAddress "drop_wrong_address";
        /// Its sender's id is not the connection's peer.
        WrongPeer "drop_wrong_peer";
        /// The state of the connection does not expect it.
        WrongState "drop_wrong_state";
        /// It came before.
        Duplicate "drop_duplicate";
        /// A REQ with a communication id that is in use for another one.
        IdInUse "drop_id_in_use";
        /// A DREQ that names another QP than ours.
        WrongQpn "drop_wrong_qpn";
        /// A request to a service that nothing listens to.
        NoListener "drop_no_listener";
        /// The listener's backlog is full.
        BacklogFull "drop_backlog_full";
        /// All connections that are allowed exist.
        Full "drop_full";
        /// The owner leaves events unread.
        EventsFull "drop_events_full";
        /// A request that cannot be granted.
        BadRequest "drop_bad_request";
        /// The QP of the sender is in another connection, which is stale.
        Stale "drop_stale";
        /// Alternate paths are not supported.
        AlternatePath "drop_alternate_path";
    }
}

names! {
    /// What is counted beside drops.
    Count {
        /// MADs sent.
        Sent "sent";
        /// Of them, sent before and not answered in time.
        Retried "retried";
        /// Of them, answers to duplicates.
        AnsweredAgain "answered_again";
        /// REJs among them.
        Refused "refused";
        /// Connections established.
        Established "established";
        /// Attempts, ours and peers', that found no answer.
        Unreachable "unreachable";
        /// Connections that ended without the peer's DREP.
        DisconnectUnanswered "disconnect_unanswered";
        /// Connections that were told to wait by an MRA.
        ToldToWait "told_to_wait";
    }
}

/// How many kinds of message there are.
const KINDS: usize = CmAttribute::KNOWN.len();

/// The counters of a [`crate::Cm`].
#[derive(Clone, Debug)]
pub struct Counters {
    drops: [u64; Drop::ALL.len()],
    counts: [u64; Count::ALL.len()],
    received: [u64; KINDS],
    /// By reason: REJs received.
    rejects: [u64; RejReason::KNOWN.len() + 1],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            drops: [0; Drop::ALL.len()],
            counts: [0; Count::ALL.len()],
            received: [0; KINDS],
            rejects: [0; RejReason::KNOWN.len() + 1],
        }
    }
}

impl Counters {
    /// How many messages were dropped for `why`.
    #[must_use]
    pub const fn drops(&self, why: Drop) -> u64 {
        self.drops[why as usize]
    }

    /// The value of `what`.
    #[must_use]
    pub const fn get(&self, what: Count) -> u64 {
        self.counts[what as usize]
    }

    /// How many messages of a kind came.
    #[must_use]
    pub fn received(&self, kind: CmAttribute) -> u64 {
        kind_index(kind).map_or(0, |at| self.received[at])
    }

    /// How many REJs came with a reason; those without a meaning count as one.
    #[must_use]
    pub fn rejects(&self, reason: RejReason) -> u64 {
        self.rejects[reason_index(reason)]
    }

    /// All that are not zero, by name.
    pub fn non_zero(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = Count::ALL.iter().map(|&c| (c.name(), self.get(c)));
        let drops = Drop::ALL.iter().map(|&d| (d.name(), self.drops(d)));
        counts.chain(drops).filter(|&(_, n)| n != 0)
    }

    pub(crate) const fn dropped(&mut self, why: Drop) {
        self.drops[why as usize] += 1;
    }

    pub(crate) const fn add(&mut self, what: Count) {
        self.counts[what as usize] += 1;
    }

    pub(crate) fn came(&mut self, kind: CmAttribute) {
        if let Some(at) = kind_index(kind) {
            self.received[at] += 1;
        }
    }

    pub(crate) fn rejected(&mut self, reason: RejReason) {
        self.rejects[reason_index(reason)] += 1;
    }
}

fn kind_index(kind: CmAttribute) -> Option<usize> {
    CmAttribute::KNOWN.iter().position(|&known| known == kind)
}

fn reason_index(reason: RejReason) -> usize {
    let known = RejReason::KNOWN;
    known.iter().position(|&known| known == reason).unwrap_or(known.len())
}
