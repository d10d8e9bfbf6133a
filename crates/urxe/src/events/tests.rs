use super::*;
use crate::{Arm, Config, Context, QpKind, SendOp};

fn all<T: Copy + Eq + Hash>(queue: &Queue<T>) -> Vec<T> {
    std::iter::from_fn(|| queue.pop()).collect()
}

fn is_readable<T: Copy + Eq + Hash>(queue: &Queue<T>) -> bool {
    wait(&[queue.fd()], Some(Duration::ZERO)).unwrap().any()
}

#[test]
fn what_comes_again_is_taken_out_as_often_and_stored_once() {
    let queue = Queue::new().unwrap();
    for _ in 0..100_000 {
        queue.push('a');
    }
    queue.push('b');
    assert_eq!(queue.items.lock().order.len(), 2);
    assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some('a'), Some('b'), Some('a')));
    assert!(is_readable(&queue));
    queue.push('b');
    assert_eq!(all(&queue).len(), 100_000 - 2 + 1);
    assert!(!is_readable(&queue) && queue.items.lock().times.is_empty());
    queue.push('a');
    queue.push('a');
    queue.push('c');
    queue.retain(|item| *item != 'a');
    assert_eq!(all(&queue), ['c']);
    queue.push('a');
    assert_eq!(all(&queue), ['a'], "what was taken out is forgotten");
}

/// A port that comes and goes while nobody looks: its last state is told last.
#[test]
fn a_state_waits_once_behind_what_came_before() {
    let queue = Queue::new().unwrap();
    for _ in 0..1000 {
        queue.push_state("broken");
        queue.push("other");
        queue.push_state("whole");
    }
    queue.push_state("broken");
    assert_eq!(queue.items.lock().order.len(), 3);
    queue.retain(|item| *item != "other");
    assert_eq!(all(&queue), ["whole", "broken"]);
}

/// A program that arms again and again and never reads its channel: one event for each time.
#[test]
fn each_arming_brings_one_event_however_late_it_is_read() {
    let context = Context::open(&Config::default()).unwrap();
    let (pd, channel) = (context.alloc_pd().unwrap(), context.create_comp_channel().unwrap());
    let cq = context.create_cq_on(16, &channel).unwrap();
    let qp = pd.qp(QpKind::Uc).cq(&cq).build().unwrap();
    qp.connect(&qp.endpoint()).unwrap();
    for _ in 0..1000 {
        cq.req_notify(Arm::Next).unwrap();
        qp.post_send(1, SendOp::Send { imm: None }, &[]).unwrap();
        cq.wait_one().unwrap();
    }
    for _ in 0..1000 {
        assert_eq!(channel.wait_event(Duration::from_secs(60)).unwrap(), Some(cq.id()));
    }
    assert_eq!(channel.take_event(), None);
}
