//! Two managers, ann (10.0.0.1) and bob (10.0.0.2), and the wire between them in a test's hands.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use urxe_cm::{
    Accept, Cm, Config, ConnId, Connect, Event, Listen, ListenerId, Mad, Request, Route, Sink,
    State,
};
use urxe_wire::cm::{CmMessage, PortSpace};
use urxe_wire::{MadHeader, Psn, Qpn};

pub(crate) const PORT: u16 = 7174;
/// What the default timing makes of a message that is not answered: 2^20 · 4.096 µs and twice the
/// lifetime, 2^16 · 4.096 µs.
pub(crate) const INTERVAL: Duration = Duration::from_nanos(4096 * ((1 << 20) + 2 * (1 << 16)));
/// The local ACK timeout, 2^17 · 4.096 µs.
pub(crate) const TIMEWAIT: Duration = Duration::from_nanos(4096 << 17);

pub(crate) const ANN: usize = 0;
pub(crate) const BOB: usize = 1;

pub(crate) fn address(who: usize) -> IpAddr {
    ["10.0.0.1", "10.0.0.2"][who].parse().unwrap()
}

/// What has left and not arrived.
pub(crate) type Flight = Vec<(Route, Mad)>;

pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) cms: [Cm; 2],
    /// By sender.
    pub(crate) flight: [Flight; 2],
    /// What went over the wire since it was last asked: `a REQ`.
    log: Vec<String>,
}

struct Out<'a>(&'a mut Flight, &'a mut Vec<String>, char);

impl Sink for Out<'_> {
    fn mad(&mut self, route: &Route, mad: &Mad) {
        let (_, message) = CmMessage::parse(mad).unwrap();
        self.1.push(format!("{} {}", self.2, message.name().trim_start_matches("CM ")));
        self.0.push((*route, *mad));
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config::new(0xa, 1), Config::new(0xb, 2))
    }

    pub(crate) fn with(ann: Config, bob: Config) -> Self {
        let cms = [Cm::new(ann), Cm::new(bob)];
        Self { now: Duration::from_secs(1), cms, flight: [vec![], vec![]], log: vec![] }
    }

    /// Bob listens.
    pub(crate) fn listening() -> (Self, ListenerId) {
        let mut world = Self::new();
        let listen = Listen::port(PortSpace::Tcp, PORT, 4);
        let id = world.cms[BOB].listen(&listen).unwrap();
        (world, id)
    }

    /// Calls a manager with the wire.
    pub(crate) fn call<T>(
        &mut self,
        who: usize,
        call: impl FnOnce(&mut Cm, Duration, &mut dyn Sink) -> T,
    ) -> T {
        let mut out = Out(&mut self.flight[who], &mut self.log, ['a', 'b'][who]);
        call(&mut self.cms[who], self.now, &mut out)
    }

    pub(crate) fn connect(&mut self, qpn: u32) -> ConnId {
        self.call(ANN, |cm, now, out| cm.connect(now, &want(qpn), out)).unwrap()
    }

    /// Bob's request that waits, with what he accepts it with.
    pub(crate) fn request(&mut self) -> Box<Request> {
        match self.cms[BOB].poll_event() {
            Some(Event::ConnectRequest(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn accept(&mut self, id: ConnId, qpn: u32) {
        let with = Accept::new(Qpn::new(qpn), Psn::new(200));
        self.call(BOB, |cm, now, out| cm.accept(now, id, &with, out)).unwrap();
    }

    pub(crate) fn establish(&mut self, id: ConnId) {
        self.call(ANN, |cm, _, out| cm.establish(id, b"rtu", out)).unwrap();
    }

    pub(crate) fn disconnect(&mut self, who: usize, id: ConnId) {
        self.call(who, |cm, now, out| cm.disconnect(now, id, b"bye", out)).unwrap();
    }

    /// Takes what `from` sent off the wire.
    pub(crate) fn take(&mut self, from: usize) -> Flight {
        std::mem::take(&mut self.flight[from])
    }

    /// Gives MADs to the other side, as if `from` had sent them.
    pub(crate) fn give(&mut self, from: usize, mads: &Flight) {
        for (route, mad) in mads {
            let arriving = Route::new(route.remote, route.local);
            self.call(1 - from, |cm, now, out| cm.receive(now, &arriving, mad, out));
        }
    }

    /// What ann sent arrives; then what bob sent.
    pub(crate) fn deliver(&mut self) {
        for from in [ANN, BOB] {
            let mads = self.take(from);
            self.give(from, &mads);
        }
    }

    /// Gives a message of another address, or forged, to `to`.
    pub(crate) fn forge(&mut self, to: usize, from: &str, message: impl Into<CmMessage>) {
        let message = message.into();
        let mut mad = [0; 256];
        message.emit(&message.header(77), &mut mad).unwrap();
        let route = Route::new(address(to), from.parse().unwrap());
        self.call(to, |cm, now, out| cm.receive(now, &route, &mad, out));
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        for who in [ANN, BOB] {
            self.call(who, |cm, now, out| cm.expire(now, out));
        }
    }

    /// Goes on to the next deadline; false if there is none.
    pub(crate) fn next(&mut self) -> bool {
        let next = self.cms.iter().filter_map(Cm::next_deadline).map(|d| d.at).min();
        let Some(at) = next else { return false };
        self.pass(at.saturating_sub(self.now));
        true
    }

    pub(crate) fn event(&mut self, who: usize) -> Option<Event> {
        self.cms[who].poll_event()
    }

    pub(crate) fn events(&mut self, who: usize) -> Vec<Event> {
        std::iter::from_fn(|| self.cms[who].poll_event()).collect()
    }

    pub(crate) fn state(&self, who: usize, id: ConnId) -> Option<State> {
        self.cms[who].state(id)
    }

    /// What went over the wire since the last call.
    pub(crate) fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// An established connection: ann's id and bob's. Her QP is 0x11, his 0x12.
    pub(crate) fn established() -> (Self, ConnId, ConnId) {
        let (mut world, _) = Self::listening();
        let (a, b) = world.establish_one(0x11, 0x12);
        world.log();
        (world, a, b)
    }

    pub(crate) fn establish_one(&mut self, ann_qpn: u32, bob_qpn: u32) -> (ConnId, ConnId) {
        let a = self.connect(ann_qpn);
        self.deliver();
        let b = self.request().id;
        self.accept(b, bob_qpn);
        self.deliver();
        assert!(matches!(self.event(ANN), Some(Event::ConnectResponse(_))));
        self.establish(a);
        self.deliver();
        assert!(matches!(self.event(BOB), Some(Event::Established { .. })));
        (a, b)
    }

    /// Time passes until nothing is kept; nothing more is sent.
    pub(crate) fn settle(&mut self) {
        while self.next() {}
        for who in [ANN, BOB] {
            self.events(who);
            assert!(self.cms[who].stats().is_idle(), "{:?}", self.cms[who].stats());
        }
    }
}

pub(crate) fn want(qpn: u32) -> Connect<'static> {
    let from = SocketAddr::new(address(ANN), 40000);
    let to = SocketAddr::new(address(BOB), PORT);
    let (qpn, psn) = (Qpn::new(qpn), Psn::new(100));
    Connect { private_data: b"hello", ..Connect::ip(PortSpace::Tcp, from, to, qpn, psn).unwrap() }
}

pub(crate) fn parse(mad: &Mad) -> (MadHeader, CmMessage) {
    CmMessage::parse(mad).unwrap()
}

/// The message of the only MAD.
pub(crate) fn only(mads: &Flight) -> CmMessage {
    assert_eq!(mads.len(), 1);
    parse(&mads[0].1).1
}
