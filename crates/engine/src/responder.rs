//! The responder: what a request asks, whether it may, and what is answered.

use std::collections::VecDeque;

use urxe_memory::{KeyError, Memory, PdId};
use urxe_wire::{Aeth, Credit, Ext, NakCode, OpcodeInfo, Operation, Position, Psn, Roce, Syndrome};

use crate::conn::Conn;
use crate::reason::{Cause, Drop, Rule};
use crate::rq::Taken;
use crate::types::{WcOpcode, WcStatus};

mod check;
mod duplicate;
mod execute;
mod refuse;
mod reply;

pub(crate) use reply::{Outgoing, ReplyPacket};

/// The half of a QP that serves requests.
#[derive(Debug)]
pub(crate) struct Responder {
    /// The PSN that the next request must have.
    epsn: Psn,
    /// How many requests are completed, 24 bits.
    msn: Psn,
    message: Message,
    /// Why requests ahead of `epsn` are met with silence.
    silent: Option<Silence>,
    /// The receive WQE of the message in progress.
    taken: Taken,
    has_taken: bool,
    /// Bytes of a SEND placed so far.
    received: u32,
    /// READs, atomics and the like that the peer may have outstanding: so many answers are kept
    /// for duplicates, and so many wait to be sent at most.
    depth: usize,
    /// Answers kept for duplicates, oldest first.
    saved: VecDeque<Saved>,
    /// Answers to be sent, in order.
    replies: VecDeque<Reply>,
    /// The shared receive WQE of an unreliable message that was broken off, to be told of.
    broken_off: Option<Arrived>,
}

/// The message that the last packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    None,
    Send,
    Write {
        va: u64,
        rkey: u32,
        left: u32,
        total: u32,
    },
    /// Unreliable: its rest is dropped.
    Broken,
}

/// What a NAK has been sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    Gap,
    Rnr,
}

/// An answer kept for duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saved {
    Read {
        first: Psn,
        psns: u32,
        va: u64,
        rkey: u32,
        length: u32,
    },
    Atomic {
        psn: Psn,
        original: u64,
    },
    /// FLUSH or ATOMIC WRITE.
    Empty {
        psn: Psn,
    },
}

/// An answer to be sent. `again`: it is one to a duplicate, and the peer may have the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// The rest of a READ's response.
    Read {
        psn: Psn,
        /// Where the key is looked up: it may be another for the next request (XRC).
        pd: PdId,
        va: u64,
        rkey: u32,
        left: u32,
        started: bool,
        msn: Psn,
        again: bool,
    },
    Atomic {
        psn: Psn,
        original: u64,
        msn: Psn,
        again: bool,
    },
    Empty {
        psn: Psn,
        msn: Psn,
        again: bool,
    },
    Ack {
        psn: Psn,
        msn: Psn,
    },
    Nak {
        psn: Psn,
        msn: Psn,
        syndrome: Syndrome,
    },
}

/// How a request that was done is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// By an ACK, if one is asked for.
    Ack,
    /// By data.
    Read { pd: PdId, va: u64, rkey: u32, length: u32, packets: u32 },
    /// By what stood there.
    Atomic { original: u64 },
    /// By a READ response without data.
    Empty,
}

/// A message that has come in whole, or failed, and its receive WQE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) wr_id: u64,
    pub(crate) status: WcStatus,
    pub(crate) opcode: WcOpcode,
    pub(crate) byte_len: u32,
    pub(crate) imm: Option<[u8; 4]>,
    pub(crate) invalidated: Option<u32>,
    pub(crate) solicited: bool,
    pub(crate) cause: Option<Cause>,
}

/// Which event tells of a request that broke the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The request was invalid.
    Request,
    /// It broke memory protection.
    Access,
    /// Our own memory was at fault; the completion tells.
    Local,
}

/// What the QP shall do. Answers are queued already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing.
    Drop(Drop),
    /// A gap was found and NAKed just now.
    Gap,
    /// A duplicate was answered.
    Duplicate,
    /// The request, or a part of it, was done.
    Done(Option<Arrived>),
    /// There is no receive WQE; an RNR NAK goes out.
    NotReady,
    /// The QP is to go to error.
    Fail { blame: Blame, arrived: Option<Arrived>, cause: Cause, naked: bool },
}

