//! `urxe pingpong`: speaks with ibv_rc_pingpong, ibv_uc_pingpong and ibv_ud_pingpong.

mod exchange;

use std::io::Write;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum, value_parser};
use serde::Serialize;
use urxe::{
    Access, AhAttr, CompChannel, Completion, Context, Cq, Endpoint, Mr, Pd, Qp, QpCaps, QpKind,
    SendOp, SendWr, UdDest, WcOpcode, WcStatus,
};
use urxe_wire::{AckTimeout, Mtu, QKey, RnrTimer};

use crate::command::{Failure, tell};
use crate::common::Common;
use crate::ending::{self, Ended};

/// Bytes before a datagram's payload.
const GRH: usize = 40;
/// The Q_Key of ibv_ud_pingpong.
const Q_KEY: QKey = QKey(0x1111_1111);

/// The transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// Reliable connection
    Rc,
    /// Unreliable connection
    Uc,
    /// Unreliable datagram
    Ud,
}

/// What to play, and with whom.
#[derive(Debug, Args)]
#[command(after_help = "\
The stock tools can be the other side: ibv_rc_pingpong -g 1 HOST, where 1 is the index of their \
RoCEv2 GID.\n\
Exit status: 0 done; 2 bad usage, no connection, or a message that was lost or refused.")]
pub struct PingpongArgs {
    /// Transport
    #[arg(value_enum)]
    pub transport: Transport,
    /// The server to play with; without it, be the server
    pub host: Option<String>,
    /// TCP port for exchanging addresses; a server takes any free one for 0
    #[arg(long, value_name = "N", default_value_t = 18515)]
    pub tcp_port: u16,
    /// Bytes of a message, 1 to 2^31; UD: at most the MTU
    #[arg(short, long, value_name = "BYTES", default_value_t = 4096)]
    #[arg(value_parser = value_parser!(u32).range(1..=1 << 31))]
    pub size: u32,
    /// Exchanges
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    pub iters: u32,
    /// Receives posted at a time
    #[arg(short, long, value_name = "N", default_value_t = 500)]
    #[arg(value_parser = value_parser!(u32).range(1..=16383))]
    pub rx_depth: u32,
    /// Sleep for completions instead of polling
    #[arg(short, long)]
    pub events: bool,
    /// How long the other side may be silent; a server waits for its client without end
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    #[arg(value_parser = value_parser!(u64).range(1..=86400))]
    pub timeout: u64,
    /// Settings of the device
    #[command(flatten)]
    pub common: Common,
}

/// What came of a game.
#[derive(Debug, Serialize)]
struct Report {
    bytes: u64,
    iters: u32,
    seconds: f64,
    mbit_per_second: f64,
    micros_per_iter: f64,
}

/// A game under way.
struct Game<'a> {
    args: &'a PingpongArgs,
    qp: Qp,
    cq: Cq,
    channel: Option<CompChannel>,
    mr: Mr,
    /// Bytes of a message.
    size: usize,
    /// Where a datagram's payload starts.
    skip: usize,
    dest: Option<UdDest>,
    mtu: Mtu,
}

