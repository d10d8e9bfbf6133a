//! Memory windows of both types.

use super::*;

const READ: Access = Access::REMOTE_READ;
const WRITE: Access = Access::REMOTE_WRITE;

impl Bench {
    fn window(&self, kind: MwType) -> (MwId, u32) {
        self.memory.alloc_mw(self.pd, kind).unwrap()
    }

    fn bind1(&self, mw: MwId, addr: u64, len: u64, access: Access) -> Result<u32, KeyError> {
        self.memory.bind_mw(&self.bind_of(mw, addr, len, access))
    }

    fn bind2(&self, mw: MwId, new: u32, addr: u64, len: u64) -> Result<u32, KeyError> {
        let bind = self.bind_of(mw, addr, len, READ | WRITE);
        self.memory.bind_mw(&BindMw { new_rkey: Some(new), ..bind })
    }
}

#[test]
fn a_window_is_of_no_use_before_it_is_bound() {
    let b = bench();
    for kind in [MwType::Type1, MwType::Type2B] {
        let (mw, key) = b.window(kind);
        assert_eq!(b.refusal(key), KeyError::NotBound { key });
        let info = b.memory.query_mw(mw).unwrap();
        assert_eq!((info.id, info.kind, info.pd, info.rkey), (mw, kind, b.pd, key));
        assert_eq!((info.bound, info.start, info.length), (false, 0, 0));
        assert_eq!(info.access, Access::empty());
    }
}

#[test]
fn a_window_opens_its_range_and_rights_and_no_more() {
    let b = bench();
    let (mw, old) = b.window(MwType::Type1);
    let key = b.bind1(mw, IOVA + 16, 8, WRITE).unwrap();
    assert_eq!(key, (old & !0xff) | ((old + 1) & 0xff), "as ibv_inc_rkey");
    assert!(matches!(b.refusal(old), KeyError::Stale { .. }));

    b.remote(key, IOVA + 16, 8, WRITE).unwrap().write(0, &[9; 8]).unwrap();
    let mut want = [0; 64];
    want[16..24].fill(9);
    assert_eq!(bytes(&b.buffer), want);

    let (start, length) = (IOVA + 16, 8);
    for (addr, len) in [(start - 1, 1), (start, 9), (start + 8, 1), (start + 7, u64::MAX)] {
        let range = KeyError::Range { key, addr, len, start, length };
        assert_eq!(b.remote(key, addr, len, WRITE).unwrap_err(), range);
    }
    let rights = KeyError::Rights { key, need: READ, have: WRITE };
    assert_eq!(b.remote(key, start, 8, READ).unwrap_err(), rights);
    let info = b.memory.query_mw(mw).unwrap();
    assert_eq!((info.rkey, info.bound, info.access), (key, true, WRITE));
    assert_eq!((info.start, info.length), (start, 8));
    assert_eq!(b.memory.remote_all(b.pd, QPN, key, WRITE).unwrap().len(), 8);
}

#[test]
fn a_window_may_have_rights_that_the_region_gives_no_peer() {
    let b = bench_with(Access::MW_BIND);
    let (mw, _) = b.window(MwType::Type1);
    let key = b.bind1(mw, IOVA, 8, READ).unwrap();
    assert!(b.remote(key, IOVA, 8, READ).is_ok());
    assert!(b.remote(b.mr.rkey, IOVA, 8, READ).is_err());
}

/// IBA C10-73
#[test]
fn binding_needs_a_region_that_allows_it() {
    let b = bench_with(full() - Access::MW_BIND);
    let (mw, old) = b.window(MwType::Type1);
    let (key, need, have) = (b.mr.lkey, Access::MW_BIND, b.mr.access);
    assert_eq!(b.bind1(mw, IOVA, 8, READ), Err(KeyError::Rights { key, need, have }));
    assert_eq!(b.memory.query_mw(mw).unwrap().rkey, old);
    assert_eq!(b.memory.dereg_mr(b.mr.id), Ok(()), "a refused bind counts nothing");
}

