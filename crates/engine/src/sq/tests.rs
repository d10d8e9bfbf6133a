use super::*;
use crate::reason::Rule;

const CAPACITY: usize = 19;

fn post(sq: &mut Sq, number: u8) -> Result<(), PostError> {
    let op = SendOp::Send { imm: None };
    let sges = [Sge { addr: number.into(), length: 1, lkey: 7 }; 2];
    let inline = [number; 3];
    if number.is_multiple_of(2) {
        return sq.post(&SendWr::new(number.into(), op, &sges), 2, None);
    }
    let flags = SendFlags::INLINE;
    let wr = SendWr { inline: &inline, flags, ..SendWr::new(number.into(), op, &[]) };
    sq.post(&wr, 3, None)
}

/// Whether the WQE posted as `number` still has the memory it was posted with.
fn is_whole(sq: &Sq, wqe: &Wqe, number: u8) -> bool {
    match sq.local(wqe) {
        Local::Sges(sges) => sges.len() == 2 && sges.iter().all(|s| s.addr == number.into()),
        Local::Inline(bytes) => bytes == [number; 3],
    }
}

#[test]
fn a_queue_that_grows_keeps_what_waits_in_order() {
    // Some are completed before it fills up, so that it grows from any place in the ring.
    for before in 0..10 {
        let mut sq = Sq::new(CAPACITY, 2, 3);
        for number in 0..before {
            post(&mut sq, number).unwrap();
            sq.pop().unwrap();
        }
        let numbers: Vec<u8> = (100..).take(CAPACITY).collect();
        numbers.iter().for_each(|&number| post(&mut sq, number).unwrap());
        let capacity = u32::try_from(CAPACITY).unwrap();
        assert_eq!(post(&mut sq, 0), Err(PostError::Full { capacity }));
        for (index, &number) in (u64::from(before)..).zip(&numbers) {
            let wqe = sq.get(index).unwrap();
            assert_eq!(wqe.wr_id, number.into());
            assert!(is_whole(&sq, wqe, number), "{number} after {before}");
        }
        // Once grown it goes round and round.
        for number in 0..100 {
            sq.pop().unwrap();
            post(&mut sq, number).unwrap();
            assert!(is_whole(&sq, sq.get(sq.end() - 1).unwrap(), number));
        }
    }
}

#[test]
fn the_oldest_failure_is_told() {
    let mut sq = Sq::new(4, 2, 3);
    (0..3).for_each(|number| post(&mut sq, number).unwrap());
    let why = |rule| (WcStatus::LocProtErr, Cause::new(rule));
    let fail = |sq: &mut Sq, index, rule| sq.fail(index, why(rule).0, why(rule).1);
    fail(&mut sq, 2, Rule::RetryExhausted);
    assert_eq!(sq.failure(), None, "those before it may still be done");
    // A retry of an earlier one fails too.
    fail(&mut sq, 1, Rule::RnrExhausted);
    fail(&mut sq, 2, Rule::RetryExhausted);
    sq.pop().unwrap();
    assert_eq!(sq.failure(), Some(why(Rule::RnrExhausted)));
    sq.clear();
    assert_eq!(sq.failure(), None);
    post(&mut sq, 3).unwrap();
    fail(&mut sq, 3, Rule::TooManyReads);
    assert_eq!(sq.failure(), Some(why(Rule::TooManyReads)), "what is gone does not count");
    fail(&mut sq, 9, Rule::Flushed);
    assert_eq!(sq.failure(), Some(why(Rule::TooManyReads)), "nor what was never posted");
}
