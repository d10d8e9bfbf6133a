//! Keys: form, generations, reuse.

use std::collections::HashSet;

use super::*;

#[test]
fn a_key_is_index_and_generation() {
    let memory = Memory::new(Config::default());
    let pd = memory.alloc_pd().unwrap();
    let keys: Vec<u32> = (0..3)
        .map(|_| memory.reg_mr(pd, buffer(8).1, 0, Access::empty()).unwrap())
        .map(|mr| {
            assert_eq!(mr.lkey, mr.rkey);
            mr.lkey
        })
        .collect();
    assert_eq!(keys.iter().map(|key| key >> 8).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn windows_and_regions_share_one_key_space() {
    let b = bench();
    let (_, rkey) = b.memory.alloc_mw(b.pd, MwType::Type1).unwrap();
    assert_ne!(rkey >> 8, b.mr.rkey >> 8);
}

#[test]
fn the_seed_varies_keys_and_repeats_them() {
    let keys = |key_seed| {
        let memory = Memory::new(Config { key_seed, ..Config::default() });
        let pd = memory.alloc_pd().unwrap();
        let reg = |_| memory.reg_mr(pd, buffer(1).1, 0, Access::empty()).unwrap().rkey;
        (0..600).map(reg).collect::<Vec<_>>()
    };
    assert_eq!(keys(1), keys(1));
    assert_ne!(keys(1), keys(2));
    for seed in [0, 1, 2, 0xdead_beef] {
        let keys = keys(seed);
        let indexes: HashSet<u32> = keys.iter().map(|key| key >> 8).collect();
        assert_eq!(indexes.len(), keys.len(), "indexes are unique");
        assert!(!indexes.contains(&0) && !indexes.contains(&0xff_ffff), "0 and !0 mean no key");
        let generations: HashSet<u32> = keys.iter().map(|key| key & 0xff).collect();
        assert!(generations.len() > 100, "generations start scattered");
    }
}

#[test]
fn unknown_keys_are_refused() {
    let b = bench();
    for key in [0, 0xff, 0x700, 0x00ff_ff00, u32::MAX] {
        assert_eq!(b.refusal(key), KeyError::UnknownKey { key });
        let sge = Sge { addr: IOVA, length: 1, lkey: key };
        assert_eq!(b.gather(&[sge], 0, 1).map(drop), Err(KeyError::UnknownKey { key }));
        assert_eq!(b.scatter(&[sge], 0, b"x"), Err(KeyError::UnknownKey { key }));
        let invalidated = b.memory.invalidate(b.pd, QPN, key, true);
        assert_eq!(invalidated, Err(KeyError::UnknownKey { key }));
    }
}

#[test]
fn another_generation_is_stale() {
    let b = bench();
    let (right, current) = (b.mr.rkey, b.mr.rkey.to_le_bytes()[0]);
    for wrong in 1..=255 {
        let key = right ^ wrong;
        assert_eq!(b.refusal(key), KeyError::Stale { key, current });
        let sge = Sge { lkey: key, ..b.sge(IOVA, 1) };
        assert_eq!(b.gather(&[sge], 0, 1).map(drop), Err(KeyError::Stale { key, current }));
    }
}

#[test]
fn a_key_is_unknown_after_deregistration_and_stale_after_reuse() {
    // One region at a time: the 257th registration is the first that reuses an index.
    let memory = Memory::new(Config { key_seed: 3, max_pd: 1, max_mr: 1, max_mw: 0 });
    let pd = memory.alloc_pd().unwrap();
    let cycle = || {
        let mr = memory.reg_mr(pd, buffer(8).1, 0, Access::REMOTE_READ).unwrap();
        memory.dereg_mr(mr.id).unwrap();
        mr
    };
    let use_key = |key| memory.remote(pd, QPN, key, 0, 1, Access::REMOTE_READ).map(drop);
    let first = cycle();
    assert_eq!(use_key(first.rkey), Err(KeyError::UnknownKey { key: first.rkey }));

    let mut indexes = HashSet::from([first.rkey >> 8]);
    while indexes.insert(cycle().rkey >> 8) {}
    assert_eq!(indexes.len(), 257, "freed indexes rest");

    // That reused `first`'s index; the others follow in order. Wait for its turn again.
    let next = std::iter::repeat_with(|| {
        let mr = memory.reg_mr(pd, buffer(8).1, 0, Access::REMOTE_READ).unwrap();
        let stale = use_key(first.rkey);
        memory.dereg_mr(mr.id).unwrap();
        (mr, stale)
    })
    .take(257)
    .find(|(mr, _)| mr.rkey >> 8 == first.rkey >> 8);
    let (mr, stale) = next.unwrap();
    assert_eq!(mr.rkey & 0xff, (first.rkey + 2) & 0xff);
    let current = mr.rkey.to_le_bytes()[0];
    assert_eq!(stale, Err(KeyError::Stale { key: first.rkey, current }));
}

#[test]
fn generations_pass_256_before_a_key_recurs() {
    let memory = Memory::new(Config { key_seed: 0, max_pd: 1, max_mr: 1, max_mw: 0 });
    let pd = memory.alloc_pd().unwrap();
    let (buffer, backing) = buffer(8);
    let mut mr = memory.reg_mr(pd, backing, 0, Access::REMOTE_READ).unwrap();
    let mut keys = HashSet::from([mr.rkey]);
    for _ in 1..256 {
        let before = mr.rkey;
        let memory_of = Some((Backing::buffer(Arc::clone(&buffer)), 0));
        mr = memory.rereg_mr(mr.id, Rereg { memory: memory_of, ..Rereg::default() }).unwrap();
        assert!(keys.insert(mr.rkey), "key {:#x} recurs early", mr.rkey);
        assert_eq!(mr.rkey >> 8, before >> 8);
        let current = mr.rkey.to_le_bytes()[0];
        let stale = memory.remote(pd, QPN, before, 0, 1, Access::REMOTE_READ);
        assert_eq!(stale.map(drop), Err(KeyError::Stale { key: before, current }));
    }
    let memory_of = Some((Backing::buffer(buffer), 0));
    let wrapped = memory.rereg_mr(mr.id, Rereg { memory: memory_of, ..Rereg::default() }).unwrap();
    assert!(keys.contains(&wrapped.rkey), "only 256 generations fit a byte");
}
