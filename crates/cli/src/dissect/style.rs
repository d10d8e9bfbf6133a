//! Colours, or none.

use std::fmt;

use anstyle::{AnsiColor, Style};
use urxe_wire::{Opcode, Operation, Syndrome};

/// What each kind of text looks like.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    /// Numbers, times and labels, which lead the eye nowhere.
    pub dim: Style,
    /// Addresses.
    pub address: Style,
    /// SEND.
    pub send: Style,
    /// RDMA WRITE.
    pub write: Style,
    /// RDMA READ and its responses.
    pub read: Style,
    /// Atomics and FLUSH.
    pub atomic: Style,
    /// ACK.
    pub ack: Style,
    /// Connection management.
    pub cm: Style,
    /// AckReq and SE.
    pub flags: Style,
    /// What asks for attention but is no fault: RNR NAK, congestion, a cut frame.
    pub warn: Style,
    /// What is wrong.
    pub bad: Style,
    /// What is right.
    pub good: Style,
    /// Names of headers.
    pub header: Style,
}

impl Palette {
    /// No colours.
    pub const PLAIN: Self = {
        let s = Style::new();
        Self {
            dim: s,
            address: s,
            send: s,
            write: s,
            read: s,
            atomic: s,
            ack: s,
            cm: s,
            flags: s,
            warn: s,
            bad: s,
            good: s,
            header: s,
        }
    };

    /// Colours that read on dark and on light grounds.
    pub const COLOURED: Self = {
        const fn colour(c: AnsiColor) -> Style {
            c.on_default()
        }
        Self {
            dim: Style::new().dimmed(),
            address: Style::new(),
            send: colour(AnsiColor::Green).bold(),
            write: colour(AnsiColor::Blue).bold(),
            read: colour(AnsiColor::Cyan).bold(),
            atomic: colour(AnsiColor::Magenta).bold(),
            ack: colour(AnsiColor::Green),
            cm: colour(AnsiColor::Magenta),
            flags: colour(AnsiColor::Cyan),
            warn: colour(AnsiColor::Yellow).bold(),
            bad: colour(AnsiColor::Red).bold(),
            good: colour(AnsiColor::Green),
            header: Style::new().bold(),
        }
    };

    /// The style of an opcode's name.
    #[must_use]
    pub fn opcode(&self, opcode: Opcode) -> Style {
        match opcode.info().map(|info| info.operation) {
            Some(Operation::Send) => self.send,
            Some(Operation::Write) => self.write,
            Some(Operation::ReadRequest | Operation::ReadResponse) => self.read,
            Some(
                Operation::CompareSwap
                | Operation::FetchAdd
                | Operation::AtomicAcknowledge
                | Operation::AtomicWrite
                | Operation::Flush,
            ) => self.atomic,
            Some(Operation::Acknowledge | Operation::Resync) => self.ack,
            Some(Operation::CongestionNotification) => self.warn,
            None => self.bad,
        }
    }

    /// The style of a syndrome.
    #[must_use]
    pub fn syndrome(&self, syndrome: Syndrome) -> Style {
        match syndrome {
            Syndrome::Ack(_) => self.ack,
            Syndrome::RnrNak(_) => self.warn,
            Syndrome::Nak(_) | Syndrome::Reserved(_) => self.bad,
        }
    }
}

/// `text` in a style, for `write!`.
pub fn paint<T: fmt::Display>(style: Style, text: T) -> impl fmt::Display {
    struct Painted<T>(Style, T);
    impl<T: fmt::Display> fmt::Display for Painted<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let Self(style, text) = self;
            write!(f, "{style}{text}{style:#}")
        }
    }
    Painted(style, text)
}
