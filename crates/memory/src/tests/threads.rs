//! Real threads: deregistering under access, publication of a packet, atomics, the table's growth.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use super::*;

/// Gives way until `done`. Every wait here is for a step of another thread that is on its way.
fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

#[test]
fn deregistering_waits_for_the_access_in_progress() {
    let b = bench();
    let released = AtomicBool::new(false);
    let pinned = b.remote(b.mr.rkey, IOVA, 64, Access::REMOTE_WRITE).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            b.memory.dereg_mr(b.mr.id).unwrap();
            assert!(released.load(SeqCst), "returned while an access was in progress");
        });
        until(|| b.remote(b.mr.rkey, IOVA, 1, Access::empty()).is_err());
        let key = b.mr.rkey;
        assert_eq!(b.refusal(key), KeyError::Deregistering { key });
        let busy = MemoryError::MrBusy { mr: b.mr.id };
        assert_eq!(b.memory.dereg_mr(b.mr.id), Err(busy));
        assert_eq!(b.memory.query_mr(b.mr.id), Err(busy));
        pinned.write(0, &[1; 64]).unwrap();
        released.store(true, SeqCst);
        drop(pinned);
    });
    assert_eq!(Arc::strong_count(&b.buffer), 1);
    assert_eq!(bytes(&b.buffer), [1; 64]);
}

#[test]
fn reregistering_waits_and_keeps_others_from_changing_the_region() {
    let b = bench();
    let released = AtomicBool::new(false);
    let gather = b.gather(&[b.sge(IOVA, 64)], 0, 64).unwrap();
    let access = Access::LOCAL_WRITE;
    thread::scope(|scope| {
        scope.spawn(|| {
            let change = Rereg { access: Some(access), ..Rereg::default() };
            b.memory.rereg_mr(b.mr.id, change).unwrap();
            assert!(released.load(SeqCst), "returned while an access was in progress");
        });
        until(|| b.memory.query_mr(b.mr.id).unwrap().access == access);
        let busy = MemoryError::MrBusy { mr: b.mr.id };
        assert_eq!(b.memory.dereg_mr(b.mr.id), Err(busy));
        assert_eq!(b.memory.rereg_mr(b.mr.id, Rereg::default()), Err(busy));
        assert_eq!(b.scatter(&[b.sge(IOVA, 1)], 0, b"x"), Ok(()), "the new state is in force");
        released.store(true, SeqCst);
        drop(gather);
    });
    assert_eq!(b.memory.dereg_mr(b.mr.id), Ok(()));
}

#[test]
fn deregistering_waits_for_an_access_through_a_window_that_is_gone() {
    let b = bench();
    let (mw, _) = b.memory.alloc_mw(b.pd, MwType::Type1).unwrap();
    let key = b.memory.bind_mw(&b.bind_of(mw, IOVA, 64, Access::REMOTE_WRITE)).unwrap();
    let pinned = b.remote(key, IOVA, 64, Access::REMOTE_WRITE).unwrap();
    b.memory.dealloc_mw(mw).unwrap();
    let released = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            b.memory.dereg_mr(b.mr.id).unwrap();
            assert!(released.load(SeqCst), "returned while an access was in progress");
        });
        until(|| b.remote(b.mr.rkey, IOVA, 1, Access::empty()).is_err());
        assert_eq!(b.refusal(b.mr.rkey), KeyError::Deregistering { key: b.mr.rkey });
        released.store(true, SeqCst);
        drop(pinned);
    });
}

#[test]
fn no_write_lands_after_deregistration() {
    for round in 0..200_u32 {
        let b = bench();
        let started: Vec<AtomicBool> = (0..3).map(|_| AtomicBool::new(false)).collect();
        thread::scope(|scope| {
            for start in &started {
                let write = || {
                    let pinned = b.remote(b.mr.rkey, IOVA, 64, Access::REMOTE_WRITE)?;
                    pinned.write(0, &[0xaa; 64])?;
                    drop(pinned);
                    b.scatter(&[b.sge(IOVA, 64)], 0, &[0xbb; 64])
                };
                scope.spawn(move || {
                    let mut refused = write();
                    start.store(true, SeqCst);
                    while refused.is_ok() {
                        refused = write();
                    }
                });
            }
            until(|| started.iter().all(|start| start.load(SeqCst)));
            b.memory.dereg_mr(b.mr.id).unwrap();
            // The memory is ours alone now; a late write would show once the writers have ended.
            b.buffer.write(0, &[0x55; 64]).unwrap();
        });
        assert_eq!(bytes(&b.buffer), [0x55; 64], "round {round}");
    }
}

