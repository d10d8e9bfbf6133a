//! A manager with a hostile peer, and a friend with a connection to it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use urxe_cm::{
    Accept, Cm, Config, ConnId, Connect, Event, Limits, Listen, ListenerId, Mad, Route, SidrAnswer,
    SidrAsk, Sink, State,
};
use urxe_wire::cm::{CmTimeout, CommId, PortSpace, RejReason};
use urxe_wire::{Psn, Qpn};

use super::hostile;
use crate::fuzz::choices::Choices;

pub(super) const US: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const FRIEND: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub(super) const HOSTILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
pub(super) const PORT: u16 = 7174;
const BACKLOG: usize = 3;
const LIMITS: Limits = Limits { connections: 12, remembered: 4, sidr: 4, listeners: 4, events: 16 };
/// Our QP and the friend's.
const QPNS: [u32; 2] = [0x11, 0x12];

type Flight = Vec<(Route, Mad)>;

pub(super) struct World {
    now: Duration,
    us: Cm,
    friend: Cm,
    /// The connection with the friend, from both sides.
    good: [ConnId; 2],
    /// What we sent to the hostile peer lately: it knows its ids.
    pub(super) heard: Vec<Mad>,
    /// Our connections that the hostile peer has a part in.
    pub(super) bad: Vec<ConnId>,
    next_qpn: u32,
    listeners: Vec<ListenerId>,
}

impl World {
    /// The friend's connection stands; `choice` says who asked for it.
    pub(super) fn new(choice: u8) -> Self {
        let us = Cm::new(Config { limits: LIMITS, ..Config::new(1, u64::from(choice)) });
        let friend = Cm::new(Config::new(2, 99));
        let none = CommId(0);
        let mut world = Self {
            now: Duration::from_secs(1),
            us,
            friend,
            good: [none; 2],
            heard: vec![],
            bad: vec![],
            next_qpn: 0x100,
            listeners: vec![],
        };
        for space in [PortSpace::Tcp, PortSpace::Udp] {
            let listen = Listen::port(space, PORT, BACKLOG);
            world.friend.listen(&listen).expect("nothing listens yet");
            world.listeners.push(world.us.listen(&listen).expect("nothing listens yet"));
        }
        world.befriend(choice.is_multiple_of(2));
        world
    }

    fn befriend(&mut self, we_ask: bool) {
        let now = self.now;
        let (mut a, mut b) = (&mut self.us, &mut self.friend);
        let (mut from, mut to, mut qpns) = (US, FRIEND, QPNS);
        if !we_ask {
            std::mem::swap(&mut a, &mut b);
            (from, to) = (to, from);
            qpns.reverse();
        }
        let (source, target) = (SocketAddr::new(from, 5), SocketAddr::new(to, PORT));
        let qpn = Qpn::new(qpns[0]);
        let want = Connect::ip(PortSpace::Tcp, source, target, qpn, Psn::new(1));
        let want = want.expect("two IPv4 addresses");
        let mut mads: Flight = vec![];
        let active = a.connect(now, &want, &mut |r: &Route, m: &Mad| mads.push((*r, *m)));
        let active = active.expect("it can be asked for");
        pass(now, b, &mut mads);
        let Some(Event::ConnectRequest(request)) = b.poll_event() else { panic!("no request") };
        let with = request.accept(Qpn::new(qpns[1]), Psn::new(2));
        b.accept(now, request.id, &with, &mut |r: &Route, m: &Mad| mads.push((*r, *m)))
            .expect("it can be accepted");
        pass(now, a, &mut mads);
        a.poll_event().expect("a response");
        a.establish(active, b"", &mut |r: &Route, m: &Mad| mads.push((*r, *m)))
            .expect("it can be established");
        pass(now, b, &mut mads);
        b.poll_event().expect("it is established");
        self.good = if we_ask { [active, request.id] } else { [request.id, active] };
    }

