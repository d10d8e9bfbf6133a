//! Posting work.

use std::sync::Arc;

use urxe_memory::Sge;
use urxe_wire::{MAX_MESSAGE, QKey, Qpn};

use super::{Cx, FLUSHED, Inner};
use crate::ah::Ah;
use crate::attr::{QpKind, QpState};
use crate::nic::Nic;
use crate::types::WcStatus;
use crate::wr::{PostError, RecvWr, SendFlags, SendOp, SendWr};

/// Where a datagram goes.
type Destination = (Arc<Ah>, Qpn, QKey);

impl Inner {
    /// Takes a send work request; in ERR and SQE it is flushed at once.
    pub(crate) fn post_send<T>(
        &mut self,
        cx: &mut Cx<'_, T>,
        wr: &SendWr<'_>,
    ) -> Result<(), PostError> {
        let (length, dest) = self.check_send(cx.nic, cx.qp.kind, wr)?;
        self.sq.post(wr, length, dest)?;
        if matches!(self.state(), QpState::Err | QpState::Sqe)
            && let Some(wqe) = self.sq.pop()
        {
            let end = (WcStatus::WrFlushErr, Some(FLUSHED));
            self.complete_send(cx, wqe.wr_id, wqe.wc_opcode(), 0, end);
            self.requester.halt(&self.sq, self.completer.una());
        }
        Ok(())
    }

    /// Checks all of a send work request but whether there is room for it; gives the length of its
    /// message, and where to.
    pub(crate) fn check_send(
        &self,
        nic: &Nic,
        kind: QpKind,
        wr: &SendWr<'_>,
    ) -> Result<(u32, Option<Destination>), PostError> {
        if !self.state().takes_sends() {
            let state = state_name(self.state());
            return Err(PostError::State { state, wanted: "RTS" });
        }
        check_op(kind, wr)?;
        let length = self.message_length(wr)?;
        let dest = match wr.dest {
            // A connected QP knows its peer.
            _ if kind.is_connected() => None,
            None => None,
            Some(dest) => {
                let ah = nic.ahs.get(dest.ah.0 as usize);
                Some((ah.ok_or(PostError::NoSuchAh(dest.ah.0))?, dest.qpn, dest.qkey))
            }
        };
        self.sq.check_data(wr)?;
        Ok((length, dest))
    }

    /// Takes a receive work request; in ERR it is flushed at once.
    pub(crate) fn post_recv<T>(
        &mut self,
        cx: &mut Cx<'_, T>,
        wr: &RecvWr<'_>,
    ) -> Result<(), PostError> {
        if !self.state().takes_receives() {
            let state = state_name(self.state());
            return Err(PostError::State { state, wanted: "INIT or later" });
        }
        let unsupported = PostError::Unsupported { op: "receive", kind: kind_name(cx.qp.kind) };
        self.rq.as_mut().ok_or(unsupported)?.post(wr)?;
        if self.state() == QpState::Err {
            self.flush_receives(cx);
        }
        Ok(())
    }

    /// Bytes of the message.
    fn message_length(&self, wr: &SendWr<'_>) -> Result<u32, PostError> {
        let inline = wr.flags.contains(SendFlags::INLINE);
        let got = if inline { wr.inline.len() as u64 } else { Sge::total(wr.sges) };
        let max = match self.conn.kind {
            QpKind::Ud | QpKind::Gsi => u64::from(self.conn.mtu),
            // IBA C9-94
            _ => u64::from(MAX_MESSAGE),
        };
        match wr.op {
            SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } | SendOp::AtomicWrite { .. }
                if got != 8 =>
            {
                return Err(PostError::AtomicLength(got));
            }
            SendOp::Flush { .. } | SendOp::LocalInvalidate { .. } | SendOp::BindMw { .. } => {
                return Ok(0);
            }
            _ if got > max => return Err(PostError::TooLong { got, max }),
            _ => {}
        }
        u32::try_from(got).map_err(|_| PostError::TooLong { got, max })
    }
}

/// Whether a QP of `kind` has this operation (IBA 10.2.4, tables of 10.8).
fn check_op(kind: QpKind, wr: &SendWr<'_>) -> Result<(), PostError> {
    use QpKind::{Gsi, Rc, Uc, Ud, XrcInit};
    let op = op_name(&wr.op);
    let unsupported = Err(PostError::Unsupported { op, kind: kind_name(kind) });
    let fits = match wr.op {
        SendOp::Send { .. } => matches!(kind, Rc | Uc | Ud | Gsi | XrcInit),
        SendOp::Write { .. } | SendOp::BindMw { .. } | SendOp::LocalInvalidate { .. } => {
            matches!(kind, Rc | Uc | XrcInit)
        }
        SendOp::SendInvalidate { .. }
        | SendOp::Read { .. }
        | SendOp::CompareSwap { .. }
        | SendOp::FetchAdd { .. }
        | SendOp::Flush { .. }
        | SendOp::AtomicWrite { .. } => matches!(kind, Rc | XrcInit),
    };
    if !fits {
        return unsupported;
    }
    let returns_data =
        matches!(wr.op, SendOp::Read { .. } | SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. });
    if returns_data && wr.flags.contains(SendFlags::INLINE) {
        return Err(PostError::Unsupported { op: "inline data", kind: op });
    }
    if matches!(kind, Ud | Gsi) && wr.dest.is_none() {
        return Err(PostError::NoDestination);
    }
    Ok(())
}

const fn op_name(op: &SendOp) -> &'static str {
    match op {
        SendOp::Send { .. } => "SEND",
        SendOp::SendInvalidate { .. } => "SEND with invalidate",
        SendOp::Write { .. } => "RDMA WRITE",
        SendOp::Read { .. } => "RDMA READ",
        SendOp::CompareSwap { .. } => "CMP_SWAP",
        SendOp::FetchAdd { .. } => "FETCH_ADD",
        SendOp::Flush { .. } => "FLUSH",
        SendOp::AtomicWrite { .. } => "ATOMIC WRITE",
        SendOp::LocalInvalidate { .. } => "LOCAL_INV",
        SendOp::BindMw { .. } => "BIND_MW",
    }
}

const fn kind_name(kind: QpKind) -> &'static str {
    match kind {
        QpKind::Rc => "RC",
        QpKind::Uc => "UC",
        QpKind::Ud => "UD",
        QpKind::Gsi => "GSI",
        QpKind::XrcInit => "XRC_SEND",
        QpKind::XrcTarget => "XRC_RECV",
    }
}

const fn state_name(state: QpState) -> &'static str {
    match state {
        QpState::Reset => "RESET",
        QpState::Init => "INIT",
        QpState::Rtr => "RTR",
        QpState::Rts => "RTS",
        QpState::Sqd => "SQD",
        QpState::Sqe => "SQE",
        QpState::Err => "ERR",
    }
}
