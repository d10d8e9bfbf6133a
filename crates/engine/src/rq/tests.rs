use super::*;

const CAPACITY: u64 = 19;

fn post(ring: &mut Ring, wr_id: u64) -> Result<(), PostError> {
    let sges = [Sge { addr: wr_id, length: 1, lkey: 7 }, Sge { addr: !wr_id, length: 2, lkey: 8 }];
    ring.post(&RecvWr { wr_id, sges: &sges })
}

fn take(ring: &mut Ring) -> Option<u64> {
    let mut taken = Taken::new(2);
    ring.take(&mut taken).then(|| {
        let addresses: Vec<u64> = taken.sges().iter().map(|s| s.addr).collect();
        assert_eq!(addresses, [taken.wr_id, !taken.wr_id], "it has the SGEs it was posted with");
        taken.wr_id
    })
}

#[test]
fn a_queue_that_grows_keeps_what_waits_in_order() {
    // Some are taken before it fills up, so that it grows from any place in the ring.
    for before in 0..10 {
        let mut ring = Ring::new(19, 2);
        for wr_id in 0..before {
            post(&mut ring, wr_id).unwrap();
            assert_eq!(take(&mut ring), Some(wr_id));
        }
        (100..100 + CAPACITY).for_each(|wr_id| post(&mut ring, wr_id).unwrap());
        assert_eq!(post(&mut ring, 0), Err(PostError::Full { capacity: 19 }));
        for wr_id in 100..200 {
            assert_eq!(take(&mut ring), Some(wr_id));
            post(&mut ring, wr_id + CAPACITY).unwrap();
        }
        (200..200 + CAPACITY).for_each(|wr_id| assert_eq!(take(&mut ring), Some(wr_id)));
        assert_eq!(take(&mut ring), None);
    }
}
