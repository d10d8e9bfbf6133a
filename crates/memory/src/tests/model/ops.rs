//! The operations, and how they are drawn: mostly such as lead somewhere, some at every edge.

use proptest::prelude::*;

use super::super::full;
use crate::{Access, MwType};

/// Bytes of the arena that all regions lie in; they never reach its guards.
pub(super) const ARENA: usize = 512;
const GUARD: usize = 64;

/// Indexes of objects and keys are drawn at large; the world chooses by them.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Reg {
        pd: usize,
        at: usize,
        len: usize,
        iova: u64,
        access: Access,
        invalidatable: bool,
    },
    Rereg {
        mr: usize,
        pd: Option<usize>,
        access: Option<Access>,
        range: Option<(usize, usize)>,
    },
    Dereg {
        mr: usize,
    },
    AllocMw {
        pd: usize,
        kind: MwType,
    },
    DeallocMw {
        mw: usize,
    },
    Bind {
        mw: usize,
        mr: usize,
        pd: usize,
        qpn: u32,
        shift: u64,
        len: u64,
        access: Access,
        low: u8,
    },
    Invalidate {
        key: usize,
        pd: usize,
        qpn: u32,
        remote: bool,
    },
    Remote {
        key: usize,
        pd: usize,
        qpn: u32,
        shift: u64,
        len: u64,
        need: Access,
        byte: u8,
    },
    Add {
        key: usize,
        pd: usize,
        qpn: u32,
        shift: u64,
        add: u64,
    },
    Local {
        parts: Vec<(usize, u64, u32)>,
        pd: usize,
        skip: u64,
        len: usize,
        write: bool,
        byte: u8,
    },
}

fn pd() -> impl Strategy<Value = usize> {
    prop_oneof![9 => Just(0), 1 => Just(1)]
}

fn qpn() -> impl Strategy<Value = u32> {
    prop_oneof![5 => Just(1), 1 => Just(2)]
}

fn access() -> impl Strategy<Value = Access> {
    let some = any::<u32>().prop_map(Access::from_bits_truncate);
    let writable = some.clone().prop_map(|a| a | Access::LOCAL_WRITE);
    prop_oneof![3 => Just(full()), 1 => some, 2 => writable]
}

fn window_access() -> impl Strategy<Value = Access> {
    let some = any::<u32>().prop_map(Access::from_bits_truncate);
    let fitting = some.clone().prop_map(|a| a & (Access::REMOTE | Access::ZERO_BASED));
    prop_oneof![2 => Just(Access::REMOTE), 3 => fitting, 1 => some]
}

/// Distance from the first address of a region: within, at the edges, beyond.
fn shift() -> impl Strategy<Value = u64> {
    let near = (0..70_u64).prop_map(|near| near.wrapping_sub(4));
    prop_oneof![6 => near, 1 => Just(u64::MAX - 7), 3 => (0..8_u64).prop_map(|word| word * 8)]
}

fn length() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..20_u64, 2 => 0..140_u64, 1 => (0..70_u64).prop_map(|less| u64::MAX - less)]
}

fn need() -> impl Strategy<Value = Access> {
    let rights = Access::REMOTE.iter().chain([Access::empty(), Access::REMOTE]);
    prop::sample::select(rights.collect::<Vec<_>>())
}

fn range() -> impl Strategy<Value = (usize, usize)> {
    let len = prop_oneof![1 => 0..=64_usize, 3 => 64..=128_usize];
    (GUARD..ARENA - GUARD - 128, len).prop_map(|(at, len)| (at & !3, len))
}

pub(super) fn manage() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![Just(MwType::Type1), Just(MwType::Type2B)];
    let iova =
        prop::sample::select(vec![0, 0x40, 0x1004, 0x1000, 0x2000, u64::MAX - 63, u64::MAX - 127]);
    let reg = (pd(), range(), iova, access(), any::<bool>()).prop_map(
        |(pd, (at, len), iova, access, invalidatable)| Op::Reg {
            pd,
            at,
            len,
            iova,
            access,
            invalidatable,
        },
    );
    let change = (
        any::<usize>(),
        prop::option::weighted(0.2, pd()),
        prop::option::of(access()),
        prop::option::of(range()),
    );
    let bind = (any::<usize>(), any::<usize>(), pd(), qpn());
    let bind = (bind, shift(), length(), window_access(), any::<u8>()).prop_map(
        |((mw, mr, pd, qpn), shift, len, access, low)| Op::Bind {
            mw,
            mr,
            pd,
            qpn,
            shift,
            len,
            access,
            low,
        },
    );
    prop_oneof![
        4 => reg,
        2 => change.prop_map(|(mr, pd, access, range)| Op::Rereg { mr, pd, access, range }),
        2 => any::<usize>().prop_map(|mr| Op::Dereg { mr }),
        2 => (pd(), kind).prop_map(|(pd, kind)| Op::AllocMw { pd, kind }),
        1 => any::<usize>().prop_map(|mw| Op::DeallocMw { mw }),
        6 => bind,
        2 => (any::<usize>(), pd(), qpn(), any::<bool>())
            .prop_map(|(key, pd, qpn, remote)| Op::Invalidate { key, pd, qpn, remote }),
    ]
}

pub(super) fn access_memory() -> impl Strategy<Value = Op> {
    let user = || (any::<usize>(), pd(), qpn());
    let remote = (user(), shift(), length(), need(), any::<u8>()).prop_map(
        |((key, pd, qpn), shift, len, need, byte)| Op::Remote {
            key,
            pd,
            qpn,
            shift,
            len,
            need,
            byte,
        },
    );
    let add = (user(), shift(), any::<u64>()).prop_map(|((key, pd, qpn), shift, add)| Op::Add {
        key,
        pd,
        qpn,
        shift,
        add,
    });
    let part = (any::<usize>(), 0..40_u64, prop_oneof![1 => Just(0), 3 => 8..40_u32]);
    let parts = prop::collection::vec(part, 1..4);
    let local = (parts, pd(), 0..30_u64, 0..30_usize, any::<bool>(), any::<u8>()).prop_map(
        |(parts, pd, skip, len, write, byte)| Op::Local { parts, pd, skip, len, write, byte },
    );
    prop_oneof![3 => remote, 1 => add, 3 => local]
}
