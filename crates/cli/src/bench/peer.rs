//! The other process: the bench itself, started again, which does what it is told line by line.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::side::{PATIENCE, Remote, Spec};
use crate::command::Failure;

mod serve;

pub(super) use serve::{Orders, serve};

/// What the other process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Order {
    /// Opens a device; more than one may be open.
    Open {
        id: u32,
        spec: Spec,
    },
    /// Connects its QPs.
    Connect {
        id: u32,
        ends: Vec<String>,
    },
    Fill {
        id: u32,
        seed: u64,
        len: usize,
    },
    Check {
        id: u32,
        seed: u64,
        len: usize,
    },
    /// Takes messages until told to stop.
    Receive {
        id: u32,
    },
    /// Answers messages until told to stop.
    Answer {
        id: u32,
        writes: Option<Remote>,
    },
    /// Takes datagrams until told to stop, then says how fast they came.
    TakeDatagrams {
        bytes: usize,
        offload: bool,
    },
    /// Takes a stream until it ends, then says how fast it came.
    TakeStream,
    /// Sends datagrams back until one of another length comes.
    Echo {
        bytes: usize,
        spins: bool,
    },
    Stop,
    /// Its CPU time, nanoseconds.
    CpuTime,
    /// What so many QPs take of its memory, bytes each.
    Memory {
        qps: usize,
        settings: Vec<String>,
    },
    Close {
        id: u32,
    },
}

/// What it says.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Reply {
    Done,
    Opened { ends: Vec<String>, remote: Remote },
    Listening(SocketAddr),
    Took(Took),
    Number(f64),
    Failed(String),
}

/// Bytes, and in what time they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Took {
    pub(super) bytes: u64,
    pub(super) nanos: u64,
}

/// The other process, as the first sees it. It ends with this.
#[derive(Debug)]
pub(super) struct Peer {
    child: Child,
    orders: ChildStdin,
    replies: Receiver<String>,
    /// What it said before it was asked: that it failed.
    early: Option<String>,
    next: u32,
}

impl Peer {
    pub(super) fn start() -> Result<Self, Failure> {
        let own = std::env::current_exe()?;
        let mut command = Command::new(own);
        command.args(["bench", "--peer"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("starting the other process: {e}"))?;
        let missing = "the other process has no pipes";
        let (orders, out) = child.stdin.take().zip(child.stdout.take()).ok_or(missing)?;
        let (sender, replies) = channel();
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, orders, replies, early: None, next: 0 })
    }

    fn ask(&mut self, order: &Order) -> Result<Reply, Failure> {
        self.tell(order)?;
        self.reply()
    }

    fn tell(&mut self, order: &Order) -> Result<(), Failure> {
        let line = serde_json::to_string(order)?;
        writeln!(self.orders, "{line}").map_err(|e| format!("the other process is gone: {e}"))?;
        Ok(())
    }

    /// Whether it has said something, while it was to work: that it failed, which the next answer
    /// will tell. There is no use in waiting for it then.
    pub(super) fn has_failed(&mut self) -> bool {
        if self.early.is_none() {
            self.early = self.replies.try_recv().ok();
        }
        self.early.is_some()
    }

    fn reply(&mut self) -> Result<Reply, Failure> {
        // Longer than its own patience, so that it can say what it waits for.
        let patience = PATIENCE + Duration::from_secs(10);
        let early = self.early.take().map(Ok);
        match early.unwrap_or_else(|| self.replies.recv_timeout(patience)) {
            Ok(line) => match serde_json::from_str(&line)? {
                Reply::Failed(why) => Err(format!("the other process: {why}").into()),
                reply => Ok(reply),
            },
            Err(RecvTimeoutError::Timeout) => {
                let seconds = patience.as_secs();
                Err(format!("the other process said nothing for {seconds} s").into())
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err("the other process ended; its own message may say why".into())
            }
        }
    }

    fn done(&mut self, order: &Order) -> Result<(), Failure> {
        self.tell(order)?;
        self.done_by_itself()
    }

    /// Opens a device there; its number, its QPs and its region.
    pub(super) fn open(&mut self, spec: &Spec) -> Result<(u32, Vec<String>, Remote), Failure> {
        let id = self.next;
        self.next += 1;
        match self.ask(&Order::Open { id, spec: spec.clone() })? {
            Reply::Opened { ends, remote } => Ok((id, ends, remote)),
            other => Err(unexpected(&other)),
        }
    }

    pub(super) fn connect(&mut self, id: u32, ends: Vec<String>) -> Result<(), Failure> {
        self.done(&Order::Connect { id, ends })
    }

    pub(super) fn fill(&mut self, id: u32, seed: u64, len: usize) -> Result<(), Failure> {
        self.done(&Order::Fill { id, seed, len })
    }

    pub(super) fn check(&mut self, id: u32, seed: u64, len: usize) -> Result<(), Failure> {
        self.done(&Order::Check { id, seed, len })
    }

    pub(super) fn close(&mut self, id: u32) -> Result<(), Failure> {
        self.done(&Order::Close { id })
    }

    pub(super) fn receive(&mut self, id: u32) -> Result<(), Failure> {
        self.done(&Order::Receive { id })
    }

    pub(super) fn answer(&mut self, id: u32, writes: Option<Remote>) -> Result<(), Failure> {
        self.done(&Order::Answer { id, writes })
    }

    pub(super) fn take_datagrams(
        &mut self,
        bytes: usize,
        offload: bool,
    ) -> Result<SocketAddr, Failure> {
        self.listening(&Order::TakeDatagrams { bytes, offload })
    }

    pub(super) fn take_stream(&mut self) -> Result<SocketAddr, Failure> {
        self.listening(&Order::TakeStream)
    }

    pub(super) fn echo(&mut self, bytes: usize, spins: bool) -> Result<SocketAddr, Failure> {
        self.listening(&Order::Echo { bytes, spins })
    }

    fn listening(&mut self, order: &Order) -> Result<SocketAddr, Failure> {
        match self.ask(order)? {
            Reply::Listening(address) => Ok(address),
            other => Err(unexpected(&other)),
        }
    }

    /// Ends what it does until it is told to stop.
    pub(super) fn stop(&mut self) -> Result<(), Failure> {
        self.done(&Order::Stop)
    }

    /// As [`Self::stop`]; what it took.
    pub(super) fn stop_taking(&mut self) -> Result<Took, Failure> {
        self.tell(&Order::Stop)?;
        self.took()
    }

    /// Waits for the end of what ends by itself.
    pub(super) fn done_by_itself(&mut self) -> Result<(), Failure> {
        match self.reply()? {
            Reply::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// What it took, once what it takes has ended by itself.
    pub(super) fn took(&mut self) -> Result<Took, Failure> {
        match self.reply()? {
            Reply::Took(took) => Ok(took),
            other => Err(unexpected(&other)),
        }
    }

    pub(super) fn cpu_time(&mut self) -> Result<f64, Failure> {
        self.number(&Order::CpuTime)
    }

    pub(super) fn memory(&mut self, qps: usize, settings: &[String]) -> Result<f64, Failure> {
        self.number(&Order::Memory { qps, settings: settings.to_vec() })
    }

    fn number(&mut self, order: &Order) -> Result<f64, Failure> {
        match self.ask(order)? {
            Reply::Number(n) => Ok(n),
            other => Err(unexpected(&other)),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unexpected(reply: &Reply) -> Failure {
    format!("the other process said {reply:?}, which is no answer to what it was asked").into()
}
