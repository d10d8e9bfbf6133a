//! Tests of the rules, one file per matter.

use std::sync::Arc;

use crate::{
    Access, Backing, BindMw, Buffer, Config, Gather, KeyError, MAX_INLINE, MAX_SGE, Memory,
    MemoryError, MrId, MrInfo, MrOptions, MwId, MwType, PdId, Pinned, Rereg, Sge,
};

mod access;
mod data;
mod domains;
mod keys;
mod model;
mod pinned;
mod regions;
mod rereg;
mod threads;
mod windows;

/// A registry with a PD and a region of 64 bytes at 0x1000.
struct Bench {
    memory: Memory,
    pd: PdId,
    buffer: Arc<Buffer>,
    mr: MrInfo,
}

const IOVA: u64 = 0x1000;
const LEN: u64 = 64;
const QPN: u32 = 0x11;

/// All rights that a region can have together.
fn full() -> Access {
    Access::all() - Access::ZERO_BASED
}

fn bench() -> Bench {
    bench_with(full())
}

fn bench_with(access: Access) -> Bench {
    let memory = Memory::new(Config::default());
    let pd = memory.alloc_pd().unwrap();
    let (buffer, backing) = buffer(64);
    let mr = memory.reg_mr(pd, backing, IOVA, access).unwrap();
    Bench { memory, pd, buffer, mr }
}

fn buffer(len: usize) -> (Arc<Buffer>, Backing) {
    let buffer = Buffer::zeroed(len).unwrap();
    (Arc::clone(&buffer), Backing::buffer(buffer))
}

fn bytes(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer.read(0, &mut bytes).unwrap();
    bytes
}

impl Bench {
    fn sge(&self, addr: u64, length: u32) -> Sge {
        Sge { addr, length, lkey: self.mr.lkey }
    }

    fn remote(&self, rkey: u32, addr: u64, len: u64, need: Access) -> Result<Pinned, KeyError> {
        self.memory.remote(self.pd, QPN, rkey, addr, len, need)
    }

    /// The error of a remote access of one byte at the start.
    fn refusal(&self, rkey: u32) -> KeyError {
        self.remote(rkey, IOVA, 1, Access::empty()).unwrap_err()
    }

    fn gather(&self, sges: &[Sge], offset: u64, len: usize) -> Result<Gather, KeyError> {
        self.memory.gather(self.pd, sges, offset, len)
    }

    fn scatter(&self, sges: &[Sge], offset: u64, data: &[u8]) -> Result<(), KeyError> {
        self.memory.scatter(self.pd, sges, offset, data)
    }

    /// A bind of `len` bytes at `addr` of the region.
    fn bind_of(&self, mw: MwId, addr: u64, len: u64, access: Access) -> BindMw {
        let (pd, qpn, lkey) = (self.pd, QPN, self.mr.lkey);
        BindMw { mw, pd, qpn, lkey, new_rkey: None, addr, len, access }
    }
}

/// A handle that was never given out.
const fn no_mr() -> MrId {
    MrId { index: 0xff_fff0, serial: 0 }
}
