//! Re-registration and invalidation of regions.

use super::*;

fn invalidatable(b: &Bench, access: Access) -> MrInfo {
    let options = MrOptions { invalidatable: true };
    b.memory.reg_mr_with(b.pd, buffer(64).1, IOVA, access, options).unwrap()
}

#[test]
fn each_combination_changes_what_it_names() {
    for choice in 0..8 {
        let b = bench();
        let other = b.memory.alloc_pd().unwrap();
        let access = Access::REMOTE_READ;
        let change = Rereg {
            memory: (choice & 1 != 0).then(|| (buffer(32).1, 0x8000)),
            pd: (choice & 2 != 0).then_some(other),
            access: (choice & 4 != 0).then_some(access),
        };
        let info = b.memory.rereg_mr(b.mr.id, change).unwrap();
        assert_eq!(b.memory.query_mr(b.mr.id), Ok(info));
        let range = if choice & 1 != 0 { (0x8000, 32) } else { (IOVA, LEN) };
        assert_eq!((info.iova, info.length), range);
        assert_eq!(info.pd, if choice & 2 != 0 { other } else { b.pd });
        assert_eq!(info.access, if choice & 4 != 0 { access } else { full() });
        assert_eq!(info.rkey != b.mr.rkey, choice & 1 != 0, "new memory means new keys");
        assert_eq!(info.rkey >> 8, b.mr.rkey >> 8);
        assert_eq!(info.lkey, info.rkey);

        let need = Access::REMOTE_READ;
        let whole = b.memory.remote(info.pd, QPN, info.rkey, range.0, range.1, need);
        assert_eq!(whole.unwrap().len(), range.1);
        assert!(b.memory.remote(info.pd, QPN, info.rkey, range.0, range.1 + 1, need).is_err());
        let write = b.memory.remote(info.pd, QPN, info.rkey, range.0, 1, Access::REMOTE_WRITE);
        assert_eq!(write.map(drop).is_ok(), choice & 4 == 0);
        if choice & 1 != 0 {
            let (key, current) = (b.mr.rkey, info.rkey.to_le_bytes()[0]);
            assert_eq!(b.refusal(key), KeyError::Stale { key, current });
        }
        // The PD it left is free, the one it has is not.
        assert_eq!(b.memory.dealloc_pd(b.pd).is_ok(), choice & 2 != 0);
        assert_eq!(b.memory.dealloc_pd(other).is_ok(), choice & 2 == 0);
        b.memory.dereg_mr(b.mr.id).unwrap();
        assert_eq!(b.memory.dealloc_pd(info.pd), Ok(()));
    }
}

#[test]
fn the_same_bytes_stay_behind_new_rights() {
    let b = bench();
    b.buffer.write(0, b"kept").unwrap();
    let change = Rereg { access: Some(Access::REMOTE_READ), ..Rereg::default() };
    b.memory.rereg_mr(b.mr.id, change).unwrap();
    let mut got = [0; 4];
    let pinned = b.remote(b.mr.rkey, IOVA, 4, Access::REMOTE_READ).unwrap();
    pinned.read(0, &mut got).unwrap();
    assert_eq!(&got, b"kept");
    drop(pinned);
    assert_eq!(Arc::strong_count(&b.buffer), 2);

    // New memory lets go of the old.
    let change = Rereg { memory: Some((buffer(8).1, 0)), ..Rereg::default() };
    b.memory.rereg_mr(b.mr.id, change).unwrap();
    assert_eq!(Arc::strong_count(&b.buffer), 1);
}

#[test]
fn zero_based_follows_the_new_rights() {
    let b = bench();
    let zero_based = Some(Access::REMOTE_READ | Access::ZERO_BASED);
    let change = Rereg { access: zero_based, ..Rereg::default() };
    assert_eq!(b.memory.rereg_mr(b.mr.id, change).unwrap().iova, 0);
    let change = Rereg { memory: Some((buffer(8).1, 0x7000)), access: zero_based, pd: None };
    assert_eq!(b.memory.rereg_mr(b.mr.id, change).unwrap().iova, 0);
}

#[test]
fn a_refused_change_changes_nothing() {
    let b = bench();
    let other = b.memory.alloc_pd().unwrap();
    let gone = b.memory.alloc_pd().unwrap();
    b.memory.dealloc_pd(gone).unwrap();
    let rereg = |memory, pd, access| {
        let refused = b.memory.rereg_mr(b.mr.id, Rereg { memory, pd, access });
        assert_eq!(b.memory.query_mr(b.mr.id), Ok(b.mr));
        refused.unwrap_err()
    };
    let access = Access::REMOTE_WRITE;
    let needs = MemoryError::NeedsLocalWrite { access };
    assert_eq!(rereg(None, Some(other), Some(access)), needs);
    let far = Some((buffer(8).1, u64::MAX));
    let overflow = MemoryError::AddressOverflow { addr: u64::MAX, len: 8 };
    assert_eq!(rereg(far, Some(other), None), overflow);
    assert_eq!(rereg(None, Some(gone), None), MemoryError::UnknownPd(gone));
    assert_eq!(b.memory.dealloc_pd(other), Ok(()), "the new PD is not held");
    assert_eq!(b.memory.dealloc_pd(b.pd), Err(MemoryError::PdBusy { pd: b.pd, users: 1 }));
}

