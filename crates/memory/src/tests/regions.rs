//! Regions: registering, ranges, PDs, handles, deregistering.

use super::*;

#[test]
fn a_peer_writes_and_a_send_reads_it() {
    let b = bench();
    b.remote(b.mr.rkey, IOVA + 8, 5, Access::REMOTE_WRITE).unwrap().write(0, b"hello").unwrap();
    let gather = b.gather(&[b.sge(IOVA, 16)], 8, 5).unwrap();
    let mut sent = [0; 5];
    assert_eq!(gather.copy_to(&mut sent), 5);
    assert_eq!(&sent, b"hello");
    assert_eq!(&bytes(&b.buffer)[8..13], b"hello");
    assert_eq!(b.memory.query_mr(b.mr.id), Ok(b.mr));
    assert_eq!((b.mr.iova, b.mr.length, b.mr.pd), (IOVA, LEN, b.pd));
    assert_eq!((b.mr.access, b.mr.valid, b.mr.windows), (full(), true, 0));
}

/// Addresses and lengths around every edge of a region, and whether they are within.
fn edges(start: u64, length: u64) -> Vec<(u64, u64, bool)> {
    let end = start.wrapping_add(length);
    vec![
        (start, length, true),
        (start, 1, true),
        (end.wrapping_sub(1), 1, true),
        (start.wrapping_add(1), length - 1, true),
        (start, length + 1, false),
        (start.wrapping_add(1), length, false),
        (end.wrapping_sub(1), 2, false),
        (end, 1, false),
        (start.wrapping_sub(1), 1, false),
        (start.wrapping_sub(1), 2, false),
        (start.wrapping_sub(1), length + 2, false),
        (start, u64::MAX, false),
        (start.wrapping_add(1), u64::MAX, false),
        (u64::MAX, u64::MAX, false),
        (end.wrapping_sub(1), u64::MAX, false),
    ]
}

#[test]
fn remote_ranges_are_checked_at_every_edge() {
    // The last one ends at the end of the address space.
    for start in [0, 1, IOVA, 1 << 63, u64::MAX - 63] {
        let b = bench();
        let mr = b.memory.reg_mr(b.pd, buffer(64).1, start, full()).unwrap();
        let key = mr.rkey;
        for (addr, len, within) in edges(start, LEN) {
            let range = KeyError::Range { key, addr, len, start, length: LEN };
            let want = if within { Ok(len) } else { Err(range) };
            let got = b.remote(key, addr, len, Access::REMOTE_READ).map(|pinned| pinned.len());
            assert_eq!(got, want, "region at {start:#x}");
        }
    }
}

#[test]
fn local_ranges_are_checked_at_every_edge() {
    for start in [0, IOVA, u64::MAX - 63] {
        let b = bench();
        let (buffer, backing) = buffer(64);
        let mr = b.memory.reg_mr(b.pd, backing, start, Access::LOCAL_WRITE).unwrap();
        for (addr, len, within) in edges(start, LEN) {
            let Ok(length) = u32::try_from(len) else { continue };
            let sge = Sge { addr, length, lkey: mr.lkey };
            let size = length as usize;
            let gathered = b.gather(&[sge], 0, size).map(|gather| gather.len());
            let range = KeyError::Range { key: mr.lkey, addr, len, start, length: LEN };
            assert_eq!(gathered, if within { Ok(size) } else { Err(range) });
            let scattered = b.scatter(&[sge], 0, &vec![1; size]);
            assert_eq!(scattered, if within { Ok(()) } else { Err(range) });
        }
        assert_eq!(bytes(&buffer), [1; 64]);
    }
}

#[test]
fn an_element_past_the_end_of_the_address_space_is_refused() {
    let b = bench();
    let backing = buffer(64).1;
    let mr = b.memory.reg_mr(b.pd, backing, u64::MAX - 63, Access::LOCAL_WRITE).unwrap();
    let sge = Sge { addr: u64::MAX - 7, length: 64, lkey: mr.lkey };
    assert!(b.gather(&[sge], 0, 8).is_ok());
    let (key, addr, start) = (mr.lkey, u64::MAX - 7, u64::MAX - 63);
    let range = |addr, len| Err(KeyError::Range { key, addr, len, start, length: LEN });
    assert_eq!(b.gather(&[sge], 0, 9).map(drop), range(addr, 9));
    // `addr + 8` and `addr + 9` would wrap to 0 and 1.
    assert_eq!(b.gather(&[sge], 8, 1).map(drop), range(addr, 9));
    assert_eq!(b.gather(&[sge], 9, 4).map(drop), range(addr, 13));
}

