//! CM exchanges: which message may follow which, and what they say of the connection.

use std::collections::BTreeMap;

use urxe_wire::cm::{CommId, PortSpace, TransportService};
use urxe_wire::{CmMessage, Fields, MadHeader, Psn, Qpn, Transport};

use crate::fact::{Addr, Fact, Flow};
use crate::report::{Place, Report};
use crate::rule::Rule;

/// How many exchanges are kept.
const EXCHANGES: usize = 4096;
/// Bytes of additional information that a REJ or SIDR REP can hold (IBA 12.6.7, 12.11.2).
const INFO: u8 = 72;

/// A connection that an exchange makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    pub(crate) frame: u64,
    pub(crate) transport: Transport,
    /// Packets to the passive side's QP.
    pub(crate) to_passive: Flow,
    /// Packets to the active side's QP.
    pub(crate) to_active: Flow,
    /// The PSN that the active side begins with.
    pub(crate) active_psn: Psn,
    /// The PSN that the passive side begins with.
    pub(crate) passive_psn: Psn,
    pub(crate) mtu: Option<u32>,
    /// The local ACK timeout that the passive side uses, nanoseconds.
    pub(crate) passive_timeout: Option<i64>,
}

/// Who asks whom.
type Ends = (Addr, Addr, Option<u16>);

/// How far an exchange has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Asked,
    Accepted,
    Ready,
    Rejected,
}

/// An exchange whose REQ was seen.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    transaction: u64,
    active: CommId,
    passive: Option<CommId>,
    active_qpn: Qpn,
    passive_qpn: Option<Qpn>,
    transport: Option<Transport>,
    /// The PSN that the passive side is to begin with: each side names its peer's.
    passive_psn: Psn,
    mtu: Option<u32>,
    timeout: Option<i64>,
    stage: Stage,
    /// Which side asked to part: the active one, the passive one.
    parting: [bool; 2],
    frame: u64,
}

/// The exchanges of a capture.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    /// By the active side's address, the passive side's, and the active side's id.
    all: BTreeMap<(Ends, CommId), Exchange>,
    /// Questions for a service id, by their id.
    questions: BTreeMap<(Ends, CommId), u64>,
}

/// A message with what it came in.
struct Seen<'a> {
    header: &'a MadHeader,
    fact: &'a Fact,
    place: Place,
}

impl Seen<'_> {
    /// Who asks whom if this message is the active side's.
    const fn forward(&self) -> Ends {
        (self.fact.flow.src, self.fact.flow.dst, self.fact.flow.vlan)
    }

    const fn backward(&self) -> Ends {
        (self.fact.flow.dst, self.fact.flow.src, self.fact.flow.vlan)
    }
}

impl Exchanges {
    /// Judges a message; gives the connection that it makes.
    pub(crate) fn see(
        &mut self,
        (header, message): &(MadHeader, CmMessage),
        fact: &Fact,
        report: &mut Report,
    ) -> Option<Connection> {
        let seen = Seen { header, fact, place: Place::of(fact) };
        fields(header, message, &seen.place, report);
        addresses(message, &seen, report);
        match message {
            CmMessage::Req(_) => self.asked(&seen, message, report),
            CmMessage::Rep(_) => return self.accepted(&seen, message, report),
            CmMessage::SidrReq(m) => {
                if self.questions.len() >= EXCHANGES {
                    self.questions.clear();
                }
                self.questions.insert((seen.forward(), m.request_id), header.transaction_id);
            }
            CmMessage::SidrRep(m) => self.resolved(&seen, m.request_id, report),
            CmMessage::Rtu(m) => self.ready(&seen, m.local_comm_id, m.remote_comm_id, report),
            CmMessage::Rej(m) => {
                self.answers(&seen, "REJ", m.remote_comm_id, report);
                self.rejected(&seen, m.remote_comm_id);
            }
            CmMessage::Mra(m) => self.answers(&seen, "MRA", m.remote_comm_id, report),
            CmMessage::Dreq(m) => {
                let ids = (m.local_comm_id, m.remote_comm_id);
                self.parting(&seen, ids, Some(m.remote_qpn), report);
            }
            CmMessage::Drep(m) => {
                self.parting(&seen, (m.local_comm_id, m.remote_comm_id), None, report);
            }
            CmMessage::Lap(_) | CmMessage::Apr(_) => {}
        }
        None
    }

