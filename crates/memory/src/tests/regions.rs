//! Regions: keys, generations, re-registration.

use super::*;

#[test]
fn a_peer_writes_and_a_send_reads_it() {
    let b = bench();
    let key = b.mr.rkey;
    let pinned = b.memory.remote(b.pd, 1, key, IOVA + 8, 5, Access::REMOTE_WRITE).unwrap();
    pinned.write(0, b"hello").unwrap();
    let gather = b.memory.gather(b.pd, &[b.sge(IOVA, 16)], 8, 5).unwrap();
    let mut sent = [0; 5];
    assert_eq!(gather.copy_to(&mut sent), 5);
    assert_eq!(&sent, b"hello");
    assert_eq!(&b.bytes()[8..13], b"hello");
}
