//! Doing what a request asks, once it may.

use urxe_memory::{Access, KeyError};
use urxe_wire::{FlushLevel, FlushScope, Operation, Reth};

use super::{Answer, Env, Message, Receives, Refusal, Request, Responder};
use crate::reason::Rule;

impl Responder {
    /// Does it. Only what has been placed whole is answered.
    pub(super) fn execute<R: Receives>(
        &mut self,
        request: &Request<'_>,
        env: &mut Env<'_, R>,
    ) -> Result<Answer, Refusal> {
        match request.info.operation {
            Operation::Send => self.do_send(request, env),
            Operation::Write => self.do_write(request, env),
            Operation::ReadRequest => self.do_read(request, env),
            Operation::CompareSwap | Operation::FetchAdd => self.do_atomic(request, env),
            Operation::AtomicWrite => do_atomic_write(request, env).map(|()| Answer::Empty),
            Operation::Flush => do_flush(request, env).map(|()| Answer::Empty),
            _ => Err(Refusal::Invalid(Rule::NotAllowed(request.info.opcode))),
        }
    }

    fn do_send<R: Receives>(
        &mut self,
        request: &Request<'_>,
        env: &mut Env<'_, R>,
    ) -> Result<Answer, Refusal> {
        if request.starts() {
            self.received = 0;
        }
        let room = self.taken.room();
        let end = u64::from(self.received) + u64::from(request.len());
        let as_u32 = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        if end > room {
            return Err(Refusal::TooLong(Rule::MessageTooLong(as_u32(end), as_u32(room))));
        }
        let (pd, at) = (env.receives.pd(), u64::from(self.received));
        env.memory
            .scatter(pd, self.taken.sges(), at, request.packet.payload)
            .map_err(Refusal::Local)?;
        if let Some(ieth) = request.ext().ieth {
            env.memory
                .invalidate(env.conn.pd, env.conn.qpn.value(), ieth.rkey, true)
                .map_err(Refusal::Invalidate)?;
        }
        self.received = as_u32(end);
        self.message = Message::Send;
        Ok(Answer::Ack)
    }

    fn do_write<R: Receives>(
        &mut self,
        request: &Request<'_>,
        env: &mut Env<'_, R>,
    ) -> Result<Answer, Refusal> {
        let (va, rkey, left, total) = match (self.message, request.ext().reth) {
            (Message::Write { va, rkey, left, total }, None) => (va, rkey, left, total),
            (_, Some(reth)) => {
                // IBA C9-92: the whole range is checked before any of it is written.
                remote(env, &reth, Access::REMOTE_WRITE)?;
                (reth.va, reth.rkey, reth.dma_len, reth.dma_len)
            }
            _ => return Err(Refusal::Invalid(Rule::OpcodeSequence(request.info.opcode))),
        };
        let len = request.len();
        let part = Reth { va, rkey, dma_len: len };
        if let Some(target) = remote(env, &part, Access::REMOTE_WRITE)? {
            target.write(0, request.packet.payload).map_err(Refusal::Access)?;
        }
        let (va, left) = (va.wrapping_add(len.into()), left - len);
        self.message = Message::Write { va, rkey, left, total };
        Ok(Answer::Ack)
    }

    fn do_read<R: Receives>(
        &self,
        request: &Request<'_>,
        env: &Env<'_, R>,
    ) -> Result<Answer, Refusal> {
        let reth = request.ext().reth.unwrap_or_default();
        self.room_for_answer(env)?;
        remote(env, &reth, Access::REMOTE_READ)?;
        let packets = env.conn.packets(reth.dma_len);
        Ok(Answer::Read { va: reth.va, rkey: reth.rkey, length: reth.dma_len, packets })
    }