    fn asked(&mut self, seen: &Seen<'_>, message: &CmMessage, report: &mut Report) {
        let CmMessage::Req(req) = message else { return };
        let key = (seen.forward(), req.local_comm_id);
        let transaction = seen.header.transaction_id;
        if let Some(before) = self.all.get(&key)
            && before.transaction == transaction
        {
            if before.active_qpn != req.local_qpn || before.passive_psn != req.starting_psn {
                let what = "a REQ that comes again differs in its QPN or starting PSN";
                let got = format!("QP {}, PSN {}", req.local_qpn, req.starting_psn);
                let wanted = format!("QP {}, PSN {}", before.active_qpn, before.passive_psn);
                report.find(Rule::CmIds, &seen.place, what, got, wanted);
            }
            return;
        }
        if self.all.len() >= EXCHANGES {
            let oldest = self.all.iter().min_by_key(|(_, e)| e.frame).map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                self.all.remove(&oldest);
            }
        }
        let timeout = req.primary.local_ack_timeout.duration();
        let exchange = Exchange {
            transaction,
            active: req.local_comm_id,
            passive: None,
            active_qpn: req.local_qpn,
            passive_qpn: None,
            transport: match (req.transport_service, req.extended_transport) {
                (TransportService::Rc, _) => Some(Transport::Rc),
                (TransportService::Uc, _) => Some(Transport::Uc),
                (TransportService::Extended, 1) => Some(Transport::Xrc),
                _ => None,
            },
            passive_psn: req.starting_psn,
            mtu: req.mtu.mtu().ok().map(urxe_wire::Mtu::bytes),
            timeout: timeout.and_then(|t| i64::try_from(t.as_nanos()).ok()),
            stage: Stage::Asked,
            parting: [false; 2],
            frame: seen.fact.frame,
        };
        self.all.insert(key, exchange);
    }

    fn accepted(
        &mut self,
        seen: &Seen<'_>,
        message: &CmMessage,
        report: &mut Report,
    ) -> Option<Connection> {
        let CmMessage::Rep(rep) = message else { return None };
        let place = &seen.place;
        let key = (seen.backward(), rep.remote_comm_id);
        let transaction = seen.header.transaction_id;
        let Some(exchange) = self.all.get_mut(&key) else {
            let same = self.by_transaction(seen.backward(), transaction);
            self.unknown(same, "REP", rep.remote_comm_id, "REQ", place, report);
            return None;
        };
        if exchange.transaction != transaction {
            let what = "a REP has another transaction id than its REQ";
            let (got, wanted) =
                (format!("{transaction:#x}"), format!("{:#x}", exchange.transaction));
            report.find(Rule::CmIds, place, what, got, wanted);
        }
        if exchange.stage == Stage::Rejected {
            let lossy = report.lossy;
            let what = "a REP after the exchange was rejected";
            report.find_unless(lossy, Rule::CmOrder, place, what, "REP", "a new REQ first");
        }
        if let Some(passive) = exchange.passive {
            if passive != rep.local_comm_id {
                let what = "a REP that comes again has another communication id";
                report.find(Rule::CmIds, place, what, rep.local_comm_id, passive);
            }
            return None;
        }
        // The QPN of an XRC target stands in the EE context (Linux drivers/infiniband/core/cm.c).
        let passive_qpn = match exchange.transport {
            Some(Transport::Xrc) => Qpn::new(rep.local_eecn),
            _ => rep.local_qpn,
        };
        exchange.passive = Some(rep.local_comm_id);
        exchange.passive_qpn = Some(passive_qpn);
        exchange.stage = exchange.stage.max(Stage::Accepted);
        let flow = seen.fact.flow;
        let back = Flow { src: flow.dst, dst: flow.src, ..flow };
        Some(Connection {
            frame: seen.fact.frame,
            transport: exchange.transport?,
            to_passive: Flow { qpn: passive_qpn, ..back },
            to_active: Flow { qpn: exchange.active_qpn, ..flow },
            active_psn: rep.starting_psn,
            passive_psn: exchange.passive_psn,
            mtu: exchange.mtu,
            passive_timeout: exchange.timeout,
        })
    }

    fn by_transaction(&self, ends: Ends, transaction: u64) -> Option<CommId> {
        let all = self.all.range((ends, CommId(0))..=(ends, CommId(u32::MAX)));
        let mut same = all.filter(|(_, e)| e.transaction == transaction && e.passive.is_none());
        same.next().map(|(_, e)| e.active)
    }

    /// A message of an exchange that is not known: its id is wrong, or the exchange is older.
    fn unknown(
        &self,
        same_transaction: Option<CommId>,
        name: &str,
        id: CommId,
        wanted: &str,
        place: &Place,
        report: &mut Report,
    ) {
        if let Some(right) = same_transaction {
            let what = format!("a {name} names a communication id that its exchange does not have");
            report.find(Rule::CmIds, place, what, id, right);
            return;
        }
        let what = format!("a {name} of an exchange that is not in the capture");
        report.find_unless(true, Rule::CmOrder, place, what, id, format!("a {wanted} before it"));
    }

    fn ready(&mut self, seen: &Seen<'_>, local: CommId, remote: CommId, report: &mut Report) {
        let place = &seen.place;
        let Some(exchange) = self.all.get_mut(&(seen.forward(), local)) else {
            let same = self
                .all
                .range((seen.forward(), CommId(0))..=(seen.forward(), CommId(u32::MAX)))
                .find(|(_, e)| e.transaction == seen.header.transaction_id)
                .map(|(_, e)| e.active);
            self.unknown(same, "RTU", local, "REP", place, report);
            return;
        };
        match (exchange.passive, exchange.stage) {
            (_, Stage::Rejected) => {
                let what = "an RTU after the exchange was rejected";
                let lossy = report.lossy;
                report.find_unless(lossy, Rule::CmOrder, place, what, "RTU", "a new REQ first");
            }
            (None, _) => {
                let what = "an RTU, but no REP";
                let lossy = report.lossy;
                report.find_unless(lossy, Rule::CmOrder, place, what, "RTU", "a REP before it");
            }
            (Some(passive), _) if passive != remote => {
                let what = "an RTU names a communication id that the REP did not give";
                report.find(Rule::CmIds, place, what, remote, passive);
            }
            (Some(_), _) => exchange.stage = Stage::Ready,
        }
    }

    /// What answers a REQ names its sender's id, whatever else becomes of it.
    fn answers(&self, seen: &Seen<'_>, name: &str, id: CommId, report: &mut Report) {
        let known = self.all.contains_key(&(seen.backward(), id));
        let asked = self.by_transaction(seen.backward(), seen.header.transaction_id);
        if let Some(right) = asked.filter(|_| !known) {
            self.unknown(Some(right), name, id, "REQ", &seen.place, report);
        }
    }

    fn rejected(&mut self, seen: &Seen<'_>, remote: CommId) {
        // Either side may reject: the id is that of its receiver.
        if let Some(exchange) = self.all.get_mut(&(seen.backward(), remote)) {
            exchange.stage = Stage::Rejected;
            return;
        }
        let ends = seen.forward();
        let all = self.all.range_mut((ends, CommId(0))..=(ends, CommId(u32::MAX)));
        for (_, exchange) in all.filter(|(_, e)| e.passive == Some(remote)) {
            exchange.stage = Stage::Rejected;
        }
    }

    /// A DREQ, which names the receiver's QPN, or a DREP.
    fn parting(
        &mut self,
        seen: &Seen<'_>,
        (local, remote): (CommId, CommId),
        qpn: Option<Qpn>,
        report: &mut Report,
    ) {
        let place = &seen.place;
        let name = if qpn.is_some() { "DREQ" } else { "DREP" };
        let ends = seen.forward();
        let active = self.all.contains_key(&(ends, local));
        let key = if active {
            (ends, local)
        } else {
            let ends = seen.backward();
            let mut all = self.all.range((ends, CommId(0))..=(ends, CommId(u32::MAX)));
            match all.find(|(_, e)| e.passive == Some(local)) {
                Some((key, _)) => *key,
                None => {
                    let known = self.all.get(&(ends, remote)).and_then(|e| e.passive);
                    self.unknown(known, name, local, "REQ and REP", place, report);
                    return;
                }
            }
        };
        let Some(exchange) = self.all.get_mut(&key) else { return };
        let (other, other_qpn) = if active {
            (exchange.passive, exchange.passive_qpn)
        } else {
            (Some(exchange.active), Some(exchange.active_qpn))
        };
        if let Some(other) = other.filter(|other| *other != remote) {
            let what = format!("a {name} names a communication id that its receiver does not have");
            report.find(Rule::CmIds, place, what, remote, other);
        }
        if let (Some(qpn), Some(wanted)) = (qpn, other_qpn)
            && qpn != wanted
        {
            report.find(Rule::CmQpn, place, "a DREQ names another QPN", qpn, wanted);
        }
        let side = usize::from(!active);
        if qpn.is_some() {
            exchange.parting[side] = true;
        } else if !exchange.parting[1 - side] {
            let lossy = report.lossy;
            let what = "a DREP, but no DREQ";
            report.find_unless(lossy, Rule::CmOrder, place, what, "DREP", "a DREQ before it");
        }
    }

    fn resolved(&self, seen: &Seen<'_>, id: CommId, report: &mut Report) {
        let place = &seen.place;
        match self.questions.get(&(seen.backward(), id)) {
            Some(transaction) if *transaction == seen.header.transaction_id => {}
            Some(transaction) => {
                let what = "a SIDR_REP has another transaction id than its SIDR_REQ";
                let got = format!("{:#x}", seen.header.transaction_id);
                report.find(Rule::CmIds, place, what, got, format!("{transaction:#x}"));
            }
            None => self.unknown(None, "SIDR_REP", id, "SIDR_REQ", place, report),
        }
    }
}

