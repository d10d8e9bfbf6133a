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