#[test]
fn changes_follow_each_other() {
    let b = bench();
    for access in [Access::REMOTE_READ, full(), Access::empty()] {
        let change = Rereg { access: Some(access), ..Rereg::default() };
        assert_eq!(b.memory.rereg_mr(b.mr.id, change).unwrap().access, access);
    }
    assert_eq!(b.memory.dereg_mr(b.mr.id), Ok(()));
}

#[test]
fn a_region_with_windows_is_neither_changed_nor_deregistered() {
    let b = bench();
    let (mw, _) = b.memory.alloc_mw(b.pd, MwType::Type1).unwrap();
    b.memory.bind_mw(&b.bind_of(mw, IOVA, 8, Access::REMOTE_READ)).unwrap();
    assert_eq!(b.memory.query_mr(b.mr.id).unwrap().windows, 1);
    let bound = MemoryError::WindowsBound { mr: b.mr.id, windows: 1 };
    assert_eq!(b.memory.dereg_mr(b.mr.id), Err(bound));
    assert_eq!(b.memory.try_dereg_mr(b.mr.id), Err(bound));
    assert_eq!(b.memory.rereg_mr(b.mr.id, Rereg::default()), Err(bound));
    assert!(b.remote(b.mr.rkey, IOVA, 8, Access::REMOTE_READ).is_ok());
    b.memory.bind_mw(&b.bind_of(mw, 0, 0, Access::empty())).unwrap();
    assert_eq!(b.memory.dereg_mr(b.mr.id), Ok(()));
}

#[test]
fn only_regions_made_for_it_are_invalidated() {
    let b = bench();
    let plain = b.memory.invalidate(b.pd, QPN, b.mr.rkey, false);
    assert_eq!(plain, Err(KeyError::NotInvalidatable { key: b.mr.rkey }));

    let mr = invalidatable(&b, full());
    let key = mr.rkey;
    let used = b.memory.alloc_pd().unwrap();
    let wrong = KeyError::WrongPd { key, owner: b.pd, used };
    assert_eq!(b.memory.invalidate(used, QPN, key, true), Err(wrong));
    assert!(b.remote(key, IOVA, 1, Access::REMOTE_READ).is_ok());

    assert_eq!(b.memory.invalidate(b.pd, QPN, key, true), Ok(()));
    assert_eq!(b.refusal(key), KeyError::Invalidated { key });
    let sge = Sge { lkey: key, ..b.sge(IOVA, 1) };
    assert_eq!(b.gather(&[sge], 0, 1).map(drop), Err(KeyError::Invalidated { key }));
    assert_eq!(b.memory.invalidate(b.pd, QPN, key, true), Err(KeyError::Invalidated { key }));
    assert!(!b.memory.query_mr(mr.id).unwrap().valid);
}

#[test]
fn an_invalidated_region_is_registered_again_under_a_new_key() {
    let b = bench();
    let mr = invalidatable(&b, full());
    b.memory.invalidate(b.pd, QPN, mr.rkey, false).unwrap();
    let again = b.memory.rereg_mr(mr.id, Rereg::default()).unwrap();
    assert_eq!((again.valid, again.rkey & 0xff), (true, (mr.rkey + 1) & 0xff));
    assert!(b.remote(again.rkey, IOVA, 64, Access::REMOTE_READ).is_ok());
    assert!(matches!(b.refusal(mr.rkey), KeyError::Stale { .. }));
    b.memory.invalidate(b.pd, QPN, again.rkey, false).unwrap();
    assert_eq!(b.memory.dereg_mr(mr.id), Ok(()), "an invalidated region is deregistered too");
}

#[test]
fn a_peer_invalidates_only_what_it_could_use() {
    let b = bench();
    let mr = invalidatable(&b, Access::LOCAL_WRITE);
    let (key, need, have) = (mr.rkey, Access::REMOTE, Access::LOCAL_WRITE);
    let refused = b.memory.invalidate(b.pd, QPN, key, true);
    assert_eq!(refused, Err(KeyError::Rights { key, need, have }));
    assert_eq!(b.memory.invalidate(b.pd, QPN, key, false), Ok(()));
}

#[test]
fn a_region_with_windows_is_not_invalidated() {
    let b = bench();
    let mr = invalidatable(&b, full());
    let (mw, _) = b.memory.alloc_mw(b.pd, MwType::Type1).unwrap();
    let bind = BindMw { lkey: mr.lkey, ..b.bind_of(mw, IOVA, 8, Access::REMOTE_READ) };
    b.memory.bind_mw(&bind).unwrap();
    let refused = b.memory.invalidate(b.pd, QPN, mr.rkey, false);
    assert_eq!(refused, Err(KeyError::WindowsBound { key: mr.rkey, windows: 1 }));
    b.memory.dealloc_mw(mw).unwrap();
    assert_eq!(b.memory.invalidate(b.pd, QPN, mr.rkey, false), Ok(()));
}
