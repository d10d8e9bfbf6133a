use std::time::Duration;

use super::*;
use crate::{Config, Context, QpKind, SendOp};

/// A device whose background thread has ended: what would wake it can be seen.
fn without_thread(context: &Context) -> &Device {
    let device = context.device.live().unwrap();
    device.end_thread();
    device
}

fn rings(device: &Device) -> bool {
    device.watch.was_rung()
}

/// The sleeper knows of no deadline, or of a later one: poster and poller wake it.
#[test]
fn whoever_arms_an_earlier_timer_wakes_the_sleeper() {
    let open = || Context::open(&Config::default()).unwrap();
    let (near, far) = (open(), open());
    let [a, b] = [&near, &far].map(|context: &Context| {
        let pd = context.alloc_pd().unwrap();
        let cq = context.create_cq(8).unwrap();
        let rnr = urxe_wire::RnrTimer::new(1).unwrap();
        let qp = pd.qp(QpKind::Rc).cq(&cq).attr(|a| a.min_rnr_timer = rnr).build().unwrap();
        (qp, cq)
    });
    a.0.connect(&b.0.endpoint()).unwrap();
    b.0.connect(&a.0.endpoint()).unwrap();
    let device = without_thread(&near);
    device.watch.set_asleep_until(u64::MAX);
    assert!(!rings(device));
    a.0.post_send(1, SendOp::Send { imm: None }, &[]).unwrap();
    assert!(rings(device), "a post armed the retransmission timer");
    let known = device.nic.next_deadline().unwrap().at.as_nanos();
    device.watch.set_asleep_until(known);
    // The peer has no receive and says so; the wait that brings about ends before the timeout.
    while device.nic.next_deadline().unwrap().at.as_nanos() == known {
        device.progress();
    }
    assert!(rings(device), "a poll armed the RNR timer");
    device.watch.set_asleep_until(0);
    device.posted();
    assert!(!rings(device), "it is awake");
    device.sleeping();
    assert!(rings(device), "it stands aside, and shall not");
}

#[test]
fn a_panic_in_the_background_ends_the_device_loudly() {
    #[derive(Debug)]
    struct Trap;
    impl crate::Observer for Trap {
        fn packet(&self, passage: &Passage<'_>) {
            assert!(passage.sent, "the trap closes on what arrives");
        }
    }
    let config = Config { observer: Some(Arc::new(Trap)), ..Config::default() };
    let (near, far) = (Context::open(&config).unwrap(), Context::open(&Config::default()).unwrap());
    let (pd, cq) = (far.alloc_pd().unwrap(), far.create_cq(8).unwrap());
    let qp = pd.qp(QpKind::Uc).cq(&cq).build().unwrap();
    let nobody = crate::Endpoint { address: near.address(), ..qp.endpoint() };
    qp.connect(&nobody).unwrap();
    qp.post_send(1, SendOp::Send { imm: None }, &[]).unwrap();
    let patience = Duration::from_secs(60);
    assert_eq!(near.wait_async_event(patience).unwrap(), Some(AsyncEvent::DeviceFatal));
    let crate::PortState::Down { why } = near.query_port().state else { panic!("it is dead") };
    assert!(why.contains("panic"), "{why}");
}

/// More answers than one call takes wait when their timers have run out long since: no request is
/// sent again, no retry is used up.
#[test]
fn answers_that_have_arrived_count_before_their_timers() {
    const QPS: usize = 100;
    let open = || Context::open(&Config::default()).unwrap();
    let (near, far) = (open(), open());
    let device = without_thread(&near);
    let (pd, far_pd) = (near.alloc_pd().unwrap(), far.alloc_pd().unwrap());
    let (cq, far_cq) = (near.create_cq(128).unwrap(), far.create_cq(128).unwrap());
    let short = urxe_wire::AckTimeout::new(1).unwrap();
    let pairs: Vec<_> = (0..QPS)
        .map(|_| {
            let a = pd.qp(QpKind::Rc).cq(&cq).attr(|attr| attr.timeout = short).build().unwrap();
            let b = far_pd.qp(QpKind::Rc).cq(&far_cq).build().unwrap();
            a.connect(&b.endpoint()).unwrap();
            b.connect(&a.endpoint()).unwrap();
            b.post_recv(1, &[]).unwrap();
            (a, b)
        })
        .collect();
    for (a, _) in &pairs {
        a.post_send(1, SendOp::Send { imm: None }, &[]).unwrap();
    }
    while far.port_stats().tx_packets < QPS as u64 {
        thread::yield_now();
    }
    assert!(device.is_due(device.now()), "8 µs have passed");
    device.progress();
    assert_eq!(cq.query().unwrap().waiting, QPS);
    assert_eq!(near.counters().iter().find(|(name, _)| name.contains("timeout")), None);
}