#[test]
fn whoever_sees_the_last_word_sees_all() {
    let memory = Memory::new(Config::default());
    let pd = memory.alloc_pd().unwrap();
    let (shared, backing) = buffer(4096);
    let mr = memory.reg_mr(pd, backing, 0, full()).unwrap();
    let last = |offset| {
        let mut word = [0; 8];
        shared.read(offset, &mut word).unwrap();
        u64::from_ne_bytes(word)
    };
    let rounds = 2000_u64;
    let len = 2048;
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=rounds {
                let packet = round.to_ne_bytes().repeat(len / 8);
                let need = Access::REMOTE_WRITE;
                let pinned = memory.remote(pd, QPN, mr.rkey, 0, len as u64, need).unwrap();
                pinned.write(0, &packet).unwrap();
                until(|| last(4088) == round);
            }
        });
        for round in 1..=rounds {
            until(|| last(len - 8) == round);
            let mut seen = vec![0; len];
            shared.read(0, &mut seen).unwrap();
            assert_eq!(seen, round.to_ne_bytes().repeat(len / 8));
            shared.write(4088, &round.to_ne_bytes()).unwrap();
        }
    });
}

#[test]
fn peers_and_program_add_without_loss() {
    let b = bench();
    let each = 5000_u64;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..each {
                    let need = Access::REMOTE_ATOMIC;
                    let pinned = b.remote(b.mr.rkey, IOVA + 8, 8, need).unwrap();
                    pinned.fetch_add(0, 1).unwrap();
                }
            });
        }
        for _ in 0..each {
            b.buffer.fetch_add(8, 1).unwrap();
        }
    });
    assert_eq!(b.buffer.fetch_add(8, 0), Ok(3 * each));
}

#[test]
fn regions_come_and_go_in_many_threads() {
    let memory = Memory::new(Config { key_seed: 9, ..Config::default() });
    let pd = memory.alloc_pd().unwrap();
    let (_, backing) = buffer(8);
    let first = memory.reg_mr(pd, backing, 0, Access::REMOTE_READ).unwrap();
    let live: Vec<MrInfo> = thread::scope(|scope| {
        let work = || {
            let reg = |_| {
                let old = memory.reg_mr(pd, buffer(8).1, 0, Access::REMOTE_READ).unwrap();
                let new = memory.reg_mr(pd, buffer(8).1, 0, Access::REMOTE_READ).unwrap();
                memory.dereg_mr(old.id).unwrap();
                // Another thread may have the index by now, with a later generation.
                assert!(memory.remote(pd, QPN, old.rkey, 0, 8, Access::REMOTE_READ).is_err());
                assert!(memory.remote(pd, QPN, first.rkey, 0, 8, Access::REMOTE_READ).is_ok());
                new
            };
            (0..2000).map(reg).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let keys: HashSet<u32> = live.iter().map(|mr| mr.rkey >> 8).collect();
    assert_eq!(keys.len(), live.len());
    for mr in &live {
        assert!(memory.remote(pd, QPN, mr.rkey, 0, 8, Access::REMOTE_READ).is_ok());
        memory.dereg_mr(mr.id).unwrap();
    }
    assert_eq!(memory.mr_count(), 1);
}

#[test]
fn binding_and_deregistering_race_to_a_clean_end() {
    for _ in 0..300 {
        let b = bench();
        let (mw, _) = b.memory.alloc_mw(b.pd, MwType::Type1).unwrap();
        let bind = b.bind_of(mw, IOVA, 8, Access::REMOTE_READ);
        let (bound, deregistered) = thread::scope(|scope| {
            let binding = scope.spawn(|| b.memory.bind_mw(&bind));
            let deregistered = b.memory.dereg_mr(b.mr.id);
            (binding.join().unwrap(), deregistered)
        });
        assert_ne!(bound.is_ok(), deregistered.is_ok(), "one of both wins");
    }
}
