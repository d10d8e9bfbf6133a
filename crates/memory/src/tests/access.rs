//! Access flags.

use super::*;

#[test]
fn bits_are_those_of_libibverbs() {
    let bits = [
        (Access::LOCAL_WRITE, 1),
        (Access::REMOTE_WRITE, 2),
        (Access::REMOTE_READ, 4),
        (Access::REMOTE_ATOMIC, 8),
        (Access::MW_BIND, 16),
        (Access::ZERO_BASED, 32),
        (Access::ON_DEMAND, 64),
        (Access::HUGETLB, 128),
        (Access::FLUSH_GLOBAL, 256),
        (Access::FLUSH_PERSISTENT, 512),
        (Access::RELAXED_ORDERING, 1 << 20),
    ];
    for (flag, bit) in bits {
        assert_eq!(flag.bits(), bit, "{flag:?}");
    }
    assert_eq!(Access::all().bits(), bits.iter().map(|(_, bit)| bit).sum::<u32>());
    assert_eq!(Access::REMOTE.bits(), 2 + 4 + 8 + 256 + 512);
}

#[test]
fn unknown_flags_are_refused_unless_optional() {
    assert_eq!(Access::from_verbs(1 | 1 << 20), Ok(Access::LOCAL_WRITE | Access::RELAXED_ORDERING));
    assert_eq!(Access::from_verbs(4 | 1 << 29 | 1 << 21), Ok(Access::REMOTE_READ));
    for unknown in [1 << 10, 1 << 19, 1 << 30, 1 << 31] {
        assert_eq!(Access::from_verbs(1 | unknown), Err(MemoryError::UnknownAccess { unknown }));
    }
}

/// include/rdma/ib_verbs.h, `ib_check_mr_access`
#[test]
fn remote_write_and_atomic_need_local_write() {
    let b = bench();
    for remote in [Access::REMOTE_WRITE, Access::REMOTE_ATOMIC, Access::all()] {
        let access = remote - Access::LOCAL_WRITE;
        let refused = b.memory.reg_mr(b.pd, buffer(8).1, 0, access);
        assert_eq!(refused, Err(MemoryError::NeedsLocalWrite { access }));
        assert!(b.memory.reg_mr(b.pd, buffer(8).1, 0, remote | Access::LOCAL_WRITE).is_ok());
    }
    let harmless = Access::REMOTE_READ | Access::MW_BIND | Access::FLUSH_GLOBAL;
    assert!(b.memory.reg_mr(b.pd, buffer(8).1, 0, harmless).is_ok());
    assert_eq!(b.memory.mr_count(), 5, "the refused ones left nothing behind");
}

#[test]
fn each_remote_right_is_asked_for_by_itself() {
    for right in Access::REMOTE.iter() {
        let with = bench_with(right | Access::LOCAL_WRITE);
        assert!(with.remote(with.mr.rkey, IOVA, 8, right).is_ok(), "{right:?}");
        let without = bench_with(full() - right);
        let have = without.mr.access;
        assert_eq!(
            without.remote(without.mr.rkey, IOVA, 8, right).map(drop),
            Err(KeyError::Rights { key: without.mr.rkey, need: right, have })
        );
    }
}

#[test]
fn scatter_needs_local_write_and_gather_nothing() {
    let b = bench_with(Access::REMOTE_READ);
    let sges = [b.sge(IOVA, 8)];
    assert!(b.gather(&sges, 0, 8).is_ok());
    let (key, need, have) = (b.mr.lkey, Access::LOCAL_WRITE, Access::REMOTE_READ);
    assert_eq!(b.scatter(&sges, 0, b"x"), Err(KeyError::Rights { key, need, have }));
    assert_eq!(bytes(&b.buffer), [0; 64]);
}
