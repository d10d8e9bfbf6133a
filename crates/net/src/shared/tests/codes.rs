use super::super::message::{ANSWER, Answer, CAME, Came, PACKET, REQUEST, Request, UNSEEN};
use super::super::who::Holders;
use super::*;

#[test]
fn requests_and_answers_are_read_as_they_were_written() {
    for request in [
        Request::Take,
        Request::Who,
        Request::Mixed,
        Request::Claim(9),
        Request::Serve(0x0106_0000_1234),
        Request::Unserve(u64::MAX),
    ] {
        let mut bytes = [0xff; REQUEST];
        let len = request.write(&mut bytes);
        assert_eq!(Request::parse(&bytes[..len]), Some(request));
        for cut in 0..len {
            assert_eq!(Request::parse(&bytes[..cut]), None, "{request:?} cut to {cut}");
        }
    }
    let pids = std::array::from_fn(|slot| u32::try_from(slot).unwrap() * 7);
    for answer in [
        Answer::Slot(63, u64::MAX - 1),
        Answer::Full(pids),
        Answer::Who(pids, 5),
        Answer::Done,
        Answer::Refused,
        Answer::Failed(libc::ETOOMANYREFS),
    ] {
        let mut bytes = [0xff; ANSWER];
        let len = answer.write(&mut bytes);
        assert_eq!(Answer::parse(&bytes[..len]), Some(answer));
        for cut in 0..len {
            assert_eq!(Answer::parse(&bytes[..cut]), None, "{answer:?} cut to {cut}");
        }
    }
    assert_eq!(Answer::parse(&[1, 64, 0, 0, 0, 0, 0, 0, 0, 0]), None, "there is no such slot");
}

#[test]
fn what_came_is_read_as_it_was_written() {
    for from in ["10.1.2.3:4791", "[fd00::7]:49152"] {
        let came = Came { from: from.parse().unwrap(), traffic_class: 106, hop_limit: 63 };
        let mut bytes = came.to_bytes().to_vec();
        bytes.extend_from_slice(b"packet");
        assert_eq!(Came::parse(&bytes), Some((came, &b"packet"[..])));
        assert_eq!(Came::parse(&bytes[..CAME - 1]), None);
    }
    assert_eq!(Came::parse(&[0; CAME + PACKET]), None, "not of this kind");
}

#[test]
fn processes_are_named_as_far_as_that_helps() {
    let text = |pids: &[u32]| Holders(pids.to_vec()).to_string();
    assert_eq!(text(&[7]), "the processes 7: end one");
    assert_eq!(text(&[9, 7, 9]), "the processes 7, 9: end one");
    assert_eq!(text(&[1, 2, 3, 4, 5, 6, 7]), "the processes 1, 2, 3, 4, 5 and 2 more: end one");
    let unknown = "processes whose broker is gone: wait until they have another";
    assert_eq!(text(&[]), unknown);
}

#[test]
fn a_process_of_another_namespace_is_a_holder_too() {
    let mut pids = [0; SLOTS];
    (pids[0], pids[4], pids[5]) = (10, UNSEEN, 11);
    let sharing = Sharing::new(&pids, 0);
    let wanted = [Holder { slot: 4, pid: 0 }, Holder { slot: 5, pid: 11 }];
    assert_eq!((sharing.broker, &sharing.holders[..]), (10, &wanted[..]));
}