/// IBA C10-74
#[test]
fn windows_that_change_memory_need_local_write() {
    let b = bench_with(Access::MW_BIND | READ);
    let (mw, _) = b.window(MwType::Type1);
    let (key, need, have) = (b.mr.lkey, Access::LOCAL_WRITE, b.mr.access);
    for access in [WRITE, Access::REMOTE_ATOMIC, READ | WRITE] {
        let refused = b.bind1(mw, IOVA, 8, access);
        assert_eq!(refused, Err(KeyError::Rights { key, need, have }), "{access:?}");
    }
    assert!(b.bind1(mw, IOVA, 8, READ | Access::FLUSH_GLOBAL).is_ok());
}

/// IBA C10-75
#[test]
fn a_window_lies_within_its_region() {
    let b = bench();
    let (mw, _) = b.window(MwType::Type1);
    let (key, start, length) = (b.mr.lkey, IOVA, LEN);
    let ranges = [(IOVA - 1, 1), (IOVA, 65), (IOVA + 64, 1), (IOVA + 63, 2), (IOVA, u64::MAX)];
    for (addr, len) in ranges {
        let range = KeyError::Range { key, addr, len, start, length };
        assert_eq!(b.bind1(mw, addr, len, READ), Err(range));
    }
    assert!(b.bind1(mw, IOVA, 64, READ).is_ok());
    assert!(b.bind1(mw, IOVA + 63, 1, READ).is_ok());
}

/// IBA C10-72
#[test]
fn window_region_and_qp_are_of_one_pd() {
    let b = bench();
    let used = b.memory.alloc_pd().unwrap();
    let (mine, _) = b.window(MwType::Type1);
    let (theirs, their_key) = b.memory.alloc_mw(used, MwType::Type1).unwrap();
    let of_region = KeyError::WrongPd { key: b.mr.lkey, owner: b.pd, used };
    let bind = b.bind_of(mine, IOVA, 8, READ);
    assert_eq!(b.memory.bind_mw(&BindMw { pd: used, ..bind }), Err(of_region));
    let of_window = KeyError::WrongPd { key: their_key, owner: used, used: b.pd };
    assert_eq!(b.bind1(theirs, IOVA, 8, READ), Err(of_window));
    let unbind = BindMw { len: 0, ..b.bind_of(theirs, 0, 0, Access::empty()) };
    assert_eq!(b.memory.bind_mw(&unbind), Err(of_window));
    let key = b.bind1(mine, IOVA, 8, READ).unwrap();
    let remote = b.memory.remote(used, QPN, key, IOVA, 8, READ);
    assert_eq!(remote.map(drop), Err(KeyError::WrongPd { key, owner: b.pd, used }));
    assert_eq!(b.memory.query_mr(b.mr.id).unwrap().windows, 1);
}

#[test]
fn a_zero_based_region_takes_no_window() {
    let b = bench_with(full() | Access::ZERO_BASED);
    let (mw, _) = b.window(MwType::Type1);
    let refused = b.bind1(mw, 0, 8, READ);
    assert_eq!(refused, Err(KeyError::ZeroBasedRegion { key: b.mr.lkey }));
}

#[test]
fn windows_bind_only_to_regions_alive() {
    let b = bench();
    let (mw, key) = b.window(MwType::Type1);
    let bind = |lkey| b.memory.bind_mw(&BindMw { lkey, ..b.bind_of(mw, IOVA, 8, READ) });
    assert_eq!(bind(key), Err(KeyError::NotARegion { key }), "not even to themselves");
    let (_, other) = b.window(MwType::Type2B);
    assert_eq!(bind(other), Err(KeyError::NotARegion { key: other }));
    assert_eq!(bind(0x1_0000), Err(KeyError::UnknownKey { key: 0x1_0000 }));
    assert!(matches!(bind(b.mr.lkey ^ 1), Err(KeyError::Stale { .. })));
    b.memory.dealloc_mw(mw).unwrap();
    assert_eq!(bind(b.mr.lkey), Err(KeyError::UnknownMw { mw }));
    assert_eq!(b.memory.query_mr(b.mr.id).unwrap().windows, 0);
}

