//! Gather and scatter.

use super::*;

fn flat(gather: &Gather) -> Vec<u8> {
    let mut copied = vec![0xee; gather.len() + 1];
    assert_eq!(gather.copy_to(&mut copied), gather.len());
    assert_eq!(copied.pop(), Some(0xee));
    let mut chunked = Vec::new();
    gather.for_each_chunk(|chunk| {
        assert!(!chunk.is_empty() && chunk.len() <= 1024);
        chunked.extend_from_slice(chunk);
    });
    assert_eq!(chunked, copied);
    let pieces: Vec<usize> = gather.pieces().map(|piece| piece.len()).collect();
    assert!(pieces.len() <= MAX_SGE && !pieces.contains(&0));
    assert_eq!(pieces.iter().sum::<usize>(), gather.len());
    assert_eq!(gather.is_empty(), copied.is_empty());
    copied
}

/// A region whose byte n is n.
fn counted() -> Bench {
    let b = bench();
    b.buffer.write(0, &(0..64).collect::<Vec<u8>>()).unwrap();
    b
}

#[test]
fn a_list_is_gathered_from_any_offset() {
    let b = counted();
    let sges = [b.sge(IOVA + 8, 4), b.sge(IOVA, 0), b.sge(IOVA + 32, 3), b.sge(IOVA + 60, 4)];
    let whole = [8, 9, 10, 11, 32, 33, 34, 60, 61, 62, 63];
    assert_eq!(Sge::total(&sges), 11);
    for offset in 0..=11 {
        for len in 0..=11 - offset {
            let gather = b.gather(&sges, offset as u64, len).unwrap();
            assert_eq!(flat(&gather), whole[offset..offset + len], "{offset}+{len}");
        }
    }
}

#[test]
fn a_list_is_scattered_from_any_offset() {
    for offset in 0..=11 {
        for len in 0..=11 - offset {
            let b = bench();
            let sges = [b.sge(IOVA + 8, 4), b.sge(IOVA, 0), b.sge(IOVA + 32, 7)];
            let data: Vec<u8> = (1..).take(len).collect();
            b.scatter(&sges, offset as u64, &data).unwrap();
            let places = (8..12).chain(32..39).skip(offset);
            let mut want = [0; 64];
            places.zip(&data).for_each(|(place, byte)| want[place] = *byte);
            assert_eq!(bytes(&b.buffer), want, "{offset}+{len}");
        }
    }
}

#[test]
fn pieces_point_at_the_registered_bytes() {
    let b = bench();
    let gather = b.gather(&[b.sge(IOVA + 8, 4), b.sge(IOVA + 32, 8)], 1, 9).unwrap();
    let base = b.buffer.as_ptr().addr();
    let pieces: Vec<_> =
        gather.pieces().map(|piece| (piece.as_ptr().addr() - base, piece.len())).collect();
    assert_eq!(pieces, [(9, 3), (32, 6)]);
}

#[test]
fn the_list_must_hold_the_data() {
    let b = bench();
    let sges = [b.sge(IOVA, 4), b.sge(IOVA + 8, 4)];
    let short = |offset, len, capacity| KeyError::ListTooShort { offset, len, capacity };
    assert_eq!(b.gather(&sges, 0, 9).unwrap_err(), short(0, 9, 8));
    assert_eq!(b.gather(&sges, 8, 1).unwrap_err(), short(8, 1, 8));
    assert_eq!(b.gather(&sges, u64::MAX, 1).unwrap_err(), short(u64::MAX, 1, 8));
    assert_eq!(b.gather(&[], 0, 1).unwrap_err(), short(0, 1, 0));
    assert_eq!(b.scatter(&sges, 5, b"1234"), Err(short(5, 4, 8)));
    assert_eq!(bytes(&b.buffer), [0; 64], "nothing was placed");
    assert!(b.gather(&[], 0, 0).unwrap().is_empty());
    assert_eq!(b.scatter(&[], 0, b""), Ok(()));
}

