//! `urxe cm`: a connection by hand, each message of it shown and explained.

mod explain;
mod news;
mod side;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand, value_parser};
use urxe::cm::{CmTimeout, Timing};

use crate::command::{Done, Failure};
use crate::common::Common;
use crate::dissect::Palette;
use crate::pingpong::Transport;
use crate::{trace, units};

use news::{News, Printer, Watch};

/// The port that nothing else has: the one of rping and the like.
const PORT: u16 = 7471;

/// Which side of a connection.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 done; 1 the connection was refused, was not answered, or did not end as agreed; \
2 bad usage, or a device that cannot be had.")]
pub struct CmArgs {
    /// Which side
    #[command(subcommand)]
    pub side: Side,
}

/// The sides of a connection.
#[derive(Debug, Subcommand)]
pub enum Side {
    /// Take connections to a port, until interrupted
    Listen(ListenArgs),
    /// Connect with who listens to a port, then disconnect
    Connect(ConnectArgs),
}

/// What is taken.
#[derive(Debug, Args)]
pub struct ListenArgs {
    /// Port; any free one for 0
    #[arg(value_name = "PORT", default_value_t = PORT)]
    pub number: u16,
    /// End after so many requests, when their connections have ended
    #[arg(short = 'n', long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Refuse every request
    #[arg(long)]
    pub reject: bool,
    /// Take so long to decide, such as 2s, and say so by an MRA
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub think: Option<Duration>,
    /// Requests that may wait for an answer
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = value_parser!(u16).range(1..))]
    pub backlog: u16,
    /// What both sides have
    #[command(flatten)]
    pub both: BothArgs,
}

/// With whom, and what then.
#[derive(Debug, Args)]
pub struct ConnectArgs {
    /// Who listens, as 127.0.0.2:7471; an IPv6 address stands in brackets
    #[arg(value_name = "ADDRESS:PORT")]
    pub to: SocketAddr,
    /// A message to send once it is connected, up to 4096 bytes
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Stay connected so long, such as 500ms
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub hold: Option<Duration>,
    /// What both sides have
    #[command(flatten)]
    pub both: BothArgs,
}

/// What both sides have.
#[derive(Debug, Args)]
pub struct BothArgs {
    /// Kind of the QPs; with ud the listener only tells which QP serves
    #[arg(short, long, value_enum, default_value = "rc")]
    pub transport: Transport,
    /// Private data of our request, acceptance or refusal, as text
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub say: String,
    /// How soon a message must be answered before it is sent again, such as 500ms; rounded up to
    /// 4.096 us times a power of two
    #[arg(long, value_name = "TIME", value_parser = answer_in, default_value = "4s")]
    pub answer_in: CmTimeout,
    /// How often a message is sent again
    #[arg(long, value_name = "N", default_value_t = 15)]
    #[arg(value_parser = value_parser!(u8).range(0..=15))]
    pub retries: u8,
    /// Settings of the device
    #[command(flatten)]
    pub common: Common,
}

/// The shortest time that a message can say which is no shorter.
fn answer_in(text: &str) -> Result<CmTimeout, String> {
    let wanted = units::duration(text)?;
    (0..32)
        .filter_map(|code| CmTimeout::new(code).ok())
        .find(|time| time.duration() >= wanted)
        .ok_or_else(|| format!("`{text}` is longer than a message can say, 8796s"))
}

impl BothArgs {
    const fn timing(&self) -> Timing {
        let (remote_response, local_response) = (self.answer_in, self.answer_in);
        Timing { remote_response, local_response, max_retries: self.retries }
    }
}

/// Does it, and shows what passes.
pub(crate) fn run(args: &CmArgs, palette: &Palette, out: &mut dyn Write) -> Result<Done, Failure> {
    let both = match &args.side {
        Side::Listen(listen) => &listen.both,
        Side::Connect(connect) => &connect.both,
    };
    let mut config = both.common.config()?;
    let (sender, receiver) = mpsc::channel();
    let watch = Arc::new(Watch::new(sender.clone()));
    config.observer = Some(trace::both(config.observer.take(), watch));
    let mut printer = Printer::new(both.common.json, *palette);
    thread::scope(|scope| {
        let work = scope.spawn(move || {
            let done = match &args.side {
                Side::Listen(listen) => side::listen(listen, &config, &sender),
                Side::Connect(connect) => side::connect(connect, &config, &sender),
            };
            let why = done.map_err(|error| error.to_string());
            // Where nobody reads any more, the end is not news.
            let _ = sender.send(News::Over);
            why
        });
        for news in receiver {
            if matches!(news, News::Over) {
                break;
            }
            printer.print(out, &news)?;
        }
        match work.join() {
            Ok(Ok(all_well)) => Ok(Done::found(!all_well)),
            Ok(Err(why)) => Err(why.into()),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