#[test]
fn a_window_key_is_no_lkey() {
    let b = bench();
    let (mw, _) = b.window(MwType::Type1);
    let key = b.bind1(mw, IOVA, 8, READ | WRITE).unwrap();
    let sge = Sge { lkey: key, ..b.sge(IOVA, 8) };
    assert_eq!(b.gather(&[sge], 0, 8).map(drop), Err(KeyError::NotARegion { key }));
    assert_eq!(b.scatter(&[sge], 0, &[1]), Err(KeyError::NotARegion { key }));
}

#[test]
fn windows_carry_remote_rights_only() {
    let b = bench();
    let cases = [
        (MwType::Type1, Access::REMOTE, Access::empty()),
        (MwType::Type1, READ | Access::LOCAL_WRITE, Access::LOCAL_WRITE),
        (MwType::Type1, Access::ZERO_BASED, Access::ZERO_BASED), // IBA o10-36.2.2
        (MwType::Type2B, READ | Access::ZERO_BASED, Access::empty()),
        (MwType::Type2B, READ | Access::MW_BIND, Access::MW_BIND),
    ];
    for (kind, asked, access) in cases {
        let (mw, key) = b.window(kind);
        let new_rkey = (kind == MwType::Type2B).then_some(key);
        let bind = BindMw { new_rkey, ..b.bind_of(mw, IOVA, 8, asked) };
        let got = b.memory.bind_mw(&bind).map(drop);
        let want = if access.is_empty() {
            Ok(())
        } else {
            Err(KeyError::WindowAccess { key, access, kind })
        };
        assert_eq!(got, want, "{kind:?} {asked:?}");
    }
}

#[test]
fn type_1_is_bound_again_and_unbound_by_length_0() {
    let b = bench();
    let (mw, _) = b.window(MwType::Type1);
    let first = b.bind1(mw, IOVA, 8, READ).unwrap();
    let second = b.bind1(mw, IOVA + 8, 8, WRITE).unwrap();
    assert!(matches!(b.refusal(first), KeyError::Stale { .. }));
    assert!(b.remote(second, IOVA + 8, 8, WRITE).is_ok());
    assert_eq!(b.memory.query_mr(b.mr.id).unwrap().windows, 1);

    let other_qp = b.memory.remote(b.pd, QPN + 1, second, IOVA + 8, 8, WRITE);
    assert_eq!(other_qp.map(drop), Ok(()), "any QP of the PD may use it");

    let unbound = b.memory.bind_mw(&BindMw { lkey: 0, ..b.bind_of(mw, 5, 0, WRITE) }).unwrap();
    assert_eq!(unbound & 0xff, (second + 1) & 0xff);
    assert_eq!(b.refusal(unbound), KeyError::NotBound { key: unbound });
    assert_eq!(b.memory.query_mr(b.mr.id).unwrap().windows, 0);
    assert_eq!(b.memory.dereg_mr(b.mr.id), Ok(()));
}

#[test]
fn type_1_takes_a_key_of_the_consumer_if_it_is_new() {
    let b = bench();
    let (mw, key) = b.window(MwType::Type1);
    let kind = MwType::Type1;
    let bind = |new| {
        let bind = b.bind_of(mw, IOVA, 8, READ);
        b.memory.bind_mw(&BindMw { new_rkey: Some(new), ..bind })
    };
    for got in [key, key + 0x100, key ^ 0x8000_0001] {
        assert_eq!(bind(got), Err(KeyError::NewKey { key, got: Some(got), kind }));
    }
    assert_eq!(bind(key ^ 0x55), Ok(key ^ 0x55));
    assert!(b.remote(key ^ 0x55, IOVA, 8, READ).is_ok());
}