/// Where receive WQEs come from.
pub(crate) trait Receives {
    /// Moves the oldest WQE into `taken`; says whether there was one.
    fn take(&mut self, taken: &mut Taken) -> bool;
    /// How many more messages may be promised to the peer; `None` is no limit.
    fn credits(&self) -> Option<u32>;
    /// The PD that the WQEs' SGEs belong to.
    fn pd(&self) -> PdId;
    /// Whether others take from here too.
    fn shared(&self) -> bool;
}

/// What the responder works with.
pub(crate) struct Env<'a, R> {
    pub(crate) conn: &'a Conn,
    pub(crate) memory: &'a Memory,
    pub(crate) receives: &'a mut R,
    /// XRC: the request names an SRQ that is not there, or is of another domain.
    pub(crate) no_srq: bool,
}

/// A request under check.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) info: &'static OpcodeInfo,
    pub(crate) packet: &'a Roce<'a>,
}

impl Request<'_> {
    const fn psn(&self) -> Psn {
        self.packet.bth.psn
    }

    const fn ext(&self) -> &Ext {
        &self.packet.ext
    }

    pub(crate) const fn starts(&self) -> bool {
        matches!(self.info.position, Position::First | Position::Only)
    }

    const fn ends(&self) -> bool {
        matches!(self.info.position, Position::Last | Position::Only)
    }

    fn len(&self) -> u32 {
        u32::try_from(self.packet.payload.len()).unwrap_or(u32::MAX)
    }
}

/// How a request is refused, before the transport has been looked at.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    /// No receive WQE.
    NotReady,
    /// Broken or not allowed.
    Invalid(Rule),
    /// Key, range or rights of remote memory.
    Access(KeyError),
    /// The message is longer than its receive WQE.
    TooLong(Rule),
    /// Our own receive WQE is at fault.
    Local(KeyError),
    /// A remote invalidate failed: the QP goes to error, without a NAK.
    Invalidate(KeyError),
}

/// Answers that there is room for at first: one each to an ACK, a READ and a NAK, and one more.
const FIRST_REPLIES: usize = 4;

impl Responder {
    pub(crate) fn new(epsn: Psn, max_dest_rd_atomic: usize, max_sge: usize) -> Self {
        Self {
            epsn,
            msn: Psn::ZERO,
            message: Message::None,
            silent: None,
            taken: Taken::new(max_sge),
            has_taken: false,
            received: 0,
            depth: max_dest_rd_atomic,
            // Both grow to what the peer makes of its depth, and stay so.
            saved: VecDeque::new(),
            replies: VecDeque::with_capacity(FIRST_REPLIES),
            broken_off: None,
        }
    }

    /// An answer each, another to a duplicate of each, an ACK before and behind each, some NAKs.
    const fn most_replies(depth: usize) -> usize {
        4 * depth + 4
    }

    /// Changes how many READs, atomics and the like the peer may have outstanding.
    pub(crate) fn set_depth(&mut self, depth: usize) {
        self.depth = depth;
        let surplus = self.saved.len().saturating_sub(depth);
        self.saved.drain(..surplus);
    }

    /// The PSN that the next request must have.
    pub(crate) const fn epsn(&self) -> Psn {
        self.epsn
    }

    /// How many requests are completed.
    pub(crate) const fn msn(&self) -> Psn {
        self.msn
    }

    /// Whether the last packet served was not the end of its message.
    pub(crate) fn is_mid_message(&self) -> bool {
        self.message != Message::None
    }

    /// Whether answers wait to be sent.
    pub(crate) fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Whether the next answer carries data of a READ.
    pub(crate) fn sends_data(&self) -> bool {
        matches!(self.replies.front(), Some(Reply::Read { .. }))
    }

    /// The receive WQE of an unfinished message, to be flushed.
    pub(crate) fn abandon(&mut self) -> Option<u64> {
        self.message = Message::None;
        core::mem::take(&mut self.has_taken).then_some(self.taken.wr_id)
    }

    /// Refuses a request whose opcode no table has.
    pub(crate) fn refuse_unknown(&mut self, psn: Psn) -> Blame {
        self.last_nak(psn, NakCode::InvalidRequest);
        Blame::Request
    }

    /// Sees that a receive WQE is at hand for a datagram.
    pub(crate) fn take_for_datagram<R: Receives>(&mut self, receives: &mut R) -> bool {
        if !self.has_taken {
            self.has_taken = receives.take(&mut self.taken);
        }
        self.has_taken
    }

