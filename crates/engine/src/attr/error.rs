//! Why a QP was not modified.

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;

use super::rules::Needs;
use super::{AttrMask, QpKind, QpState};

/// Why a QP was not modified; nothing of it changed. Verbs programs see EINVAL, or EOPNOTSUPP
/// for [`AttrError::PathMigration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AttrError {
    /// No rule leads from one state to the other.
    #[error(
        "{kind} QP: {from} → {to} does not exist; from {from} it can go to {}",
        Ways(*.kind, *.from)
    )]
    Transition {
        /// The QP's kind.
        kind: QpKind,
        /// The state it is in.
        from: QpState,
        /// The state asked for.
        to: QpState,
    },
    /// The transition exists; the mask lacks an attribute it needs or has one it does not take.
    #[error(
        "{kind} QP: {from} → {to} needs {}{}{}",
        .needs.required, Missing(*.missing), Forbidden(*.forbidden, *.needs)
    )]
    Mask {
        /// The QP's kind.
        kind: QpKind,
        /// The state it is in.
        from: QpState,
        /// The state asked for.
        to: QpState,
        /// What the transition takes.
        needs: Needs,
        /// Required and not in the mask: set the field and the bit.
        missing: AttrMask,
        /// In the mask and neither required nor optional: leave it out.
        forbidden: AttrMask,
    },
    /// `cur_qp_state` is not the state the QP is in.
    #[error("CUR_STATE says {got}, the QP is in {actual}; query it, then modify")]
    CurState {
        /// The state the caller took the QP to be in.
        got: QpState,
        /// The state it is in.
        actual: QpState,
    },
    /// A number is out of range.
    #[error("{field} is {got}, wanted {least} to {most}")]
    Range {
        /// The field, as `ibv_qp_attr` names it.
        field: &'static str,
        /// What it was.
        got: u32,
        /// Least good value.
        least: u32,
        /// Greatest good value: of the protocol, the device or the port.
        most: u32,
    },
    /// The address cannot be a destination here.
    #[error("ah_attr.grh.dgid is {got}; {kind} QPs take {}", Destination(*.kind))]
    Destination {
        /// The QP's kind.
        kind: QpKind,
        /// The address.
        got: IpAddr,
    },
    /// A connected QP's peer cannot be the multicast QPN.
    #[error("dest_qp_num is 0xffffff, which is for multicast; {kind} QPs take their peer's")]
    MulticastPeer {
        /// The QP's kind.
        kind: QpKind,
    },
    /// Automatic path migration, which RoCE devices do not have.
    #[error("{0} asks for automatic path migration, which is not supported; leave it out")]
    PathMigration(AttrMask),
}

struct Ways(QpKind, QpState);

impl fmt::Display for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ways = QpState::ALL.into_iter().filter(|&to| Needs::of(self.0, self.1, to).is_some());
        for (i, to) in ways.enumerate() {
            write!(f, "{}{to}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

struct Missing(AttrMask);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "; missing {}", self.0) }
    }
}

struct Forbidden(AttrMask, Needs);

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "; does not take {} (optional: {})", self.0, self.1.optional)
    }
}

struct Destination(QpKind);

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_connected() { "a unicast address" } else { "any but 0" })
    }
}