#[test]
fn type_1_generations_wrap_within_the_index() {
    let b = bench();
    let (mw, mut key) = b.window(MwType::Type1);
    for _ in 0..256 {
        let next = b.bind1(mw, IOVA, 8, READ).unwrap();
        assert_eq!((next >> 8, next & 0xff), (key >> 8, (key + 1) & 0xff));
        key = next;
    }
}

/// IBA o10-37.2.26
#[test]
fn type_1_is_not_invalidated() {
    let b = bench();
    let (mw, _) = b.window(MwType::Type1);
    let key = b.bind1(mw, IOVA, 8, READ).unwrap();
    for remote in [false, true] {
        let refused = b.memory.invalidate(b.pd, QPN, key, remote);
        assert_eq!(refused, Err(KeyError::NotInvalidatable { key }));
    }
    assert!(b.remote(key, IOVA, 8, READ).is_ok());
}

#[test]
fn type_2_takes_its_key_from_the_bind() {
    let b = bench();
    let (mw, key) = b.window(MwType::Type2B);
    let kind = MwType::Type2B;
    let missing = b.bind1(mw, IOVA, 8, READ);
    assert_eq!(missing, Err(KeyError::NewKey { key, got: None, kind }));
    let got = Some(key ^ 0x100);
    assert_eq!(b.bind2(mw, key ^ 0x100, IOVA, 8), Err(KeyError::NewKey { key, got, kind }));
    let new = key ^ 0xa5;
    assert_eq!(b.bind2(mw, new, IOVA, 8), Ok(new));
    assert!(b.remote(new, IOVA, 8, WRITE).is_ok());
    assert!(matches!(b.refusal(key), KeyError::Stale { .. }));
}

/// IBA o10-37.2.30
#[test]
fn type_2_is_invalidated_before_it_is_bound_again() {
    let b = bench();
    let (mw, key) = b.window(MwType::Type2B);
    b.bind2(mw, key, IOVA, 8).unwrap();
    assert_eq!(b.bind2(mw, key ^ 1, IOVA, 8), Err(KeyError::AlreadyBound { key }));
    assert!(b.remote(key, IOVA, 8, READ).is_ok(), "the old binding stands");
    assert_eq!(b.memory.query_mr(b.mr.id).unwrap().windows, 1);
    b.memory.invalidate(b.pd, QPN, key, true).unwrap();
    assert_eq!(b.refusal(key), KeyError::NotBound { key });
    assert_eq!(b.memory.query_mr(b.mr.id).unwrap().windows, 0);
    assert_eq!(b.bind2(mw, key ^ 1, IOVA, 8), Ok(key ^ 1));
}

/// IBA o10-37.2.40
#[test]
fn type_2_is_not_unbound_by_length_0() {
    let b = bench();
    let (mw, key) = b.window(MwType::Type2B);
    assert_eq!(b.bind2(mw, key, IOVA, 0), Err(KeyError::ZeroLengthBind { key }));
}

#[test]
fn type_2b_is_used_and_invalidated_by_its_qp_only() {
    let b = bench();
    let (mw, key) = b.window(MwType::Type2B);
    b.bind2(mw, key, IOVA, 8).unwrap();
    let wrong = KeyError::WrongQp { key, bound: QPN, used: QPN + 1 };
    let access = b.memory.remote(b.pd, QPN + 1, key, IOVA, 8, READ);
    assert_eq!(access.map(drop), Err(wrong));
    assert_eq!(b.memory.invalidate(b.pd, QPN + 1, key, true), Err(wrong));
    let used = b.memory.alloc_pd().unwrap();
    let other_pd = KeyError::WrongPd { key, owner: b.pd, used };
    assert_eq!(b.memory.invalidate(used, QPN, key, true), Err(other_pd));
    assert_eq!(b.memory.invalidate(b.pd, QPN, key, false), Ok(()));
    assert_eq!(b.memory.invalidate(b.pd, QPN, key, false), Err(KeyError::NotBound { key }));
}

