//! Tests of the rules, one file per matter.

use std::sync::Arc;

use crate::{Access, Backing, Buffer, Config, Memory, MrInfo, PdId, Sge};

mod regions;

/// A registry with a PD and a region of 64 bytes at 0x1000, with all rights.
struct Bench {
    memory: Memory,
    pd: PdId,
    buffer: Arc<Buffer>,
    mr: MrInfo,
}

const IOVA: u64 = 0x1000;
const LEN: usize = 64;

fn bench() -> Bench {
    bench_with(Access::all() - Access::ZERO_BASED)
}

fn bench_with(access: Access) -> Bench {
    let memory = Memory::new(Config::default());
    let pd = memory.alloc_pd().unwrap();
    let buffer = Buffer::zeroed(LEN).unwrap();
    let mr = memory.reg_mr(pd, Backing::buffer(Arc::clone(&buffer)), IOVA, access).unwrap();
    Bench { memory, pd, buffer, mr }
}

impl Bench {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.buffer.len()];
        self.buffer.read(0, &mut bytes).unwrap();
        bytes
    }

    fn sge(&self, addr: u64, length: u32) -> Sge {
        Sge { addr, length, lkey: self.mr.lkey }
    }
}