    /// The receive WQE at hand, and its number.
    pub(crate) const fn taken(&self) -> (&Taken, u64) {
        (&self.taken, self.taken.wr_id)
    }

    /// The receive WQE at hand is used up.
    pub(crate) const fn release_taken(&mut self) {
        self.has_taken = false;
    }

    /// Forgets all answers that wait.
    pub(crate) fn silence(&mut self) {
        self.replies.clear();
    }

    /// Serves one request of a connected QP.
    pub(crate) fn on_request<R: Receives>(
        &mut self,
        request: &Request<'_>,
        env: &mut Env<'_, R>,
    ) -> Action {
        let reliable = env.conn.reliable();
        if let Some(action) = self.check_psn(request, env) {
            return action;
        }
        if env.no_srq {
            return Action::Drop(Drop::NoSuchSrq);
        }
        // IBA 9.7.4.1: PSN, opcode sequence, operation, resources, length, key; then it is done.
        let done = check::sequence(self.message, request)
            .and_then(|()| check::allowed(request, env.conn))
            .and_then(|()| self.room_for_answer(request, env))
            .and_then(|()| self.take_receive(request, env))
            .and_then(|()| check::length(self.message, request, env.conn))
            .and_then(|()| self.execute(request, env));
        match done {
            Ok(answer) => Action::Done(self.complete(request, answer, reliable)),
            Err(refusal) if reliable => self.refuse(refusal, request, env),
            Err(refusal) => self.give_up(refusal, request, env.receives.shared()),
        }
    }

    /// Sorts out gaps and duplicates. `None`: the request is the expected one.
    fn check_psn<R: Receives>(
        &mut self,
        request: &Request<'_>,
        env: &mut Env<'_, R>,
    ) -> Option<Action> {
        let ahead = request.psn().distance(self.epsn);
        if !env.conn.reliable() {
            return self.check_unreliable_psn(request, ahead, env.receives.shared());
        }
        if ahead < 0 {
            return Some(self.on_duplicate(request, env));
        }
        if ahead == 0 {
            self.silent = None;
            return None;
        }
        match self.silent {
            // IBA 9.7.5.1: one NAK a gap, then silence until the expected PSN comes.
            Some(Silence::Gap) => return Some(Action::Drop(Drop::Gap)),
            Some(Silence::Rnr) if !env.conn.profile.nak_behind_rnr => {
                return Some(Action::Drop(Drop::BehindRnr));
            }
            _ => {}
        }
        // A NAK that finds no room is made up for by the next packet behind the gap.
        self.silent = Some(Silence::Gap);
        if !self.nak(self.epsn, Syndrome::Nak(NakCode::PsnSequence)) {
            self.silent = None;
        }
        Some(Action::Gap)
    }

    /// IBA 9.8.2.2.1: an unreliable QP takes up again at the next message.
    fn check_unreliable_psn(
        &mut self,
        request: &Request<'_>,
        ahead: i32,
        shared: bool,
    ) -> Option<Action> {
        if shared && self.message != Message::None && (request.starts() || ahead != 0) {
            let cause = Cause::at(Rule::OpcodeSequence(request.info.opcode), request.psn());
            self.break_off(request, WcStatus::RemInvReqErr, cause);
        }
        if request.starts() {
            // A receive WQE of a message that was broken off serves this one.
            self.message = Message::None;
            self.epsn = request.psn();
            return None;
        }
        if ahead != 0 {
            self.message = Message::Broken;
        }
        (self.message == Message::Broken).then_some(Action::Drop(Drop::BrokenMessage))
    }

    /// No more answers are owed at a time than were agreed (IBA 9.7.4.1; Linux
    /// sw/rxe/rxe_resp.c, check_resource).
    fn room_for_answer<R: Receives>(
        &self,
        request: &Request<'_>,
        env: &Env<'_, R>,
    ) -> Result<(), Refusal> {
        let is_owed = !matches!(request.info.operation, Operation::Send | Operation::Write);
        if is_owed && self.owed(false) >= env.conn.max_dest_rd_atomic {
            return Err(Refusal::Invalid(Rule::TooManyReads));
        }
        Ok(())
    }