/// Reserved fields, codes and lengths.
fn fields(header: &MadHeader, message: &CmMessage, place: &Place, report: &mut Report) {
    let mut names = Vec::new();
    let mut collect = |name: &'static str, value: &dyn std::fmt::Display| {
        if name.starts_with("reserved") {
            let text = value.to_string();
            let zero = text.ends_with("zero bytes") && !text.contains("and")
                || text.trim_start_matches("0x").bytes().all(|b| b == b'0');
            if !zero {
                names.push((name, text));
            }
        }
    };
    header.for_each_field(&mut |name, _, value| collect(name, &value));
    message.for_each_field(&mut |name, _, value| collect(name, &value));
    for (name, value) in names {
        let what = format!("{name} of a {}", message.name());
        report.find(Rule::Reserved, place, what, value, 0);
    }
    let info = match message {
        CmMessage::Rej(m) => Some(m.info_length),
        CmMessage::SidrRep(m) => Some(m.info_length),
        _ => None,
    };
    if let Some(len) = info.filter(|len| *len > INFO) {
        let what = "length of the additional information";
        report.find(Rule::CmField, place, what, len, format!("at most {INFO}"));
    }
    if let CmMessage::Req(req) = message
        && let Err(error) = req.mtu.mtu()
    {
        report.find(Rule::CmField, place, "path MTU of a REQ", error.got, error.wanted);
    }
}