    fn do_atomic<R: Receives>(
        &self,
        request: &Request<'_>,
        env: &Env<'_, R>,
    ) -> Result<Answer, Refusal> {
        let atomic = request.ext().atomic.unwrap_or_default();
        self.room_for_answer(env)?;
        if !atomic.va.is_multiple_of(8) {
            // IBA C9-92 asks for a remote access NAK; rxe answers so too.
            let error = KeyError::Misaligned { key: atomic.rkey, addr: atomic.va };
            return Err(Refusal::Access(error));
        }
        let reth = Reth { va: atomic.va, rkey: atomic.rkey, dma_len: 8 };
        let Some(target) = remote(env, &reth, Access::REMOTE_ATOMIC)? else {
            return Err(Refusal::Invalid(Rule::RequestLength(0, 8)));
        };
        let original = if request.info.operation == Operation::CompareSwap {
            target.cmp_swap(0, atomic.compare, atomic.swap_add)
        } else {
            target.fetch_add(0, atomic.swap_add)
        };
        original.map(|original| Answer::Atomic { original }).map_err(Refusal::Access)
    }

    /// IBA C9-91: no more answers are owed at a time than were agreed.
    fn room_for_answer<R: Receives>(&self, env: &Env<'_, R>) -> Result<(), Refusal> {
        let owed = self.owed();
        if owed >= env.conn.max_dest_rd_atomic {
            return Err(Refusal::Invalid(Rule::TooManyReads));
        }
        Ok(())
    }
}

/// The remote range of a request, if it has any length: a zero-length READ or WRITE checks neither
/// address nor key (IBA C9-88).
fn remote<R: Receives>(
    env: &Env<'_, R>,
    reth: &Reth,
    need: Access,
) -> Result<Option<urxe_memory::Pinned>, Refusal> {
    if reth.dma_len == 0 {
        return Ok(None);
    }
    env.memory
        .remote(env.conn.pd, env.conn.qpn.value(), reth.rkey, reth.va, reth.dma_len.into(), need)
        .map(Some)
        .map_err(Refusal::Access)
}

fn do_atomic_write<R: Receives>(request: &Request<'_>, env: &Env<'_, R>) -> Result<(), Refusal> {
    let reth = request.ext().reth.unwrap_or_default();
    if !reth.va.is_multiple_of(8) {
        let error = KeyError::Misaligned { key: reth.rkey, addr: reth.va };
        return Err(Refusal::Access(error));
    }
    let target = remote(env, &reth, Access::REMOTE_WRITE)?;
    let Ok(bytes) = <[u8; 8]>::try_from(request.packet.payload) else {
        return Err(Refusal::Invalid(Rule::RequestLength(request.len(), 8)));
    };
    match target {
        Some(target) => target.write_u64(0, u64::from_ne_bytes(bytes)).map_err(Refusal::Access),
        None => Err(Refusal::Invalid(Rule::RequestLength(0, 8))),
    }
}

fn do_flush<R: Receives>(request: &Request<'_>, env: &Env<'_, R>) -> Result<(), Refusal> {
    let reth = request.ext().reth.unwrap_or_default();
    let Some(feth) = request.ext().feth else {
        return Err(Refusal::Invalid(Rule::Malformed));
    };
    let mut need = Access::empty();
    if feth.level.contains(FlushLevel::GLOBAL) {
        need |= Access::FLUSH_GLOBAL;
    }
    if feth.level.contains(FlushLevel::PERSISTENT) {
        need |= Access::FLUSH_PERSISTENT;
    }
    if need.is_empty() {
        return Err(Refusal::Invalid(Rule::NotAllowed(request.info.opcode)));
    }
    // What is placed is in the host's memory already, visible to all; it needs no more. A region
    // of persistent memory is the program's own to sync.
    match feth.scope {
        FlushScope::Range => remote(env, &reth, need).map(|_| ()),
        FlushScope::MemoryRegion => env
            .memory
            .remote_all(env.conn.pd, env.conn.qpn.value(), reth.rkey, need)
            .map(|_| ())
            .map_err(Refusal::Access),
    }
}
