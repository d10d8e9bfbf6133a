//! What either side does, step by step, and tells of it.

use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use urxe::cm::{
    CmTimeout, Connection, Ending, Incoming, Listener, Options, PortSpace, Remote, resolve,
};
use urxe::{Access, Config, Context, Cq, Error, Mr, Pd, QKey, Qp, QpKind, SendOp, WcStatus};

use super::explain::text_of;
use super::news::News;
use super::{BothArgs, ConnectArgs, ListenArgs};
use crate::ending;
use crate::pingpong::Transport;

/// Bytes of the longest message.
const LONGEST: usize = 4096;
/// Messages that may come before one is looked at.
const RECEIVES: usize = 16;
/// Numbers of requests: a message out; those that come have their place.
const SENT: u64 = u64::MAX;
/// What a completed SEND tells.
const ARRIVED: &str = "the message has arrived";
/// Of a transport that acknowledges nothing.
const LEFT: &str = "the message has left; UC does not tell whether it arrived";
/// Between two looks at what has come.
const LOOK: Duration = Duration::from_millis(5);
/// How long a passive side stays to answer what comes again.
const LINGER: Duration = Duration::from_secs(10);
/// The key of the QP that a UD listener tells.
const QKEY: QKey = QKey::RDMA_CM_UDP;

type Out<'a> = &'a Sender<News>;

fn tell(news: Out<'_>, name: &'static str, text: impl Into<String>) {
    // Where nobody reads any more, it is done all the same.
    let _ = news.send(News::Event { at: Instant::now(), name, text: text.into() });
}

/// A QP's surroundings.
struct Host {
    context: Context,
    pd: Pd,
    cq: Cq,
    mr: Mr,
    kind: QpKind,
}

impl Host {
    fn open(config: &Config, transport: Transport) -> Result<Self, Error> {
        Self::on(Context::open(config)?, transport)
    }

    fn on(context: Context, transport: Transport) -> Result<Self, Error> {
        let (pd, cq) = (context.alloc_pd()?, context.create_cq(256)?);
        let mr = pd.register(LONGEST * (RECEIVES + 1), Access::LOCAL_WRITE)?;
        let kind = match transport {
            Transport::Rc => QpKind::Rc,
            Transport::Uc => QpKind::Uc,
            Transport::Ud => QpKind::Ud,
        };
        Ok(Self { context, pd, cq, mr, kind })
    }

    /// A QP that waits for messages.
    fn qp(&self) -> Result<Qp, Error> {
        let qp = self.pd.qp(self.kind).cq(&self.cq).build()?;
        if self.kind == QpKind::Ud {
            qp.ready(QKEY)?;
        } else {
            qp.init()?;
        }
        (0..RECEIVES).try_for_each(|slot| self.receive(&qp, slot))?;
        Ok(qp)
    }

    fn receive(&self, qp: &Qp, slot: usize) -> Result<(), Error> {
        qp.post_recv(slot as u64, &[self.mr.sge(slot * LONGEST..(slot + 1) * LONGEST)])
    }

    /// Tells of the messages that have come and gone.
    fn look(&self, qp: &Qp, news: Out<'_>) -> Result<(), Error> {
        while let Some(done) = self.cq.poll_one()? {
            let slot = usize::try_from(done.wr_id).ok().filter(|&slot| slot < RECEIVES);
            match (done.status, slot) {
                (WcStatus::Success, Some(slot)) => {
                    let at = slot * LONGEST;
                    let bytes = self.mr.to_vec(at..at + done.byte_len as usize)?;
                    let text = text_of(&bytes).unwrap_or_else(|| "zeros".to_owned());
                    tell(news, "message", format!("of {} bytes: {text}", bytes.len()));
                    self.receive(qp, slot)?;
                }
                (WcStatus::Success, None) => tell(news, "sent", ARRIVED),
                (WcStatus::WrFlushErr, _) => {}
                _ => tell(news, "failed", done.explain()),
            }
        }
        Ok(())
    }

