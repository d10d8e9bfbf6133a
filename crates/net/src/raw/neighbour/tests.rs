use std::cell::Cell;
use std::io;
use std::net::Ipv6Addr;

use super::*;

const US: Mac = Mac([2, 0, 0, 0, 0, 1]);
const PEER: Mac = Mac([2, 0, 0, 0, 0, 2]);
const GATEWAY: Mac = Mac([2, 0, 0, 0, 0, 3]);

/// A kernel that knows what the test tells it.
#[derive(Default)]
struct Kernel {
    neighbour: Cell<Option<Mac>>,
    asked: Cell<u32>,
}

impl Knows for Kernel {
    fn route(&self, to: IpAddr) -> io::Result<Route> {
        self.asked.set(self.asked.get() + 1);
        let route = |local, gateway| Ok(Route { local, gateway });
        match to {
            IpAddr::V4(v4) => match v4.octets() {
                [10, 0, 0, 1] => route(true, None),
                [10, 0, 0, _] => route(false, None),
                [192, ..] => Err(io::ErrorKind::HostUnreachable.into()),
                _ => route(false, Some([10, 0, 0, 254].into())),
            },
            IpAddr::V6(_) => route(false, None),
        }
    }

    fn neighbour(&self, _: IpAddr) -> Option<Mac> {
        self.neighbour.get()
    }
}

fn ways() -> (Ways, Kernel, Instant) {
    let us = Us { address: [10, 0, 0, 1].into(), mac: US, vlan: None };
    (Ways::new(us), Kernel::default(), Instant::now())
}

/// What a neighbour answers us.
fn answer(of: [u8; 4], mac: Mac) -> Vec<u8> {
    let asks_us = true;
    let to = Heard { of: [10, 0, 0, 1].into(), mac: US, asks_us };
    Us { address: of.into(), mac, vlan: None }.answer(&to).unwrap()
}

fn frame(n: u8) -> Vec<u8> {
    vec![n; 60]
}

#[test]
fn what_the_kernel_knows_is_not_asked_for() {
    let (mut ways, kernel, now) = ways();
    kernel.neighbour.set(Some(PEER));
    assert_eq!(ways.to([10, 0, 0, 2].into(), now, &kernel), Way::Link(PEER));
    assert_eq!(ways.to([10, 0, 0, 1].into(), now, &kernel), Way::Local);
    assert_eq!(ways.to([192, 0, 2, 1].into(), now, &kernel), Way::NoRoute);
    assert!(ways.out.is_empty());
    assert_eq!(ways.deadline(), None);
    let asked = kernel.asked.get();
    assert_eq!(ways.to([10, 0, 0, 2].into(), now, &kernel), Way::Link(PEER));
    assert_eq!(kernel.asked.get(), asked, "remembered");
    ways.to([10, 0, 0, 2].into(), now + ROUTE_LIFE, &kernel);
    assert_eq!(kernel.asked.get(), asked + 1, "for a while");
}

#[test]
fn a_neighbour_is_asked_for_once_and_what_waited_goes_in_order() {
    let (mut ways, kernel, now) = ways();
    let peer = IpAddr::from([10, 0, 0, 2]);
    for n in 0..3 {
        assert_eq!(ways.to(peer, now, &kernel), Way::Ask(peer));
        ways.wait(peer, frame(n));
    }
    assert_eq!(ways.out.len(), 1, "one question");
    ways.out.clear();
    ways.hear(&answer([10, 0, 0, 2], PEER), now, false);
    let sent: Vec<_> = ways.out.drain(..).collect();
    assert_eq!(sent.len(), 3);
    for (n, sent) in (0..).zip(sent) {
        assert_eq!((&sent[..6], sent[6]), (&PEER.0[..], n));
    }
    assert_eq!(ways.to(peer, now, &kernel), Way::Link(PEER));
    assert_eq!((ways.deadline(), ways.dropped), (None, 0));
}

#[test]
fn off_the_link_the_gateway_is_asked_for() {
    let (mut ways, kernel, now) = ways();
    let gateway = IpAddr::from([10, 0, 0, 254]);
    assert_eq!(ways.to([8, 8, 8, 8].into(), now, &kernel), Way::Ask(gateway));
    ways.hear(&answer([10, 0, 0, 254], GATEWAY), now, false);
    assert_eq!(ways.to([8, 8, 8, 8].into(), now, &kernel), Way::Link(GATEWAY));
    assert_eq!(ways.to([9, 9, 9, 9].into(), now, &kernel), Way::Link(GATEWAY));
}

#[test]
fn a_silent_neighbour_is_asked_for_a_few_times_and_what_waited_is_counted() {
    let (mut ways, kernel, mut now) = ways();
    let peer = IpAddr::from([10, 0, 0, 2]);
    let too_many = u8::try_from(WAITING).unwrap() + 3;
    for n in 0..too_many {
        assert_eq!(ways.to(peer, now, &kernel), Way::Ask(peer));
        ways.wait(peer, frame(n));
    }
    assert_eq!(ways.dropped, 3, "only a few wait");
    for tries in 1..TRIES {
        assert_eq!(ways.out.len(), usize::try_from(tries).unwrap());
        assert_eq!(ways.deadline(), Some(now + INTERVAL));
        ways.expire(now + INTERVAL - Duration::from_nanos(1));
        assert_eq!(ways.out.len(), usize::try_from(tries).unwrap(), "not yet");
        now += INTERVAL;
        ways.expire(now);
    }
    now += INTERVAL;
    ways.expire(now);
    assert_eq!(ways.out.len(), usize::try_from(TRIES).unwrap());
    assert_eq!(ways.dropped, u64::from(too_many));
    assert_eq!(ways.deadline(), None);
    assert_eq!(ways.to(peer, now, &kernel), Way::Absent);
    // After a while it may have come.
    assert_eq!(ways.to(peer, now + ABSENT_LIFE, &kernel), Way::Ask(peer));
}

#[test]
fn an_address_is_used_until_a_refresh_has_failed() {
    let (mut ways, kernel, mut now) = ways();
    let peer = IpAddr::from([10, 0, 0, 2]);
    ways.to(peer, now, &kernel);
    ways.hear(&answer([10, 0, 0, 2], PEER), now, false);
    now += HEARD_LIFE;
    for _ in 0..TRIES {
        ways.out.clear();
        assert_eq!(ways.to(peer, now, &kernel), Way::Link(PEER));
        assert_eq!(ways.out.len(), 1, "asked again");
        now += INTERVAL;
    }
    assert_eq!(ways.to(peer, now, &kernel), Way::Ask(peer));
}

#[test]
fn strangers_are_not_remembered_and_questions_answered_only_where_the_kernel_does_not() {
    let (mut ways, kernel, now) = ways();
    let peer = Us { address: [10, 0, 0, 2].into(), mac: PEER, vlan: None };
    let question = peer.ask([10, 0, 0, 1].into()).unwrap();
    ways.hear(&question, now, false);
    assert!(ways.out.is_empty());
    ways.hear(&question, now, true);
    assert_eq!(ways.out.len(), 1);
    assert_eq!(ways.to(peer.address, now, &kernel), Way::Ask(peer.address));
}

#[test]
fn the_table_does_not_grow_without_bound() {
    let (mut ways, kernel, now) = ways();
    for n in 0..3 * u32::try_from(MOST).unwrap() {
        let [.., b, c, d] = n.to_be_bytes();
        ways.to(
            Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, b.into(), u16::from_be_bytes([c, d])).into(),
            now,
            &kernel,
        );
    }
    assert!(ways.hops.len() <= MOST && ways.neighbours.len() <= MOST);
}