    fn take_receive<R: Receives>(
        &mut self,
        request: &Request<'_>,
        env: &mut Env<'_, R>,
    ) -> Result<(), Refusal> {
        if !request.info.takes_recv_wqe {
            return Ok(());
        }
        if !self.has_taken {
            self.has_taken = env.receives.take(&mut self.taken);
        }
        if self.has_taken { Ok(()) } else { Err(Refusal::NotReady) }
    }

    /// Counts the request and queues its acknowledgement.
    fn complete(
        &mut self,
        request: &Request<'_>,
        answer: Answer,
        reliable: bool,
    ) -> Option<Arrived> {
        let psn = request.psn();
        let mut psns = 1;
        if request.ends() {
            // IBA C9-148: MSN rises with each request that is done, a READ's when it is accepted.
            self.msn = self.msn.next();
        }
        match answer {
            Answer::Ack if reliable && request.packet.bth.ack_req => self.acknowledge(psn),
            Answer::Ack => {}
            Answer::Read { pd, va, rkey, length, packets } => {
                psns = packets;
                let first = psn;
                self.save(Saved::Read { first, psns, va, rkey, length });
                let msn = self.msn;
                let (started, again) = (false, false);
                let left = length;
                self.queue(Reply::Read { psn, pd, va, rkey, left, started, msn, again });
            }
            Answer::Atomic { original } => {
                self.save(Saved::Atomic { psn, original });
                self.queue(Reply::Atomic { psn, original, msn: self.msn, again: false });
            }
            Answer::Empty => {
                self.save(Saved::Empty { psn });
                self.queue(Reply::Empty { psn, msn: self.msn, again: false });
            }
        }
        self.epsn = psn.add(psns);
        self.arrived(request)
    }

    /// Keeps an answer for duplicates, in the place of the oldest.
    fn save(&mut self, saved: Saved) {
        if self.saved.len() >= self.depth {
            self.saved.pop_front();
        }
        self.saved.push_back(saved);
    }

    fn arrived(&mut self, request: &Request<'_>) -> Option<Arrived> {
        if !request.ends() {
            return None;
        }
        let (opcode, byte_len) = match self.message {
            Message::Send => (WcOpcode::Recv, self.received),
            Message::Write { total, .. } => (WcOpcode::RecvRdmaWithImm, total),
            _ => return None,
        };
        self.message = Message::None;
        let takes = opcode == WcOpcode::Recv || request.ext().imm.is_some();
        if !takes {
            return None;
        }
        self.has_taken = false;
        Some(Arrived {
            wr_id: self.taken.wr_id,
            status: WcStatus::Success,
            opcode,
            byte_len,
            imm: request.ext().imm.map(|i| i.data),
            invalidated: request.ext().ieth.map(|i| i.rkey),
            solicited: request.packet.bth.solicited,
            cause: None,
        })
    }

    /// Queues an ACK of all up to `psn`; one behind another stands for both.
    fn acknowledge(&mut self, psn: Psn) {
        let msn = self.msn;
        if let Some(Reply::Ack { .. }) = self.replies.back() {
            self.replies.pop_back();
        }
        self.queue(Reply::Ack { psn, msn });
    }

    fn nak(&mut self, psn: Psn, syndrome: Syndrome) -> bool {
        let msn = self.msn;
        self.queue(Reply::Nak { psn, msn, syndrome })
    }

    /// The NAK that ends the connection, in the place of the latest answer if there is no other.
    fn last_nak(&mut self, psn: Psn, code: NakCode) {
        let syndrome = Syndrome::Nak(code);
        if !self.nak(psn, syndrome) {
            self.replies.pop_back();
            self.nak(psn, syndrome);
        }
    }

    /// The queue never grows: a peer that asks more than it may gets no answer.
    fn queue(&mut self, reply: Reply) -> bool {
        let fits = self.replies.len() < Self::most_replies(self.depth);
        if fits {
            self.replies.push_back(reply);
        }
        fits
    }
}

/// The AETH of an answer.
const fn aeth(syndrome: Syndrome, msn: Psn) -> Aeth {
    Aeth::new(syndrome, msn)
}

/// The credits to grant: as many messages as receive WQEs wait.
fn credit_of(credits: Option<u32>) -> Credit {
    credits.map_or(Credit::UNLIMITED, Credit::for_messages)
}

#[cfg(test)]
mod tests;
