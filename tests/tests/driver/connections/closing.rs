//! How connections end.

use std::thread;

use urxe::cm::{Closed, Ending};
use urxe::{QpState, WcStatus};

use super::{Host, connected, soon};
use crate::rig::PATIENCE;

#[test]
fn both_sides_close_at_once() {
    for _ in 0..5 {
        let (a, b) = (Host::open(), Host::open());
        let (near, far) = connected(&a, &b, &soon());
        let endings = thread::scope(|scope| {
            let one = scope.spawn(|| near.disconnect().unwrap());
            let other = far.disconnect().unwrap();
            [one.join().unwrap(), other]
        });
        for ending in endings {
            let agreed = [Closed::Agreed, Closed::Both].map(Ending::Closed);
            let fine = agreed.contains(&ending) || matches!(ending, Ending::ByPeer(_));
            assert!(fine, "{ending:?}");
        }
        drop((near, far));
        a.is_idle();
        b.is_idle();
    }
}

#[test]
fn dropping_tells_the_peer_and_flushes_what_waits() {
    let (a, b) = (Host::open(), Host::open());
    let (near, far) = connected(&a, &b, &soon());
    far.qp().post_recv(3, &[b.mr.sge(0..10)]).unwrap();
    assert_eq!(far.closed().unwrap(), None);
    drop(near);
    let Ending::ByPeer(said) = far.wait_closed().unwrap() else { panic!() };
    assert_eq!(said, [0; 220]);
    // It says so as often as it is asked, and its descriptor stays readable.
    assert!(far.closed().unwrap().is_some());
    assert!(far.disconnect().is_ok());
    assert_eq!(far.qp().query().unwrap().attr.qp_state, QpState::Err);
    let flushed = b.cq.wait_for(PATIENCE).unwrap();
    assert_eq!((flushed.wr_id, flushed.status), (3, WcStatus::WrFlushErr));
    drop(far);
    a.is_idle();
    b.is_idle();
}

#[test]
fn the_last_word_comes_with_the_end() {
    let (a, b) = (Host::open(), Host::open());
    let (near, far) = connected(&a, &b, &soon());
    near.disconnect_with(&[5; 220]).unwrap();
    assert_eq!(far.wait_closed().unwrap(), Ending::ByPeer(vec![5; 220]));
    let (near, _far) = connected(&a, &b, &soon());
    let why = near.disconnect_with(&[5; 221]).unwrap_err().to_string();
    assert!(why.contains("221 bytes") && why.contains("220"), "{why}");
}