#[test]
fn lists_have_at_most_32_elements() {
    let b = counted();
    let sges: Vec<Sge> = (0..33).map(|i| b.sge(IOVA + i, 1)).collect();
    let gather = b.gather(&sges[..32], 0, 32).unwrap();
    assert_eq!(flat(&gather), (0..32).collect::<Vec<u8>>());
    assert_eq!(gather.pieces().count(), 32);
    let many = KeyError::TooManySges { got: 33, max: 32 };
    assert_eq!(b.gather(&sges, 0, 1).unwrap_err(), many);
    assert_eq!(b.scatter(&sges, 0, b"x"), Err(many));
    assert_eq!(b.scatter(&sges[..32], 0, &[7; 32]), Ok(()));
    assert_eq!(&bytes(&b.buffer)[..33], [[7; 32].as_slice(), &[32]].concat());
}

#[test]
fn empty_elements_are_never_checked() {
    let b = counted();
    let odd = Sge { addr: u64::MAX, length: 0, lkey: 0xdead_beef };
    let none = Sge::default();
    let sges = [odd, b.sge(IOVA, 2), none, b.sge(IOVA + 4, 2), odd];
    assert_eq!(flat(&b.gather(&sges, 0, 4).unwrap()), [0, 1, 4, 5]);
    assert_eq!(b.scatter(&sges, 0, b"abcd"), Ok(()));
    assert!(b.gather(&[none, odd], 0, 0).is_ok());
}

#[test]
fn elements_that_are_not_touched_are_not_checked() {
    let b = counted();
    let bad = Sge { addr: 0, length: 4, lkey: 0xdead_be00 };
    let sges = [bad, b.sge(IOVA, 4), bad];
    assert_eq!(flat(&b.gather(&sges, 4, 4).unwrap()), [0, 1, 2, 3]);
    let unknown = KeyError::UnknownKey { key: bad.lkey };
    assert_eq!(b.gather(&sges, 3, 2).unwrap_err(), unknown);
    assert_eq!(b.gather(&sges, 7, 2).unwrap_err(), unknown);
}

#[test]
fn all_elements_are_checked_before_any_byte_is_placed() {
    let b = bench();
    let sges = [b.sge(IOVA, 4), b.sge(IOVA + 62, 4)];
    let range = b.scatter(&sges, 0, &[1; 8]).unwrap_err();
    assert!(matches!(range, KeyError::Range { addr: 0x103e, len: 4, .. }));
    assert_eq!(bytes(&b.buffer), [0; 64]);
    assert_eq!(b.scatter(&sges, 0, &[1; 6]), Ok(()), "only what is touched must be within");
}

#[test]
fn elements_may_be_of_several_regions() {
    let b = bench();
    let (other, backing) = buffer(8);
    let mr = b.memory.reg_mr(b.pd, backing, 0x40, Access::LOCAL_WRITE).unwrap();
    let sges = [b.sge(IOVA + 62, 2), Sge { addr: 0x44, length: 4, lkey: mr.lkey }];
    b.scatter(&sges, 0, b"abcdef").unwrap();
    assert_eq!(&bytes(&b.buffer)[61..], b"\0ab");
    assert_eq!(&bytes(&other), b"\0\0\0\0cdef");
    let gather = b.gather(&sges, 1, 4).unwrap();
    assert_eq!(flat(&gather), b"bcde");
    let busy = |mr| Err(MemoryError::MrBusy { mr });
    assert_eq!(b.memory.try_dereg_mr(mr.id), busy(mr.id), "each piece pins its region");
    assert_eq!(b.memory.try_dereg_mr(b.mr.id), busy(b.mr.id));
}

#[test]
fn a_payload_is_filled_again_in_place() {
    let b = counted();
    let mut gather = Gather::inline(b"old").unwrap();
    b.memory.gather_into(b.pd, &[b.sge(IOVA, 4)], 1, 2, &mut gather).unwrap();
    assert_eq!(flat(&gather), [1, 2]);
    b.memory.gather_into(b.pd, &[b.sge(IOVA + 8, 4)], 0, 4, &mut gather).unwrap();
    assert_eq!(flat(&gather), [8, 9, 10, 11]);
    let pinned = b.remote(b.mr.rkey, IOVA + 16, 8, Access::REMOTE_READ).unwrap();
    pinned.slice_into(2, 3, &mut gather).unwrap();
    assert_eq!(flat(&gather), [18, 19, 20]);
    assert!(pinned.slice_into(2, 7, &mut gather).is_err());
    drop(pinned);
    assert_eq!(flat(&gather), []);

    // The first element is right, the second is not: the first is let go.
    let sges = [b.sge(IOVA, 4), b.sge(0, 4)];
    assert!(b.memory.gather_into(b.pd, &sges, 0, 8, &mut gather).is_err());
    assert_eq!(flat(&gather), []);
    assert_eq!(b.memory.try_dereg_mr(b.mr.id), Ok(()), "nothing is pinned");
}

