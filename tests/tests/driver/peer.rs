//! A device in another process.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use urxe::Endpoint;

use crate::rig::Side;

/// A program with a device, which does what it is told; see `tests/src/bin/urxe-peer.rs`.
#[derive(Debug)]
pub struct Peer {
    pub process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Of its first QP.
    pub end: Endpoint,
    pub remote: u64,
    pub rkey: u32,
}

/// A QP of a peer.
#[derive(Clone, Debug)]
pub struct PeerQp {
    pub end: Endpoint,
    pub srqn: u32,
}

/// The command of a peer with these variables, to be started anywhere.
pub fn command(settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urxe-peer"));
    command.envs(settings.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

impl Peer {
    pub fn start(settings: &[(&str, &str)]) -> Self {
        Self::greet(command(settings).spawn().unwrap()).unwrap()
    }

    /// Hears the first words of a process that was started.
    ///
    /// # Errors
    /// What it says, where it cannot open its device.
    pub fn greet(mut process: Child) -> Result<Self, String> {
        let orders = process.stdin.take().unwrap();
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        if line.starts_with("error:") {
            process.wait().unwrap();
            return Err(line);
        }
        let parts: Vec<&str> = line.split_whitespace().collect();
        let end = parts[..3].join(" ").parse().unwrap();
        let (remote, rkey) = (parts[3].parse().unwrap(), parts[4].parse().unwrap());
        Ok(Self { process, orders, answers, end, remote, rkey })
    }

    pub fn say(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Says what is done without more words.
    pub fn order(&mut self, order: &str) {
        assert_eq!(self.say(order), "ok", "{order}");
    }

    /// Waits for a completion, which must be a good one and have this in its text.
    pub fn done(&mut self, wanted: &str) {
        let done = self.say("wait");
        assert!(done.contains(wanted) && done.contains("is done"), "{done}");
    }

    /// Makes a QP, which the next orders mean.
    pub fn make(&mut self, kind: &str) -> PeerQp {
        let line = self.say(&format!("new {kind}"));
        let parts: Vec<&str> = line.split_whitespace().collect();
        let end = parts[..3].join(" ").parse().unwrap();
        PeerQp { end, srqn: parts[4].parse().unwrap() }
    }

    pub fn connect(&mut self, side: &Side) {
        self.order(&format!("connect {}", side.qp.endpoint()));
        side.qp.connect(&self.end).unwrap();
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Gone already, where the test killed it.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
