//! Protection domains and limits.

use super::*;

fn small(max_pd: u32, max_mr: u32, max_mw: u32) -> Memory {
    Memory::new(Config { key_seed: 0, max_pd, max_mr, max_mw })
}

#[test]
fn a_pd_in_use_is_not_deallocated() {
    let memory = small(4, 4, 4);
    let pd = memory.alloc_pd().unwrap();
    let busy = |users| Err(MemoryError::PdBusy { pd, users });

    let mr = memory.reg_mr(pd, buffer(8).1, 0, Access::empty()).unwrap();
    assert_eq!(memory.dealloc_pd(pd), busy(1));
    let (mw, _) = memory.alloc_mw(pd, MwType::Type1).unwrap();
    memory.hold_pd(pd).unwrap();
    assert_eq!(memory.dealloc_pd(pd), busy(3));

    memory.dereg_mr(mr.id).unwrap();
    assert_eq!(memory.dealloc_pd(pd), busy(2));
    memory.dealloc_mw(mw).unwrap();
    assert_eq!(memory.dealloc_pd(pd), busy(1));
    memory.release_pd(pd).unwrap();
    assert_eq!(memory.release_pd(pd), Err(MemoryError::PdNotHeld(pd)));
    assert_eq!(memory.dealloc_pd(pd), Ok(()));
}

#[test]
fn a_deallocated_pd_stays_unknown() {
    let memory = small(1, 4, 4);
    let old = memory.alloc_pd().unwrap();
    memory.dealloc_pd(old).unwrap();
    let new = memory.alloc_pd().unwrap();
    assert_eq!((new.index(), new.serial), (old.index(), old.serial + 1));

    let unknown = MemoryError::UnknownPd(old);
    assert_eq!(memory.dealloc_pd(old), Err(unknown));
    assert_eq!(memory.hold_pd(old), Err(unknown));
    assert_eq!(memory.release_pd(old), Err(unknown));
    assert_eq!(memory.alloc_mw(old, MwType::Type1), Err(unknown));
    assert_eq!(memory.reg_mr(old, buffer(8).1, 0, Access::empty()), Err(unknown));
    assert_eq!((memory.mr_count(), memory.mw_count()), (0, 0));
    assert_eq!(memory.dealloc_pd(new), Ok(()));
}

#[test]
fn limits_hold_and_are_freed() {
    let memory = small(2, 2, 1);
    let pd = memory.alloc_pd().unwrap();
    let other = memory.alloc_pd().unwrap();
    let limit = |what, max| MemoryError::Limit { what, max };
    assert_eq!(memory.alloc_pd(), Err(limit("protection domains", 2)));
    memory.dealloc_pd(other).unwrap();
    assert!(memory.alloc_pd().is_ok());

    let reg = || memory.reg_mr(pd, buffer(8).1, 0, Access::empty());
    let first = reg().unwrap();
    reg().unwrap();
    assert_eq!(reg(), Err(limit("memory regions", 2)));
    let (mw, _) = memory.alloc_mw(pd, MwType::Type2B).unwrap();
    assert_eq!(memory.alloc_mw(pd, MwType::Type2B), Err(limit("memory windows", 1)));
    assert_eq!((memory.mr_count(), memory.mw_count()), (2, 1));

    memory.dereg_mr(first.id).unwrap();
    memory.dealloc_mw(mw).unwrap();
    assert_eq!((memory.mr_count(), memory.mw_count()), (1, 0));
    assert!(reg().is_ok());
    assert!(memory.alloc_mw(pd, MwType::Type2B).is_ok());
}

#[test]
fn limits_beyond_the_keys_are_lowered() {
    let config = Config { key_seed: 7, max_pd: u32::MAX, max_mr: u32::MAX, max_mw: u32::MAX };
    let memory = Memory::new(config);
    let usable = (1 << 24) - 2;
    assert_eq!(
        *memory.config(),
        Config { key_seed: 7, max_pd: 1 << 24, max_mr: usable, max_mw: 0 }
    );
    let both = Config { key_seed: 0, max_pd: 1, max_mr: 10, max_mw: u32::MAX };
    assert_eq!(Memory::new(both).config().max_mw, usable - 10);
}

#[test]
fn errors_say_what_was_wrong() {
    let b = bench();
    let unknown = b.memory.dereg_mr(no_mr()).unwrap_err();
    assert_eq!(unknown.to_string(), "MR 16777200.0 does not exist");
    let busy = b.memory.dealloc_pd(b.pd).unwrap_err();
    assert_eq!(busy.to_string(), "PD 0.0 is in use by 1 objects; destroy them first");
    let range = b.remote(b.mr.rkey, IOVA + 60, 8, Access::REMOTE_READ).unwrap_err();
    let key = b.mr.rkey;
    let said = format!("key {key:#010x}: 0x103c+0x8 is not within 0x1000+0x40");
    assert_eq!(range.to_string(), said);
    let other = MwId { index: 3, serial: 1 };
    assert_eq!(KeyError::UnknownMw { mw: other }.to_string(), "MW 3.1 does not exist");
}