#[test]
fn inline_bytes_need_no_region() {
    let gather = Gather::inline(b"inline").unwrap();
    assert_eq!(flat(&gather), b"inline");
    assert_eq!(gather.pieces().count(), 1);
    let long = [7; MAX_INLINE];
    assert_eq!(flat(&Gather::inline(&long).unwrap()), long);
    let too_long = Gather::inline(&[7; MAX_INLINE + 1]).unwrap_err();
    assert_eq!(too_long, KeyError::InlineTooLong { got: MAX_INLINE + 1, max: MAX_INLINE });
    assert_eq!(flat(&Gather::inline(b"").unwrap()), b"");
    assert_eq!(Gather::default().pieces().count(), 0);
}

#[test]
fn a_copy_ends_where_the_target_ends() {
    let b = counted();
    let gather = b.gather(&[b.sge(IOVA, 4), b.sge(IOVA + 8, 4)], 0, 8).unwrap();
    let inline = Gather::inline(&[0, 1, 2, 3, 8, 9]).unwrap();
    for gather in [&gather, &inline] {
        let mut six = [0; 6];
        assert_eq!(gather.copy_to(&mut six), 6);
        assert_eq!(six, [0, 1, 2, 3, 8, 9]);
        let mut three = [0; 3];
        assert_eq!(gather.copy_to(&mut three), 3);
        assert_eq!(three, [0, 1, 2]);
        assert_eq!(gather.copy_to(&mut []), 0);
    }
}

#[test]
fn long_payloads_come_in_chunks() {
    let b = bench();
    let (long, backing) = buffer(5000);
    let data: Vec<u8> = (0..5000_u32).map(|i| i.to_le_bytes()[0] ^ i.to_le_bytes()[1]).collect();
    long.write(0, &data).unwrap();
    let mr = b.memory.reg_mr(b.pd, backing, 0, Access::LOCAL_WRITE).unwrap();
    let sge = |addr, length| Sge { addr, length, lkey: mr.lkey };
    for len in [1, 1023, 1024, 1025, 2048, 4096] {
        let gather = b.gather(&[sge(3, 5), sge(8, 4989)], 0, len).unwrap();
        assert_eq!(flat(&gather), data[3..3 + len]);
    }
}

#[test]
fn a_null_region_reads_as_zeros_and_keeps_nothing() {
    let memory = Memory::new(Config::default());
    let pd = memory.alloc_pd().unwrap();
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
    let mr = memory.reg_mr(pd, Backing::null(), 0, access).unwrap();
    let sge = |addr, length| [Sge { addr, length, lkey: mr.lkey }];
    for addr in [0, 0x1234, u64::MAX - 64] {
        let remote = memory.remote(pd, 1, mr.rkey, addr & !7, 8, Access::REMOTE_WRITE).unwrap();
        remote.write(0, b"vanishes").unwrap();
        let mut read = [7; 8];
        remote.read(0, &mut read).unwrap();
        assert_eq!(read, [0; 8]);
        let atomic = memory.remote(pd, 1, mr.rkey, addr & !7, 8, Access::REMOTE_ATOMIC).unwrap();
        assert_eq!((atomic.fetch_add(0, 5), atomic.fetch_add(0, 5)), (Ok(0), Ok(0)));
        let gather = memory.gather(pd, &sge(addr, 20), 0, 20).unwrap();
        let mut sent = [7; 20];
        gather.copy_to(&mut sent);
        assert_eq!(sent, [0; 20]);
        assert!(gather.pieces().all(|piece| piece.as_ptr().is_null()));
        memory.scatter(pd, &sge(addr, 20), 0, &[1; 20]).unwrap();
    }
}
