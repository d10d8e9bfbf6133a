//! The agent's line protocol, from our side.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::LabError;
use crate::watch::{Died, LOOK, Watch, Watched};

/// Longer than any request takes.
const PATIENCE: Duration = Duration::from_secs(180);

/// A session with a guest's agent. What it made there ends with it.
#[derive(Debug)]
pub struct Session {
    requests: TcpStream,
    answers: BufReader<Watched>,
}

/// What the agent answered: words that are `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    request: String,
    answer: String,
}

/// A completion, as a guest's CQ gave it. Of one that failed only the first two count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The request's.
    pub wr_id: u64,
    /// `enum ibv_wc_status`.
    pub status: u32,
    /// `enum ibv_wc_opcode`.
    pub opcode: u32,
    /// Bytes received.
    pub byte_len: u32,
    /// `enum ibv_wc_flags`.
    pub flags: u32,
    /// Immediate data, or the key that was invalidated; the flags say which, if any.
    pub extra: u32,
    /// The QP that it is of.
    pub qpn: u32,
    /// The sender's QP (UD).
    pub src_qp: u32,
}

/// Why there is no answer.
fn lost(request: &str, error: io::Error) -> LabError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Died>()) {
        Some(died) => LabError::Died(died.clone()),
        None => LabError::Lost { request: request.to_owned(), error },
    }
}

impl Session {
    pub(crate) fn new(stream: TcpStream, watch: Option<Watch>) -> Result<Self, LabError> {
        let lost = |error| LabError::Lost { request: "connect".to_owned(), error };
        stream.set_read_timeout(Some(LOOK)).map_err(lost)?;
        stream.set_nodelay(true).map_err(lost)?;
        let requests = stream.try_clone().map_err(lost)?;
        let answers = BufReader::new(Watched { stream, watch, patience: PATIENCE });
        Ok(Self { requests, answers })
    }

    /// Sends a request; [`Self::answer`] gives its answer.
    ///
    /// # Errors
    /// Where the connection is lost.
    pub fn begin(&mut self, request: &str) -> Result<(), LabError> {
        let line = format!("{request}\n");
        let sent = self.requests.write_all(line.as_bytes());
        sent.map_err(|error| LabError::Lost { request: request.to_owned(), error })
    }

    /// The answer to the oldest request without one.
    ///
    /// # Errors
    /// Where the agent refuses the request, or the connection is lost.
    pub fn answer(&mut self, request: &str) -> Result<Reply, LabError> {
        let lost = |error| lost(request, error);
        let mut line = String::new();
        if self.answers.read_line(&mut line).map_err(lost)? == 0 {
            return Err(lost(io::ErrorKind::UnexpectedEof.into()));
        }
        let (request, answer) = (request.to_owned(), line.trim_end().to_owned());
        if answer.starts_with("ok") {
            Ok(Reply { request, answer })
        } else {
            Err(LabError::Refused { request, answer })
        }
    }

    /// A request and its answer.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub fn ask(&mut self, request: &str) -> Result<Reply, LabError> {
        self.begin(request)?;
        self.answer(request)
    }

    /// Runs a command of the guest's shell: its status, and what it wrote.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub fn exec(&mut self, command: &str) -> Result<(i32, String), LabError> {
        self.begin(&format!("exec {command}"))?;
        self.executed(command)
    }

    /// How a command that was begun with `exec COMMAND` ended.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub fn executed(&mut self, command: &str) -> Result<(i32, String), LabError> {
        let reply = self.answer(command)?;
        let length = usize::try_from(reply.number("bytes")?).unwrap_or(usize::MAX);
        let mut output = vec![0; length];
        let read = self.answers.read_exact(&mut output);
        read.map_err(|error| lost(command, error))?;
        let status = i32::try_from(reply.number("status")?).unwrap_or(-1);
        Ok((status, String::from_utf8_lossy(&output).into_owned()))
    }
}

impl Reply {
    fn refused(&self) -> LabError {
        LabError::Refused { request: self.request.clone(), answer: self.answer.clone() }
    }

    /// The value of `KEY=`.
    ///
    /// # Errors
    /// Where the answer has none.
    pub fn text<'a>(&'a self, key: &'a str) -> Result<&'a str, LabError> {
        self.all(key).next().ok_or_else(|| self.refused())
    }

    /// The value of `KEY=`, a number in decimal or after 0x.
    ///
    /// # Errors
    /// Where the answer has none.
    pub fn number(&self, key: &str) -> Result<u64, LabError> {
        let text = self.text(key)?;
        let number = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        number.map_err(|_| self.refused())
    }

    /// All values of `KEY=`.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let words = self.answer.split_whitespace();
        words.filter_map(move |word| word.strip_prefix(key)?.strip_prefix('='))
    }

    /// The completions that a poll gave.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub fn completions(&self) -> Result<Vec<Completed>, LabError> {
        self.all("wc").map(|text| completion(text).ok_or_else(|| self.refused())).collect()
    }
}

fn completion(text: &str) -> Option<Completed> {
    let mut fields = text.split(',');
    let wr_id = fields.next()?.parse().ok()?;
    let mut next = || fields.next()?.parse().ok();
    Some(Completed {
        wr_id,
        status: next()?,
        opcode: next()?,
        byte_len: next()?,
        flags: next()?,
        extra: next()?,
        qpn: next()?,
        src_qp: next()?,
    })
}

#[cfg(test)]
mod tests;
