use super::*;
use crate::{Config, Context};

#[test]
fn a_part_that_a_region_does_not_have_is_refused_however_large_it_is() {
    let pd = Context::open(&Config::default()).unwrap().alloc_pd().unwrap();
    let mr = pd.register(4096, Access::LOCAL_WRITE).unwrap();
    for part in [0..4097, 4096..4097, 0..usize::MAX, 1..1 << 50, usize::MAX - 1..usize::MAX] {
        let error = mr.to_vec(part.clone()).unwrap_err();
        assert!(matches!(error, Error::Memory(_)), "{part:?}: {error}");
    }
    assert_eq!(mr.to_vec(0..4096).unwrap().len(), 4096);
}

/// A region at the very top of the addresses: a part that would end beyond them is one that fails
/// when it is used.
#[test]
fn a_part_beyond_the_last_address_is_no_panic() {
    let pd = Context::open(&Config::default()).unwrap().alloc_pd().unwrap();
    let buffer = Buffer::zeroed(4096).unwrap();
    let mr = pd.register_at(buffer, u64::MAX - 4096, Access::LOCAL_WRITE).unwrap();
    assert_eq!(mr.sge(4000..4096).addr, u64::MAX - 96);
    let beyond = mr.sge(8192..8200);
    assert!(beyond.addr < mr.addr(), "{beyond:?}");
}