#[test]
fn zero_length_regions_hold_nothing() {
    let b = bench();
    let mr = b.memory.reg_mr(b.pd, buffer(0).1, IOVA, full()).unwrap();
    let range = |len| KeyError::Range { key: mr.rkey, addr: IOVA, len, start: IOVA, length: 0 };
    assert_eq!(b.remote(mr.rkey, IOVA, 1, Access::REMOTE_READ).unwrap_err(), range(1));
    assert!(b.remote(mr.rkey, IOVA, 0, Access::REMOTE_READ).is_ok());
    let whole = b.memory.remote_all(b.pd, QPN, mr.rkey, Access::FLUSH_GLOBAL).unwrap();
    assert!(whole.is_empty());
}

#[test]
fn regions_must_end_within_the_address_space() {
    let b = bench();
    let reg = |addr, len| b.memory.reg_mr(b.pd, buffer(len).1, addr, Access::empty());
    assert!(reg(u64::MAX - 7, 8).is_ok());
    assert!(reg(u64::MAX, 0).is_ok());
    let refused = |addr, len| Err(MemoryError::AddressOverflow { addr, len });
    assert_eq!(reg(u64::MAX - 7, 9), refused(u64::MAX - 7, 9));
    assert_eq!(reg(u64::MAX, 2), refused(u64::MAX, 2));
}

#[test]
fn zero_based_regions_start_at_zero() {
    let b = bench();
    let access = Access::REMOTE_READ | Access::ZERO_BASED;
    let mr = b.memory.reg_mr(b.pd, buffer(64).1, IOVA, access).unwrap();
    assert_eq!(mr.iova, 0);
    assert!(b.remote(mr.rkey, 0, 64, Access::REMOTE_READ).is_ok());
    assert!(b.remote(mr.rkey, 63, 2, Access::REMOTE_READ).is_err());
    assert!(b.remote(mr.rkey, IOVA, 1, Access::REMOTE_READ).is_err());
    let far = b.memory.reg_mr(b.pd, buffer(64).1, u64::MAX, access);
    assert_eq!(far.unwrap().iova, 0, "the iova given does not matter");
}

/// IBA C10-56
#[test]
fn another_pd_is_refused() {
    let b = bench();
    let used = b.memory.alloc_pd().unwrap();
    let wrong = KeyError::WrongPd { key: b.mr.rkey, owner: b.pd, used };
    let sges = [b.sge(IOVA, 1)];
    assert_eq!(b.memory.gather(used, &sges, 0, 1).map(drop), Err(wrong));
    assert_eq!(b.memory.scatter(used, &sges, 0, b"x"), Err(wrong));
    let remote = b.memory.remote(used, QPN, b.mr.rkey, IOVA, 1, Access::REMOTE_READ);
    assert_eq!(remote.map(drop), Err(wrong));
}

/// IBA C9-88
#[test]
fn zero_length_requests_check_neither_key_nor_address() {
    let b = bench();
    let empty = b.remote(0xdead_beef, 77, 0, Access::all()).unwrap();
    assert!(empty.is_empty());
    assert_eq!(empty.len(), 0);
    assert_eq!(empty.read(0, &mut []), Ok(()));
    assert_eq!(empty.write(0, &[]), Ok(()));
    assert!(empty.read(0, &mut [0]).is_err());
    assert!(empty.write(0, &[0]).is_err());
    assert!(empty.fetch_add(0, 1).is_err());
    assert!(empty.slice(0, 0).unwrap().is_empty());
    assert!(empty.slice(0, 1).is_err());
}