    fn send(&self, qp: &Qp, text: &str) -> Result<(), Error> {
        let at = RECEIVES * LONGEST;
        self.mr.write(at, text.as_bytes())?;
        qp.post_send(SENT, SendOp::Send { imm: None }, &[self.mr.sge(at..at + text.len())])
    }
}

fn options(both: &BothArgs) -> Options<'_> {
    Options { timing: both.timing(), private_data: both.say.as_bytes(), ..Options::default() }
}

/// What becomes of an attempt that failed: news if the peer had a part in it, else an error.
fn failed(error: Error, news: Out<'_>) -> Result<(), Error> {
    let name = match &error {
        Error::Refused { .. } | Error::NoService { .. } => "refused",
        Error::Unreachable { .. } => "unreachable",
        Error::Ended { .. } => "closed",
        _ => return Err(error),
    };
    tell(news, name, error.to_string());
    Ok(())
}

/// Whether all went well.
type Well = bool;

pub(super) fn connect(args: &ConnectArgs, config: &Config, news: Out<'_>) -> Result<Well, Error> {
    let text = args.message.as_deref().unwrap_or_default();
    if text.len() > LONGEST {
        let problem = format!("{} bytes, at most {LONGEST} are sent", text.len());
        return Err(Error::Setting { name: "--message".into(), value: "…".into(), problem });
    }
    let host = Host::open(config, args.both.transport)?;
    tell(news, "device", format!("{} connects with {}", host.context.address(), args.to));
    let options = options(&args.both);
    if args.both.transport == Transport::Ud {
        let found = ending::blocking(&host.context, || resolve(&host.context, args.to, &options));
        return match found.map_err(watching)? {
            Ok(Remote { ah, info }) => {
                let (qpn, qkey) = (info.qpn.value(), info.qkey.0);
                let text = format!("datagrams go to QP {qpn:#x} of {}, Q_Key {qkey:#x}", ah.dst);
                tell(news, "resolved", text);
                Ok(true)
            }
            Err(error) => failed(error, news).map(|()| false),
        };
    }
    let (context, qp) = (&host.context, host.qp()?);
    let connect = || Connection::connect(context, args.to, qp, &options);
    let connection = match ending::blocking(context, connect).map_err(watching)? {
        Ok(connection) => connection,
        Err(error) => return failed(error, news).map(|()| false),
    };
    tell(news, "established", stands(&connection));
    if args.message.is_some() {
        host.send(connection.qp(), text)?;
    }
    let ending = stay(&host, &connection, args, news)?;
    tell(news, "closed", ending_text(&ending));
    Ok(is_well(&ending))
}

/// Stays connected as long as is asked for, or until the peer has enough.
fn stay(
    host: &Host,
    connection: &Connection,
    args: &ConnectArgs,
    news: Out<'_>,
) -> Result<Ending, Error> {
    if args.message.is_some() {
        // Its completion: the peer has it, or there is no connection any more.
        let done = host.cq.wait_one()?;
        if done.status == WcStatus::Success {
            tell(news, "sent", if host.kind == QpKind::Rc { ARRIVED } else { LEFT });
        } else {
            tell(news, "failed", done.explain());
        }
    }
    if let Some(hold) = args.hold {
        let until = Instant::now() + hold;
        while ending::signal().is_none() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            if connection.closed_within(left.min(LOOK))?.is_some() {
                break;
            }
        }
    }
    host.look(connection.qp(), news)?;
    ending::blocking(&host.context, || connection.disconnect()).map_err(watching)?
}