    /// Calls our manager. What it sends to the hostile peer is remembered; to the friend it has
    /// nothing to say.
    fn call<T>(&mut self, call: impl FnOnce(&mut Cm, Duration, &mut dyn Sink) -> T) -> T {
        let heard = &mut self.heard;
        let mut out = |route: &Route, mad: &Mad| {
            assert_eq!(route.remote, HOSTILE, "a message to the friend");
            heard.push(*mad);
        };
        let result = call(&mut self.us, self.now, &mut out);
        let keep = heard.len().saturating_sub(16);
        heard.drain(..keep);
        result
    }

    pub(super) fn step(&mut self, c: &mut Choices<'_>) {
        match c.below(12) {
            0..=4 => {
                let mad = hostile::mad(self, c);
                self.arrive(&mad);
            }
            5 => {
                let len = usize::from(c.byte()) * 2;
                let bytes = c.bytes(len).to_vec();
                self.arrive(&bytes);
            }
            6 => self.connect(c),
            7 => self.poll(c),
            8 => self.act(c),
            9 => {
                let code = CmTimeout::new(c.byte() % 32).unwrap_or(CmTimeout::MAX);
                self.advance(code.duration());
            }
            10 => {
                let next = self.us.next_deadline();
                let wait = next.map_or(Duration::ZERO, |next| next.at.saturating_sub(self.now));
                self.advance(wait);
            }
            _ => self.ask(c),
        }
        self.check();
    }

    fn arrive(&mut self, bytes: &[u8]) {
        let before = self.us.counters().get(urxe_cm::Count::Sent);
        let route = Route::new(US, HOSTILE);
        self.call(|cm, now, out| cm.receive(now, &route, bytes, out));
        let sent = self.us.counters().get(urxe_cm::Count::Sent) - before;
        // A refusal, and a DREQ of what that shows to be stale.
        assert!(sent <= 2, "{sent} messages for one");
    }

    fn advance(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
        self.call(|cm, now, out| cm.expire(now, out));
        let next = self.us.next_deadline();
        assert!(next.is_none_or(|next| next.at > self.now), "{next:?} has passed");
    }

    fn qpn(&mut self) -> Qpn {
        self.next_qpn += 1;
        Qpn::new(self.next_qpn)
    }

    fn connect(&mut self, c: &mut Choices<'_>) {
        let (from, to) = (SocketAddr::new(US, 6), SocketAddr::new(HOSTILE, PORT));
        let qpn = self.qpn();
        let want = Connect::ip(PortSpace::Tcp, from, to, qpn, Psn::new(c.number()));
        let want = want.expect("two IPv4 addresses");
        if let Ok(id) = self.call(|cm, now, out| cm.connect(now, &want, out)) {
            self.bad.push(id);
        }
    }

    fn ask(&mut self, c: &mut Choices<'_>) {
        let (from, to) = (SocketAddr::new(US, 6), SocketAddr::new(HOSTILE, PORT));
        let ask = SidrAsk::ip(PortSpace::Udp, from, to).expect("two IPv4 addresses");
        let asked = self.call(|cm, now, out| cm.sidr_ask(now, &ask, out));
        if let (Ok(id), true) = (asked, c.below(4) == 0) {
            self.us.sidr_abandon(id).expect("it was just asked");
        }
    }

    /// The owner hears of something, and does what it should or something else.
    fn poll(&mut self, c: &mut Choices<'_>) {
        let Some(event) = self.us.poll_event() else { return };
        match event {
            Event::ConnectRequest(request) => {
                assert_eq!(request.route.remote, HOSTILE);
                self.bad.push(request.id);
                if c.below(4) != 0 {
                    let with = Accept::new(self.qpn(), Psn::new(3));
                    // It may have been taken back.
                    let _ = self.call(|cm, now, out| cm.accept(now, request.id, &with, out));
                }
            }
            Event::SidrRequest(request) if c.below(4) != 0 => {
                let answer = SidrAnswer::qp(Qpn::new(9));
                self.call(|cm, now, out| cm.sidr_answer(now, request.id, &answer, out))
                    .expect("a question waits for its answer");
            }
            event => assert!(!self.is_good(&event), "{event:?}"),
        }
    }