/// Whom a request names: the addresses that it goes between. On a native link GIDs are no IP
/// addresses.
fn addresses(message: &CmMessage, seen: &Seen<'_>, report: &mut Report) {
    if seen.fact.src_port.is_none() {
        return;
    }
    let (Addr::Ip(src), Addr::Ip(dst)) = (seen.fact.flow.src, seen.fact.flow.dst) else { return };
    let place = &seen.place;
    let mut find = |what: &str, got: &dyn std::fmt::Display, wanted: &dyn std::fmt::Display| {
        report.find(Rule::CmAddress, place, what, got, wanted);
    };
    let (service, ip) = match message {
        CmMessage::Req(req) => {
            let path = &req.primary;
            for (what, gid, ip) in [
                ("GID of a REQ's sender", path.local_gid, src),
                ("GID of a REQ's receiver", path.remote_gid, dst),
            ] {
                if gid.ip() != ip {
                    find(what, &gid.ip(), &ip);
                }
            }
            (req.service_id, req.ip_header().map(|(ip, _)| ip))
        }
        CmMessage::SidrReq(req) => (req.service_id, req.ip_header().map(|(ip, _)| ip)),
        _ => return,
    };
    // A service of the IB port space may have native addresses and no header.
    if !matches!(service.port(), Some((PortSpace::Tcp | PortSpace::Udp, _))) {
        return;
    }
    match ip {
        Err(error) => find("IP header of a request", &error.got, &error.wanted),
        Ok(ip) => {
            if ip.source().ip() != src {
                find("source in the IP header of a request", &ip.source().ip(), &src);
            }
            if ip.destination() != dst {
                find("destination in the IP header of a request", &ip.destination(), &dst);
            }
        }
    }
}