#[test]
fn a_part_of_a_buffer_is_all_that_a_region_reaches() {
    let b = bench();
    let whole = Buffer::zeroed(64).unwrap();
    let backing = Backing::part(Arc::clone(&whole), 16, 8).unwrap();
    assert_eq!((backing.len(), backing.is_empty()), (8, false));
    let mr = b.memory.reg_mr(b.pd, backing, 0, full()).unwrap();
    b.remote(mr.rkey, 0, 8, Access::REMOTE_WRITE).unwrap().write(0, &[7; 8]).unwrap();
    assert!(b.remote(mr.rkey, 0, 9, Access::REMOTE_WRITE).is_err());
    let mut want = [0; 64];
    want[16..24].fill(7);
    assert_eq!(bytes(&whole), want);
    let past = Backing::part(Arc::clone(&whole), 60, 5).map(drop);
    assert_eq!(past, Err(MemoryError::BufferRange { offset: 60, len: 5, have: 64 }));
    assert!(Backing::part(Arc::clone(&whole), 64, 0).unwrap().is_empty());
    assert!(Backing::part(whole, usize::MAX, 2).is_err());
}

#[test]
fn deregistration_ends_access_and_frees_the_memory() {
    let b = bench();
    assert_eq!(Arc::strong_count(&b.buffer), 2);
    b.memory.dereg_mr(b.mr.id).unwrap();
    assert_eq!(Arc::strong_count(&b.buffer), 1);
    assert_eq!(b.refusal(b.mr.rkey), KeyError::UnknownKey { key: b.mr.rkey });
    let unknown = MemoryError::UnknownMr(b.mr.id);
    assert_eq!(b.memory.dereg_mr(b.mr.id), Err(unknown));
    assert_eq!(b.memory.try_dereg_mr(b.mr.id), Err(unknown));
    assert_eq!(b.memory.query_mr(b.mr.id), Err(unknown));
    assert_eq!(b.memory.rereg_mr(b.mr.id, Rereg::default()), Err(unknown));
}

#[test]
fn a_handle_is_of_one_registration_and_one_kind() {
    let memory = Memory::new(Config { key_seed: 0, max_pd: 1, max_mr: 1, max_mw: 1 });
    let pd = memory.alloc_pd().unwrap();
    let reg = || memory.reg_mr(pd, buffer(8).1, 0, Access::empty()).unwrap();
    let first = reg();
    memory.dereg_mr(first.id).unwrap();
    let again = std::iter::repeat_with(|| {
        let mr = reg();
        assert_eq!(memory.query_mr(first.id), Err(MemoryError::UnknownMr(first.id)));
        assert_eq!(memory.dereg_mr(first.id), Err(MemoryError::UnknownMr(first.id)));
        memory.dereg_mr(mr.id).unwrap();
        mr.id
    });
    let again = again.take(300).find(|id| id.index() == first.id.index()).unwrap();
    assert_ne!(again, first.id);

    let (mw, _) = memory.alloc_mw(pd, MwType::Type1).unwrap();
    let as_mr = MrId { index: mw.index, serial: mw.serial };
    assert_eq!(memory.dereg_mr(as_mr), Err(MemoryError::UnknownMr(as_mr)));
    let mr = reg();
    let as_mw = MwId { index: mr.id.index, serial: mr.id.serial };
    assert_eq!(memory.dealloc_mw(as_mw), Err(MemoryError::UnknownMw(as_mw)));
    assert_eq!(memory.query_mw(as_mw), Err(MemoryError::UnknownMw(as_mw)));
    assert_eq!(memory.dereg_mr(no_mr()), Err(MemoryError::UnknownMr(no_mr())));
}

#[test]
fn only_an_idle_region_is_deregistered_without_waiting() {
    let b = bench();
    let busy = Err(MemoryError::MrBusy { mr: b.mr.id });
    let pinned = b.remote(b.mr.rkey, IOVA, 8, Access::REMOTE_READ).unwrap();
    assert_eq!(b.memory.try_dereg_mr(b.mr.id), busy);
    let gather = pinned.slice(0, 4).unwrap();
    drop(pinned);
    assert_eq!(b.memory.try_dereg_mr(b.mr.id), busy, "the payload is a pin of its own");
    assert!(b.remote(b.mr.rkey, IOVA, 8, Access::REMOTE_READ).is_ok(), "nothing changed");
    drop(gather);
    let gather = b.gather(&[b.sge(IOVA, 8)], 0, 8).unwrap();
    assert_eq!(b.memory.try_dereg_mr(b.mr.id), busy);
    drop(gather);
    assert_eq!(b.memory.try_dereg_mr(b.mr.id), Ok(()));
}
