//! Unreliable messages: what arrives was sent, whole; not more often than the network says, and in
//! order unless the network changes it.

use urxe_engine::{Completion, QpKind, WcFlags, WcOpcode};

use super::{Invariant, Oracle, Verdict};
use crate::plan::What;

/// Bytes of the GRH.
const GRH: usize = 40;

impl Oracle {
    pub(super) fn received_unreliable(
        &mut self,
        conn: usize,
        side: usize,
        recv: usize,
        c: &Completion,
    ) -> Verdict {
        let is_ud = self.plan.conns[conn].kind == QpKind::Ud;
        let skip = if is_ud { GRH } else { 0 };
        let local = self.plan.recvs[recv].local.clone();
        let at = format!("pair {conn} side {side} receive {recv}");
        let len = c.byte_len as usize;
        if len < skip || len > local.iter().map(|s| s.len as usize).sum() {
            let what = format!("{at}: byte_len is {len}");
            return self.fail(Invariant::Received, what);
        }
        let actual = self.actual(&local);
        let is_write = c.opcode == WcOpcode::RecvRdmaWithImm;
        let got = if is_write { &[] } else { &actual[skip..len] };
        let messages = &self.sides[conn][1 - side].messages;
        let fits: Vec<usize> =
            messages.iter().copied().filter(|&m| self.could_be(m, got, c, skip)).collect();
        // Of messages that look the same, it is the one that has come the least.
        let count = |m: &usize| self.deliveries.get(m).copied().unwrap_or(0);
        let Some(&message) = fits.iter().min_by_key(|m| (count(m), **m)) else {
            let what =
                format!("{at} holds {} bytes that no message had ({:?})", len - skip, c.flags);
            return self.fail(Invariant::Received, what);
        };
        let who = self.plan.describe(message);
        let times = self.deliveries.entry(message).or_default();
        *times += 1;
        let most = if self.doubles { 2 } else { 1 };
        if *times > most {
            let what = format!("{who} was received {times} times");
            return self.fail(Invariant::Received, what);
        }
        if !self.doubles {
            self.check_order(conn, side, message, &who)?;
        }
        if is_ud {
            self.check_grh(conn, side, &actual, c, &who)?;
            let end = if is_write { 0 } else { len };
            self.scatter(&local, 0, &actual[..end]);
        } else {
            self.adopt(&local);
        }
        if let What::Write { remote, .. } = self.op(message).what {
            let data = self.data(message);
            self.must_hold(Invariant::Placed, &who, &[remote.span], 0, &data)?;
        }
        Ok(())
    }

    fn could_be(&self, message: usize, got: &[u8], c: &Completion, skip: usize) -> bool {
        let op = self.op(message);
        let (is_write, imm) = match op.what {
            What::Write { imm, .. } => (true, imm),
            What::Send { imm, .. } => (false, imm),
            _ => return false,
        };
        let number = u32::try_from(message).unwrap_or(u32::MAX).to_be_bytes();
        is_write == (c.opcode == WcOpcode::RecvRdmaWithImm)
            && imm == c.flags.contains(WcFlags::WITH_IMM)
            && (!imm || c.imm == number)
            && op.len() as usize + skip == c.byte_len as usize
            && (is_write || self.data(message) == got)
    }

    /// Without doubles and reordering, later messages come later.
    fn check_order(&mut self, conn: usize, side: usize, message: usize, who: &str) -> Verdict {
        let messages = &self.sides[conn][1 - side].messages;
        let place = messages.iter().position(|&m| m == message).unwrap_or(0);
        let before = self.sides[conn][side].arrived;
        let looks_alike = self.op(message).is_empty();
        if place < before && !looks_alike {
            let what = format!("{who} was received after a message that was sent later");
            return self.fail(Invariant::Received, what);
        }
        self.sides[conn][side].arrived = before.max(place + 1);
        Ok(())
    }

    /// IBA 11.4.2.1: who sent it, in the completion and in the header before the data.
    fn check_grh(
        &self,
        conn: usize,
        side: usize,
        actual: &[u8],
        c: &Completion,
        who: &str,
    ) -> Verdict {
        let peer = self.plan.nodes[self.plan.conns[conn].nodes[1 - side]].address;
        let own = self.plan.nodes[self.plan.conns[conn].nodes[side]].address;
        let octets = |a: std::net::IpAddr| match a {
            std::net::IpAddr::V4(a) => a.octets().to_vec(),
            std::net::IpAddr::V6(a) => a.octets().to_vec(),
        };
        let wanted = [octets(peer), octets(own)].concat();
        let got = actual.get(GRH - wanted.len()..GRH).unwrap_or_default();
        if got != wanted {
            let what = format!("{who}: addresses in the GRH are {got:x?}, wanted {wanted:x?}");
            return self.fail(Invariant::Received, what);
        }
        let qpn = self.qpns[conn][1 - side];
        if c.src_qp.value() != qpn || !c.flags.contains(WcFlags::GRH) {
            let got = c.src_qp.value();
            let what = format!("{who}: came from QP {got:#x} ({:?}), wanted {qpn:#x}", c.flags);
            return self.fail(Invariant::Received, what);
        }
        Ok(())
    }
}
