//! The rules: for each kind and transition the attributes that it requires and those it allows.
//!
//! Facts: IBA 10.3.1 with its table of modifiers, and what Linux accepts
//! (drivers/infiniband/core/verbs.c, `ib_modify_qp_is_ok`). A rule is written once for all kinds
//! and states that share its reason; what a transition takes is the union of its rules.

use super::{AttrError, AttrMask, QpKind, QpState};

use AttrMask as A;
use QpKind::{Gsi, Rc, Uc, Ud, XrcInit, XrcTarget};
use QpState::{Init, Reset, Rtr, Rts, Sqd, Sqe};

/// The attributes that a transition takes. [`AttrMask::STATE`] is in neither: it asks for the
/// transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Needs {
    /// Must be in the mask.
    pub required: AttrMask,
    /// May be in the mask. Disjoint from `required`.
    pub optional: AttrMask,
}

/// One reason for attributes: any of `kinds` going from any of `from` to `to`.
struct Rule {
    kinds: &'static [QpKind],
    from: &'static [QpState],
    to: QpState,
    required: AttrMask,
    optional: AttrMask,
}

const NONE: A = A::empty();
const ANY: &[QpState] = &QpState::ALL;
const ALL: &[QpKind] = &QpKind::ALL;
const DATAGRAM: &[QpKind] = &[Ud, Gsi];
const CONNECTED: &[QpKind] = &[Rc, Uc, XrcInit, XrcTarget];
const RELIABLE: &[QpKind] = &[Rc, XrcInit, XrcTarget];
/// Send requests that are acknowledged: they need retries.
const REQUESTERS: &[QpKind] = &[Rc, XrcInit];
/// Answer requests: they need READ resources and an RNR timer.
const RESPONDERS: &[QpKind] = &[Rc, XrcTarget];

const PEER: A = A::AV.union(A::PATH_MTU).union(A::DEST_QPN).union(A::RQ_PSN);
const RETRY: A = A::RETRY_CNT.union(A::RNR_RETRY).union(A::MAX_QP_RD_ATOMIC);
const RESOURCES: A = A::MAX_DEST_RD_ATOMIC.union(A::MIN_RNR_TIMER);
const MIGRATION: A = A::ALT_PATH.union(A::PATH_MIG_STATE);
/// A running QP's rights and paths may change at any time.
const RUNNING: A = A::ACCESS_FLAGS.union(MIGRATION);

const fn needs(
    kinds: &'static [QpKind],
    from: &'static [QpState],
    to: QpState,
    required: AttrMask,
) -> Rule {
    Rule { kinds, from, to, required, optional: NONE }
}

const fn takes(
    kinds: &'static [QpKind],
    from: &'static [QpState],
    to: QpState,
    optional: AttrMask,
) -> Rule {
    Rule { kinds, from, to, required: NONE, optional }
}

const RULES: &[Rule] = &[
    needs(ALL, ANY, Reset, NONE),
    needs(ALL, ANY, QpState::Err, NONE),
    // INIT: what packets belong here.
    needs(ALL, &[Reset], Init, A::PKEY_INDEX),
    needs(CONNECTED, &[Reset], Init, A::PORT.union(A::ACCESS_FLAGS)),
    needs(&[Ud], &[Reset], Init, A::PORT),
    needs(DATAGRAM, &[Reset], Init, A::QKEY),
    takes(ALL, &[Init], Init, A::PKEY_INDEX),
    takes(CONNECTED, &[Init], Init, A::PORT.union(A::ACCESS_FLAGS)),
    takes(&[Ud], &[Init], Init, A::PORT),
    takes(DATAGRAM, &[Init], Init, A::QKEY),
    // RTR: the peer, and what it may ask of us.
    takes(ALL, &[Init], Rtr, A::PKEY_INDEX),
    takes(DATAGRAM, &[Init], Rtr, A::QKEY),
    needs(CONNECTED, &[Init], Rtr, PEER),
    takes(CONNECTED, &[Init], Rtr, A::ALT_PATH.union(A::ACCESS_FLAGS)),
    needs(RESPONDERS, &[Init], Rtr, RESOURCES),
    // RTS: how to send. XRC_RECV has no send queue, yet Linux wants its PSN and timeout.
    needs(ALL, &[Rtr], Rts, A::SQ_PSN),
    needs(RELIABLE, &[Rtr], Rts, A::TIMEOUT),
    needs(REQUESTERS, &[Rtr], Rts, RETRY),
    takes(ALL, &[Rtr, Rts, Sqd], Rts, A::CUR_STATE),
    takes(DATAGRAM, &[Rtr, Rts, Sqd], Rts, A::QKEY),
    takes(CONNECTED, &[Rtr, Rts, Sqd], Rts, RUNNING),
    takes(RESPONDERS, &[Rtr, Rts, Sqd], Rts, A::MIN_RNR_TIMER),
    // Not in the specification; Linux has it for raw packet QPs, urxe for those it paces.
    takes(&[Rc, Uc, XrcInit], &[Rtr, Rts], Rts, A::RATE_LIMIT),
    // SQD: drain, then change what a send in flight must not see change.
    takes(ALL, &[Rts], Sqd, A::EN_SQD_ASYNC_NOTIFY),
    takes(ALL, &[Sqd], Sqd, A::PKEY_INDEX),
    takes(DATAGRAM, &[Sqd], Sqd, A::QKEY),
    takes(CONNECTED, &[Sqd], Sqd, A::AV.union(RUNNING)),
    takes(RELIABLE, &[Sqd], Sqd, A::PORT.union(A::TIMEOUT)),
    takes(REQUESTERS, &[Sqd], Sqd, RETRY),
    takes(RESPONDERS, &[Sqd], Sqd, RESOURCES),
    // SQE: only unreliable sends fail without the QP; a reliable QP is never there.
    takes(DATAGRAM, &[Sqe], Rts, A::CUR_STATE.union(A::QKEY)),
    takes(&[Uc], &[Sqe], Rts, A::CUR_STATE.union(A::ACCESS_FLAGS)),
];

impl Needs {
    /// What a `kind` QP takes on its way `from` → `to`; `None` if there is no such way.
    #[must_use]
    pub fn of(kind: QpKind, from: QpState, to: QpState) -> Option<Self> {
        let mut found = None;
        for rule in RULES {
            if rule.to == to && rule.from.contains(&from) && rule.kinds.contains(&kind) {
                let needs: &mut Self = found.get_or_insert_default();
                needs.required |= rule.required;
                needs.optional |= rule.optional;
            }
        }
        found
    }
}

/// Checks that a `kind` QP can go `from` → `to` with the attributes in `mask`; `from == to` is
/// an attribute change without a transition where there is a rule for it. [`AttrMask::STATE`]
/// may always be in the mask.
///
/// # Errors
/// [`AttrError::Transition`] if there is no such way, [`AttrError::Mask`] if an attribute is
/// missing or has no place there.
pub fn check(kind: QpKind, from: QpState, to: QpState, mask: AttrMask) -> Result<(), AttrError> {
    let needs = Needs::of(kind, from, to).ok_or(AttrError::Transition { kind, from, to })?;
    let missing = needs.required.difference(mask);
    let forbidden = mask.difference(needs.required | needs.optional | A::STATE);
    if missing.is_empty() && forbidden.is_empty() {
        return Ok(());
    }
    Err(AttrError::Mask { kind, from, to, needs, missing, forbidden })
}
