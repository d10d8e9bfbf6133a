//! Doing what a request asks, once it may.

use urxe_memory::{Access, KeyError};
use urxe_wire::{Feth, FlushLevel, FlushScope, MAX_MESSAGE, Operation, Reth};

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
        if end > u64::from(MAX_MESSAGE) {
            // IBA C9-94
            return Err(Refusal::Invalid(Rule::RequestLength(as_u32(end), MAX_MESSAGE)));
        }
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
        remote(env, &reth, Access::REMOTE_READ)?;
        let packets = env.conn.packets(reth.dma_len);
        let (pd, length) = (env.conn.pd, reth.dma_len);
        Ok(Answer::Read { pd, va: reth.va, rkey: reth.rkey, length, packets })
    }

    fn do_atomic<R: Receives>(
        &self,
        request: &Request<'_>,
        env: &Env<'_, R>,
    ) -> Result<Answer, Refusal> {
        let atomic = request.ext().atomic.unwrap_or_default();
        let reth = Reth { va: atomic.va, rkey: atomic.rkey, dma_len: 8 };
        let Some(target) = remote(env, &reth, Access::REMOTE_ATOMIC)? else {
            return Err(Refusal::Invalid(Rule::RequestLength(0, 8)));
        };
        aligned(atomic.rkey, atomic.va)?;
        let original = if request.info.operation == Operation::CompareSwap {
            target.cmp_swap(0, atomic.compare, atomic.swap_add)
        } else {
            target.fetch_add(0, atomic.swap_add)
        };
        original.map(|original| Answer::Atomic { original }).map_err(misplaced)
    }
}

/// An atomic's address is a multiple of 8; if not, the request is invalid (Linux
/// sw/rxe/rxe_resp.c: class C, NAK invalid request).
fn aligned(key: u32, addr: u64) -> Result<(), Refusal> {
    if addr.is_multiple_of(8) {
        return Ok(());
    }
    Err(Refusal::Invalid(Rule::Misaligned(KeyError::Misaligned { key, addr })))
}

/// The same where a region begins at an odd place of the program's memory.
fn misplaced(error: KeyError) -> Refusal {
    match error {
        KeyError::Misaligned { .. } => Refusal::Invalid(Rule::Misaligned(error)),
        other => Refusal::Access(other),
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
    let target = remote(env, &reth, Access::REMOTE_WRITE)?;
    aligned(reth.rkey, reth.va)?;
    let Ok(bytes) = <[u8; 8]>::try_from(request.packet.payload) else {
        return Err(Refusal::Invalid(Rule::RequestLength(request.len(), 8)));
    };
    match target {
        Some(target) => target.write_u64(0, u64::from_ne_bytes(bytes)).map_err(misplaced),
        None => Err(Refusal::Invalid(Rule::RequestLength(0, 8))),
    }
}

/// The rights that a FLUSH needs, of the QP and of the region.
pub(super) fn flush_rights(feth: &Feth) -> Access {
    let mut need = Access::empty();
    need.set(Access::FLUSH_GLOBAL, feth.level.contains(FlushLevel::GLOBAL));
    need.set(Access::FLUSH_PERSISTENT, feth.level.contains(FlushLevel::PERSISTENT));
    need
}

fn do_flush<R: Receives>(request: &Request<'_>, env: &Env<'_, R>) -> Result<(), Refusal> {
    let reth = request.ext().reth.unwrap_or_default();
    let Some(feth) = request.ext().feth else {
        return Err(Refusal::Invalid(Rule::NotAllowed(request.info.opcode)));
    };
    let need = flush_rights(&feth);
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