pub(super) fn listen(args: &ListenArgs, config: &Config, news: Out<'_>) -> Result<Well, Error> {
    let context = Context::open(config)?;
    let is_ud = args.both.transport == Transport::Ud;
    let space = if is_ud { PortSpace::Udp } else { PortSpace::Tcp };
    let at = (context.address(), args.number).into();
    let listener = Listener::with(&context, at, space, args.backlog.into())?;
    tell(news, "listening", format!("at {}", listener.local_addr()));
    // A datagram service has one QP for all.
    let service = Host::on(context.clone(), args.both.transport)?;
    let qp = if is_ud { Some(service.qp()?) } else { None };
    let mut well = true;
    thread::scope(|scope| {
        let mut working = Vec::new();
        let mut left = args.count;
        while left != Some(0) {
            let Some(incoming) = listener.incoming_within(LOOK)? else {
                if ending::signal().is_some() {
                    break;
                }
                continue;
            };
            left = left.map(|left| left - 1);
            let (context, qp) = (context.clone(), qp.as_ref());
            working.push(scope.spawn(move || decide(args, context, incoming, qp, news)));
            working.retain(|one| left.is_some() || !one.is_finished());
        }
        for one in working {
            match one.join() {
                Ok(done) => well &= done?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<(), Error>(())
    })?;
    // What comes again is answered until no packet of theirs is under way.
    drop(listener);
    let start = Instant::now();
    while !context.cm_stats().is_idle() && start.elapsed() < LINGER && ending::signal().is_none() {
        thread::sleep(LOOK);
    }
    Ok(well)
}

fn decide(
    args: &ListenArgs,
    context: Context,
    incoming: Incoming,
    service: Option<&Qp>,
    news: Out<'_>,
) -> Result<Well, Error> {
    let from = incoming.peer_addr().map_or_else(|| "a peer".to_owned(), |at| at.to_string());
    tell(news, "request", format!("from {from} for {}", incoming.kind()));
    if let Some(think) = args.think {
        let codes = (0..32).filter_map(|code| CmTimeout::new(code).ok());
        let longest = codes.into_iter().find(|time| time.duration() >= think);
        // Of a question of service no patience can be asked.
        if service.is_none() {
            incoming.wait_for_me(longest.unwrap_or(CmTimeout::MAX))?;
        }
        if ending::sleep(think).is_err() {
            return Ok(false);
        }
    }
    if args.reject {
        incoming.reject(args.both.say.as_bytes())?;
        return Ok(true);
    }
    if let Some(qp) = service {
        incoming.answer(qp, args.both.say.as_bytes())?;
        return Ok(true);
    }
    let host = Host::on(context, args.both.transport)?;
    let (qp, options) = (host.qp()?, options(&args.both));
    let accept = || incoming.accept(qp, &options);
    let connection = match ending::blocking(&host.context, accept).map_err(watching)? {
        Ok(connection) => connection,
        Err(error) => {
            failed(error, news)?;
            return Ok(false);
        }
    };
    tell(news, "established", stands(&connection));
    loop {
        let ending = connection.closed_within(LOOK)?;
        host.look(connection.qp(), news)?;
        if let Some(ending) = ending {
            tell(news, "closed", ending_text(&ending));
            return Ok(is_well(&ending));
        }
        if ending::signal().is_some() {
            let ending = ending::blocking(&host.context, || connection.disconnect());
            return Ok(is_well(&ending.map_err(watching)??));
        }
    }
}

fn watching(source: std::io::Error) -> Error {
    Error::Host { call: "watching for signals", source }
}

fn stands(connection: &Connection) -> String {
    let (own, peer) = (connection.qp().qpn().value(), connection.info().qpn.value());
    format!("QP {own:#x} is in RTS with QP {peer:#x} of the peer")
}

fn ending_text(ending: &Ending) -> String {
    match ending {
        Ending::ByPeer(_) => "by the peer".to_owned(),
        Ending::Closed(how) => how.to_string().trim_start_matches("closed ").to_owned(),
    }
}

fn is_well(ending: &Ending) -> bool {
    use urxe::cm::Closed::{Agreed, Both};
    matches!(ending, Ending::ByPeer(_) | Ending::Closed(Agreed | Both))
}
