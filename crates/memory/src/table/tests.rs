//! Where slots stand.

use super::*;

#[test]
fn buckets_tile_the_indexes() {
    let mut next = 0;
    for bucket in 0..BUCKETS {
        assert_eq!(bucket_start(bucket), next);
        let last = next + u32::try_from(bucket_len(bucket)).unwrap() - 1;
        assert_eq!(place(next), (bucket, 0));
        assert_eq!(place(last), (bucket, bucket_len(bucket) - 1));
        next = last + 1;
    }
    assert_eq!(next, INDEXES);
}

/// Values of the finalizer computed apart from this code.
#[test]
fn mixing_is_the_known_function() {
    assert_eq!(mix(0), 0);
    assert_eq!(mix(1), 0x514e_28b7);
    assert_eq!(mix(u32::MAX), 0x81f1_6f39);
    assert_eq!(mix(0xdead_beef), 0x0de5_c6a9);
}
