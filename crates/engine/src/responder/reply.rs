//! Sending the answers, in order.

use urxe_memory::{Access, Pinned};
use urxe_wire::{AtomicAckEth, Bth, Ext, NakCode, Position, Psn, Syndrome};

use super::{Blame, Env, Receives, Reply, Responder, aeth, credit_of};
use crate::conn::Conn;
use crate::reason::{Cause, Drop, Rule};
use crate::segment::{Response, response_opcode};

/// A response packet, its payload pinned.
pub(crate) struct ReplyPacket {
    pub(crate) bth: Bth,
    pub(crate) ext: Ext,
    pub(crate) payload: Option<Pinned>,
}

/// What the answers bring about.
pub(crate) enum Outgoing {
    /// This packet.
    Packet(ReplyPacket),
    /// The memory of a READ is gone: a NAK is queued, the QP is to go to error.
    Lost { blame: Blame, cause: Cause },
    /// Nothing: the memory of a READ that came again is gone.
    Dropped(Drop),
}

impl Responder {
    /// READs, atomics and the like that wait to be answered: those that are duplicates, or the
    /// others.
    pub(super) fn owed(&self, duplicates: bool) -> usize {
        let owed = |r: &&Reply| match r {
            Reply::Read { again, .. }
            | Reply::Atomic { again, .. }
            | Reply::Empty { again, .. } => *again == duplicates,
            Reply::Ack { .. } | Reply::Nak { .. } => false,
        };
        self.replies.iter().filter(owed).count()
    }

    /// The next response packet, if any waits.
    pub(crate) fn next_reply<R: Receives>(&mut self, env: &Env<'_, R>) -> Option<Outgoing> {
        let conn = env.conn;
        let credit = if conn.profile.credits { env.receives.credits() } else { None };
        let ack = Syndrome::Ack(credit_of(credit));
        let reply = self.replies.pop_front()?;
        let packet = match reply {
            Reply::Read { .. } => return Some(self.next_of_read(reply, ack, env)),
            Reply::Atomic { psn, original, msn, .. } => {
                let mut ext = Ext { aeth: Some(aeth(ack, msn)), ..Ext::NONE };
                ext.atomic_ack = Some(AtomicAckEth { original });
                response(conn, Response::Atomic, psn, ext)
            }
            Reply::Empty { psn, msn, .. } => {
                let ext = Ext { aeth: Some(aeth(ack, msn)), ..Ext::NONE };
                response(conn, Response::Read(Position::Only), psn, ext)
            }
            Reply::Ack { psn, msn } => {
                let ext = Ext { aeth: Some(aeth(ack, msn)), ..Ext::NONE };
                response(conn, Response::Acknowledge, psn, ext)
            }
            Reply::Nak { psn, msn, syndrome } => {
                let ext = Ext { aeth: Some(aeth(syndrome, msn)), ..Ext::NONE };
                response(conn, Response::Acknowledge, psn, ext)
            }
        };
        Some(Outgoing::Packet(packet))
    }

    fn next_of_read<R: Receives>(
        &mut self,
        reply: Reply,
        ack: Syndrome,
        env: &Env<'_, R>,
    ) -> Outgoing {
        let Reply::Read { psn, pd, va, rkey, left, started, msn, again } = reply else {
            unreachable!("called for READs only");
        };
        let conn = env.conn;
        let len = left.min(conn.mtu);
        let ends = left <= conn.mtu;
        let mut payload = None;
        if len != 0 {
            let (qpn, need) = (conn.qpn.value(), Access::REMOTE_READ);
            match env.memory.remote(pd, qpn, rkey, va, len.into(), need) {
                Ok(pinned) => payload = Some(pinned),
                // IBA 9.7.5.1.2: the peer may have had the first answer, and given the key up.
                Err(_) if again => return Outgoing::Dropped(Drop::BadDuplicate),
                Err(e) => {
                    // Deregistered since it was accepted: nothing behind it is answered either.
                    self.replies.clear();
                    self.last_nak(psn, NakCode::RemoteAccess);
                    let cause = Cause::at(Rule::RemoteKey(e), psn);
                    return Outgoing::Lost { blame: Blame::Access, cause };
                }
            }
        }
        if !ends {
            self.replies.push_front(Reply::Read {
                psn: psn.next(),
                pd,
                va: va.wrapping_add(len.into()),
                rkey,
                left: left - len,
                started: true,
                msn,
                again,
            });
        }
        let position = match (started, ends) {
            (false, true) => Position::Only,
            (false, false) => Position::First,
            (true, false) => Position::Middle,
            (true, true) => Position::Last,
        };
        let mut ext = Ext::NONE;
        if position != Position::Middle {
            ext.aeth = Some(aeth(ack, msn));
        }
        let mut packet = response(conn, Response::Read(position), psn, ext);
        packet.bth.pad = urxe_wire::pad_for(len as usize);
        packet.payload = payload;
        Outgoing::Packet(packet)
    }
}

fn response(conn: &Conn, response: Response, psn: Psn, ext: Ext) -> ReplyPacket {
    let mut bth = Bth::new(response_opcode(conn.transport(), response), conn.dest_qp, psn);
    bth.pkey = conn.pkey;
    bth.mig_req = conn.profile.mig_req;
    ReplyPacket { bth, ext, payload: None }
}