#[test]
fn a_zero_based_window_counts_from_its_start() {
    let b = bench();
    let (mw, key) = b.window(MwType::Type2B);
    let bind = b.bind_of(mw, IOVA + 16, 8, WRITE | Access::ZERO_BASED);
    b.memory.bind_mw(&BindMw { new_rkey: Some(key), ..bind }).unwrap();
    b.remote(key, 2, 6, WRITE).unwrap().write(0, &[5; 6]).unwrap();
    let mut want = [0; 64];
    want[18..24].fill(5);
    assert_eq!(bytes(&b.buffer), want);
    assert!(b.remote(key, 2, 7, WRITE).is_err());
    assert!(b.remote(key, IOVA + 16, 1, WRITE).is_err());
}

#[test]
fn a_bound_window_may_be_deallocated() {
    let b = bench();
    for kind in [MwType::Type1, MwType::Type2B] {
        let (mw, key) = b.window(kind);
        let bound = match kind {
            MwType::Type1 => b.bind1(mw, IOVA, 8, READ).unwrap(),
            MwType::Type2B => b.bind2(mw, key, IOVA, 8).unwrap(),
        };
        assert_eq!(b.memory.dealloc_mw(mw), Ok(()));
        assert_eq!(b.refusal(bound), KeyError::UnknownKey { key: bound });
        assert_eq!(b.memory.dealloc_mw(mw), Err(MemoryError::UnknownMw(mw)));
        assert_eq!(b.memory.query_mw(mw), Err(MemoryError::UnknownMw(mw)));
    }
    assert_eq!(b.memory.mw_count(), 0);
    assert_eq!(b.memory.dereg_mr(b.mr.id), Ok(()));
}

#[test]
fn a_destroyed_qp_leaves_no_window() {
    let b = bench();
    let bind = |qpn| {
        let (mw, key) = b.window(MwType::Type2B);
        let bind = b.bind_of(mw, IOVA, 8, READ);
        b.memory.bind_mw(&BindMw { qpn, new_rkey: Some(key), ..bind }).unwrap()
    };
    // The third QPN is in the same class as the first.
    let keys = [bind(QPN), bind(QPN), bind(QPN + 64), bind(QPN + 1)];
    let (type1, _) = b.window(MwType::Type1);
    let shared = b.bind1(type1, IOVA, 8, READ).unwrap();
    assert_eq!(b.memory.unbind_qp(QPN + 2), 0);
    assert_eq!(b.memory.unbind_qp(QPN), 2);
    assert_eq!(b.memory.unbind_qp(QPN), 0);
    for key in &keys[..2] {
        assert_eq!(b.refusal(*key), KeyError::NotBound { key: *key });
    }
    assert!(b.memory.remote(b.pd, QPN + 64, keys[2], IOVA, 8, READ).is_ok());
    assert!(b.memory.remote(b.pd, QPN + 1, keys[3], IOVA, 8, READ).is_ok());
    assert!(b.remote(shared, IOVA, 8, READ).is_ok());
    assert_eq!(b.memory.query_mr(b.mr.id).unwrap().windows, 3);
    assert_eq!(b.memory.unbind_qp(QPN + 64), 1);
}

#[test]
fn an_access_through_a_window_outlives_its_end_but_not_the_region() {
    let b = bench();
    let (mw, _) = b.window(MwType::Type1);
    let key = b.bind1(mw, IOVA, 8, WRITE).unwrap();
    let pinned = b.remote(key, IOVA, 8, WRITE).unwrap();
    b.memory.dealloc_mw(mw).unwrap();
    let busy = MemoryError::MrBusy { mr: b.mr.id };
    assert_eq!(b.memory.try_dereg_mr(b.mr.id), Err(busy));
    pinned.write(0, &[1; 8]).unwrap();
    drop(pinned);
    assert_eq!(b.memory.try_dereg_mr(b.mr.id), Ok(()));
    assert_eq!(&bytes(&b.buffer)[..9], [1, 1, 1, 1, 1, 1, 1, 1, 0]);
}
