//! What a case runs on: two nodes, of which the first requests and the second responds.

use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use rxe_lab::{BRIDGE, HOST_V4, HOST_V6, SECOND_V4, SECOND_V6, Session, Watch, guest_v4, guest_v6};
use urxe::PortKind;

use crate::departures::Met;
use crate::node::{ALL, Node, PATIENCE, Region, SIZE, Spec};
use crate::ours::{Ours, Setting, connected};
use crate::theirs::Theirs;

/// Who requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// urxe requests, rxe responds.
    Urxe,
    /// rxe requests, urxe responds.
    Rxe,
}

/// A column of the table: where a case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub role: Role,
    pub v6: bool,
    /// On AF_PACKET, not on UDP sockets.
    pub raw: bool,
}

impl Column {
    /// All, in the order of the page's columns.
    pub const fn all() -> [Self; 8] {
        let mut columns = [Self { role: Role::Urxe, v6: false, raw: false }; 8];
        let mut n = 0;
        while n < 8 {
            let role = if n & 4 == 0 { Role::Urxe } else { Role::Rxe };
            columns[n] = Self { role, v6: n & 2 != 0, raw: n & 1 != 0 };
            n += 1;
        }
        columns
    }

    pub const fn host(self) -> IpAddr {
        if self.v6 { HOST_V6 } else { HOST_V4 }
    }

    /// Where another device of ours may be.
    pub const fn second_host(self) -> IpAddr {
        if self.v6 { SECOND_V6 } else { SECOND_V4 }
    }

    pub const fn guest(self) -> IpAddr {
        if self.v6 { guest_v6(1) } else { guest_v4(1) }
    }

    pub fn port(self) -> PortKind {
        if self.raw { PortKind::Raw(BRIDGE.to_owned()) } else { PortKind::Udp }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roles = if self.role == Role::Urxe { "urxe→rxe" } else { "rxe→urxe" };
        let family = if self.v6 { "IPv6" } else { "IPv4" };
        write!(f, "{roles} {family} {}", if self.raw { "raw" } else { "udp" })
    }
}

/// Between two looks at whether the guest lives.
pub const LOOK: Duration = Duration::from_millis(250);

/// Ends the case if the guest is dead.
pub fn alive(watch: &Watch) {
    if let Some(died) = watch.died() {
        panic!("{died}");
    }
}

/// Two nodes on a link.
pub struct Bench {
    /// Requests.
    pub a: Box<dyn Node>,
    /// Responds.
    pub b: Box<dyn Node>,
    pub column: Column,
    /// For commands in the guest.
    pub guest: Session,
    pub watch: Watch,
    /// Where rxe was met to depart.
    pub met: Met,
}

/// A QP of each node, connected with each other, and a region of all rights for each.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub qa: usize,
    pub qb: usize,
    pub ra: Region,
    pub rb: Region,
}

impl Bench {
    pub fn new(column: Column, setting: &Setting) -> Self {
        let watch = setting.watch.clone();
        let session = || watch.session().unwrap_or_else(|error| panic!("{error}"));
        let ours = Box::new(Ours::open(setting));
        let theirs = Box::new(Theirs::open(session(), column.guest()));
        let (a, b): (Box<dyn Node>, Box<dyn Node>) =
            if column.role == Role::Urxe { (ours, theirs) } else { (theirs, ours) };
        Self { a, b, column, guest: session(), watch, met: Met::new() }
    }

    pub fn pair(&mut self, spec: &Spec) -> Pair {
        self.pair_of(spec, spec)
    }

    /// The same where the sides differ.
    pub fn pair_of(&mut self, a: &Spec, b: &Spec) -> Pair {
        let (ra, rb) = (self.a.register(0, SIZE, ALL), self.b.register(0, SIZE, ALL));
        let (qa, qb) = self.connect(a, b);
        Pair { qa, qb, ra, rb }
    }

    /// Two QPs, connected.
    pub fn connect(&mut self, a: &Spec, b: &Spec) -> (usize, usize) {
        let (qa, qb) = (self.a.qp(a), self.b.qp(b));
        let (ea, eb) = (self.a.endpoint(qa), self.b.endpoint(qb));
        let is = connected(a.kind);
        self.b.connect(qb, is.then_some(&ea));
        self.a.connect(qa, is.then_some(&eb));
        (qa, qb)
    }

    /// Waits for something, which must come in time.
    pub fn eventually(&mut self, what: &str, mut is: impl FnMut(&mut Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is(self) {
            alive(&self.watch);
            assert!(Instant::now() < end, "{what}: not in {PATIENCE:?}");
            // The guest needs the processors.
            std::thread::yield_now();
        }
    }

    /// Runs a command in the guest, which must succeed.
    pub fn exec(&mut self, command: &str) -> String {
        let (status, output) = self.guest.exec(command).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(status, 0, "`{command}` in the guest: {output}");
        output
    }
}