/// Plays, and tells how fast it was.
pub(crate) fn run(args: &PingpongArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let config = args.common.config()?;
    let context = Context::open(&config)?;
    let pd = context.alloc_pd()?;
    let mut game = Game::new(args, &context, &pd)?;
    game.post_receives(args.rx_depth)?;
    let own = game.qp.endpoint();
    say(args, out, "local", &own)?;
    let patience = Duration::from_secs(args.timeout);
    let ready = |peer: &Endpoint| game.ready(peer);
    let (peer, talk) = match &args.host {
        Some(host) => exchange::client((host, args.tcp_port), patience, &own, ready)?,
        None => {
            let waiting = |port| tell(&format!("waiting on TCP port {port}"));
            exchange::server(args.tcp_port, patience, &own, waiting, ready)?
        }
    };
    say(args, out, "remote", &peer)?;
    let ah = if args.transport == Transport::Ud {
        let attr = AhAttr { dst: peer.address, ..AhAttr::default() };
        let ah = pd.create_ah(&attr)?;
        game.dest = Some(UdDest { ah: ah.id(), qpn: peer.qpn, qkey: Q_KEY });
        Some(ah)
    } else {
        None
    };
    let report = game.play()?;
    talk.over();
    drop((game, ah));
    if args.common.json {
        serde_json::to_writer(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        let Report { bytes, iters, seconds, mbit_per_second, micros_per_iter } = report;
        writeln!(out, "{bytes} bytes in {seconds:.2} seconds = {mbit_per_second:.2} Mbit/sec")?;
        writeln!(out, "{iters} iters in {seconds:.2} seconds = {micros_per_iter:.2} usec/iter")?;
    }
    Ok(())
}

fn say(args: &PingpongArgs, out: &mut dyn Write, who: &str, end: &Endpoint) -> std::io::Result<()> {
    if args.common.json {
        return Ok(());
    }
    let (qpn, psn, gid) = (end.qpn.value(), end.psn.value(), end.address);
    writeln!(out, "  {who:>6} address:  QPN {qpn:#08x}, PSN {psn:#08x}, GID {gid}")?;
    out.flush()
}

impl<'a> Game<'a> {
    fn new(args: &'a PingpongArgs, context: &Context, pd: &Pd) -> Result<Self, Failure> {
        let kind = match args.transport {
            Transport::Rc => QpKind::Rc,
            Transport::Uc => QpKind::Uc,
            Transport::Ud => QpKind::Ud,
        };
        let port = context.query_port();
        let most = port.active_mtu.bytes() as usize;
        let size = args.size as usize;
        if kind == QpKind::Ud && size > most {
            return Err(format!(
                "a datagram holds at most {most} bytes here, not {size}: give --size {most}"
            )
            .into());
        }
        let skip = if kind == QpKind::Ud { GRH } else { 0 };
        let mr = pd.register(size + skip, Access::LOCAL_WRITE)?;
        let channel = args.events.then(|| context.create_comp_channel()).transpose()?;
        let depth = args.rx_depth.saturating_add(1);
        // As the stock tools set it; --mtu sets another path MTU.
        let mtu = if args.common.mtu.is_some() { port.active_mtu } else { Mtu::B1024 };
        let mtu = mtu.min(port.active_mtu);
        let cq = match &channel {
            Some(channel) => context.create_cq_on(depth, channel)?,
            None => context.create_cq(depth)?,
        };
        let caps = QpCaps {
            max_send_wr: 1,
            max_recv_wr: args.rx_depth,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        let qp = pd
            .qp(kind)
            .cq(&cq)
            .caps(caps)
            .attr(|attr| {
                // As the stock tools set them.
                attr.path_mtu = mtu;
                attr.timeout = AckTimeout::new(14).unwrap_or_default();
                attr.min_rnr_timer = RnrTimer::new(12).unwrap_or_default();
                (attr.max_rd_atomic, attr.max_dest_rd_atomic) = (1, 1);
                (attr.retry_cnt, attr.rnr_retry) = (7, 7);
            })
            .build()?;
        if kind == QpKind::Ud {
            qp.ready(Q_KEY)?;
        } else {
            // Receives may be posted from INIT on.
            qp.init()?;
        }
        Ok(Self { args, qp, cq, channel, mr, size, skip, dest: None, mtu })
    }

    /// Makes the QP ready for its peer.
    fn ready(&self, peer: &Endpoint) -> Result<(), Failure> {
        if self.args.transport != Transport::Ud {
            self.qp.connect(peer)?;
        }
        if self.channel.is_some() {
            self.cq.req_notify(urxe::Arm::Next)?;
        }
        Ok(())
    }

    fn post_receives(&self, n: u32) -> Result<(), Failure> {
        let sge = [self.mr.sge(0..self.size + self.skip)];
        for _ in 0..n {
            self.qp.post_recv(RECV, &sge)?;
        }
        Ok(())
    }

    fn post_send(&self) -> Result<(), Failure> {
        let sges = [self.mr.sge(self.skip..self.skip + self.size)];
        let send = SendWr::new(SEND, SendOp::Send { imm: None }, &sges);
        self.qp.post(&SendWr { dest: self.dest, ..send })?;
        Ok(())
    }

    /// Ping and pong, the client first.
    fn play(&self) -> Result<Report, Failure> {
        let iters = self.args.iters;
        let start = Instant::now();
        let (mut sent, mut received, mut posted) = (0, 0, self.args.rx_depth);
        let mut pending = RECV;
        if self.args.host.is_some() {
            self.post_send()?;
            pending |= SEND;
        }
        while sent < iters || received < iters {
            let first = sent == 0 && received == 0;
            let next = self.next().map_err(|why| if first { self.hinted(why) } else { why })?;
            let Some(done) = next else {
                return Err(Ended::after(format!("{received} of {iters} exchanges")));
            };
            if done.status != WcStatus::Success {
                let refused = matches!(done.status, WcStatus::RemInvReqErr | WcStatus::WrFlushErr);
                let hint = if first && refused { self.compare_mtu() } else { String::new() };
                return Err((done.explain() + &hint).into());
            }
            if done.opcode == WcOpcode::Recv {
                received += 1;
                posted -= 1;
                pending &= !RECV;
                if posted <= 1 {
                    self.post_receives(self.args.rx_depth - posted)?;
                    posted = self.args.rx_depth;
                }
            } else {
                sent += 1;
                pending &= !SEND;
            }
            if pending == 0 && sent < iters {
                self.post_send()?;
                pending = RECV | SEND;
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let bytes = u64::from(self.args.size) * u64::from(iters) * 2;
        #[expect(clippy::cast_precision_loss, reason = "for a reader")]
        let bits = bytes as f64 * 8.0;
        Ok(Report {
            bytes,
            iters,
            seconds,
            mbit_per_second: bits / seconds / 1e6,
            micros_per_iter: seconds * 1e6 / f64::from(iters.max(1)),
        })
    }

    /// A wait for the first message that came to nothing, as its packets were of another size.
    fn hinted(&self, why: Failure) -> Failure {
        match why.downcast_ref::<urxe::Error>() {
            Some(urxe::Error::TimedOut { counters, .. })
                if counters.contains("drop_broken_message") =>
            {
                format!("{why}{}", self.compare_mtu()).into()
            }
            _ => why,
        }
    }

    /// What to look at first where packets arrive and the first message does not.
    fn compare_mtu(&self) -> String {
        format!("; is --mtu the same at both ends? the path MTU is {} here", self.mtu.bytes())
    }

    /// The next completion, polled for or slept for; `None` once a signal has come.
    fn next(&self) -> Result<Option<Completion>, Failure> {
        let patience = Duration::from_secs(self.args.timeout);
        // In a game that goes well, too, nobody would else look.
        if ending::signal().is_some() {
            return Ok(None);
        }
        let Some(channel) = &self.channel else {
            return Ok(ending::completion(&self.cq, patience)?);
        };
        let until = Instant::now() + patience;
        loop {
            if let Some(done) = self.cq.poll_one()? {
                return Ok(Some(done));
            }
            match ending::readable(channel.fd(), Some(until)) {
                Ok(true) => while channel.take_event().is_some() {},
                // Tells what the NIC counted.
                Ok(false) => {
                    let last = self.cq.wait_for(Duration::ZERO);
                    return last.map(Some).map_err(|why| ending::waited(why, patience).into());
                }
                Err(_) if ending::signal().is_some() => return Ok(None),
                Err(e) => return Err(e.into()),
            }
            self.cq.req_notify(urxe::Arm::Next)?;
        }
    }
}

/// Numbers of the requests, as bits.
const RECV: u64 = 1;
const SEND: u64 = 2;