    /// Whether an event is of the friend's connection.
    fn is_good(&self, event: &Event) -> bool {
        let id = match event {
            Event::Established { id, .. }
            | Event::Rejected { id, .. }
            | Event::Unreachable { id, .. }
            | Event::DisconnectRequest { id, .. }
            | Event::Disconnected { id, .. }
            | Event::TimewaitExit { id, .. } => *id,
            Event::ConnectResponse(response) => response.id,
            _ => return false,
        };
        id == self.good[0]
    }

    /// The owner does something with some connection, sensible or not.
    fn act(&mut self, c: &mut Choices<'_>) {
        let at = c.below(self.bad.len());
        let Some(&id) = self.bad.get(at) else { return };
        let what = c.below(7);
        let code = CmTimeout::new(c.byte() % 32).unwrap_or(CmTimeout::MAX);
        let with = Accept::new(self.qpn(), Psn::new(4));
        let why = RejReason::from_code(c.byte().into());
        // Errors are as good as success here.
        let _ = self.call(|cm, now, out| match what {
            0 => cm.establish(id, b"x", out),
            1 => cm.disconnect(now, id, b"x", out),
            2 => cm.reject(now, id, why, b"x", b"y", out),
            3 => cm.abandon(now, id, out),
            4 => cm.mra(id, code, b"x", out),
            5 => cm.accept(now, id, &with, out),
            _ => cm.qp_attrs(id).map(|_| ()),
        });
    }

    fn check(&self) {
        let stats = self.us.stats();
        let connections = stats.connecting + stats.established + stats.closing + stats.timewait;
        assert!(connections <= LIMITS.connections, "{stats:?}");
        assert!(stats.backlog <= 2 * BACKLOG, "{stats:?}");
        assert!(stats.sidr <= LIMITS.sidr, "{stats:?}");
        assert!(stats.remembered <= 2 * LIMITS.remembered, "{stats:?}");
        assert_eq!(self.us.state(self.good[0]), Some(State::Established));
    }

    /// The friend's connection ends as it should, and then the rest.
    pub(super) fn judge(mut self) {
        self.check();
        let (now, [id, far]) = (self.now, self.good);
        let mut mads: Flight = vec![];
        self.friend
            .disconnect(now, far, b"", &mut |r: &Route, m: &Mad| mads.push((*r, *m)))
            .expect("it is established");
        pass(now, &mut self.us, &mut mads);
        self.us
            .disconnect(now, id, b"", &mut |r: &Route, m: &Mad| mads.push((*r, *m)))
            .expect("the friend wants to end it");
        pass(now, &mut self.friend, &mut mads);
        assert_eq!(self.friend.state(far), Some(State::Timewait));
        // Whatever the hostile peer has begun, our owner can end.
        while let Some(event) = self.us.poll_event() {
            match event {
                Event::ConnectRequest(request) => self.bad.push(request.id),
                Event::SidrRequest(request) => {
                    let answer = SidrAnswer::qp(Qpn::new(9));
                    self.call(|cm, now, out| cm.sidr_answer(now, request.id, &answer, out))
                        .expect("a question waits for its answer");
                }
                _ => {}
            }
        }
        for id in std::mem::take(&mut self.bad) {
            let _ = self.call(|cm, now, out| cm.abandon(now, id, out));
        }
        // Questions that the owner read and left go with their listener.
        for listener in std::mem::take(&mut self.listeners) {
            self.call(|cm, now, out| cm.unlisten(now, listener, out)).expect("it listens");
        }
        while let Some(next) = self.us.next_deadline() {
            self.advance(next.at.saturating_sub(self.now));
        }
        while self.us.poll_event().is_some() {}
        assert!(self.us.stats().is_idle(), "{:?}", self.us.stats());
    }
}

/// Gives what is under way to `to`; its answers are the new flight.
fn pass(now: Duration, to: &mut Cm, flight: &mut Flight) {
    for (route, mad) in std::mem::take(flight) {
        let arriving = Route::new(route.remote, route.local);
        to.receive(now, &arriving, &mad, &mut |r: &Route, m: &Mad| flight.push((*r, *m)));
    }
}
