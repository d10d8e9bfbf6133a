//! Which packet may follow which: the messages that a stream of packets is made of.

use urxe_wire::{MAX_MESSAGE, Mtu, Operation, Position};

use crate::fact::Fact;
use crate::report::{Place, Report};
use crate::rule::Rule;

/// Where a stream of packets whose PSNs follow each other stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Message {
    /// Packets before were not seen.
    #[default]
    Unknown,
    /// The last message is over.
    Idle,
    /// In the middle of one.
    Open {
        operation: Operation,
        /// Payload so far, if its first packet was seen.
        bytes: Option<u64>,
        /// What its RETH announced.
        total: Option<u32>,
    },
}

impl Message {
    /// Judges the next packet.
    pub(crate) fn step(&mut self, fact: &Fact, report: &mut Report) {
        let place = &Place::of(fact);
        let operation = fact.info.operation;
        let starts = matches!(fact.info.position, Position::First | Position::Only);
        // IBA 9.7.4.1
        let fault = match (*self, starts) {
            (Self::Open { .. }, true) => Some("the rest of the message before"),
            (Self::Idle, false) => Some("a first or only packet"),
            (Self::Open { operation: before, .. }, false) if before != operation => {
                Some("a packet of the message's own operation")
            }
            _ => None,
        };
        if let Some(wanted) = fault {
            let what = "a packet that cannot follow the one before it";
            report.find(Rule::OpcodeSequence, place, what, fact.info.name, wanted);
        }
        let (before, total) = match (*self, starts) {
            (_, true) => (Some(0), fact.reth.map(|reth| reth.dma_len)),
            (Self::Open { bytes, total, .. }, false) if fault.is_none() => (bytes, total),
            _ => (None, None),
        };
        let total = total.filter(|_| operation == Operation::Write);
        let bytes = before.map(|before| before + u64::from(fact.len));
        let ends = matches!(fact.info.position, Position::Last | Position::Only);
        let fits = lengths(before, bytes, total, ends, place, report);
        *self = if ends {
            Self::Idle
        } else {
            Self::Open { operation, bytes, total: total.filter(|_| fits) }
        };
    }
}

/// Judges the sum of the payloads; `false` if it is beyond what was announced.
fn lengths(
    before: Option<u64>,
    bytes: Option<u64>,
    total: Option<u32>,
    ends: bool,
    place: &Place,
    report: &mut Report,
) -> bool {
    let (Some(before), Some(bytes)) = (before, bytes) else { return true };
    // IBA C9-94
    if bytes > u64::from(MAX_MESSAGE) && before <= u64::from(MAX_MESSAGE) {
        let what = "a message that grows beyond 2^31 bytes";
        report.find(Rule::MessageSize, place, what, bytes, "at most 2147483648");
    }
    let Some(total) = total else { return true };
    let fits = bytes <= u64::from(total);
    if !fits || (ends && bytes != u64::from(total)) {
        let what = "the payloads of an RDMA WRITE do not sum to its RETH's length";
        let got = format!("{bytes} bytes{}", if ends { "" } else { " and more to come" });
        report.find(Rule::DmaLength, place, what, got, format!("{total} bytes"));
    }
    fits
}

/// Judges a payload by the path MTU, which full packets teach; `false` if it cannot be right.
pub(crate) fn payload(fact: &Fact, mtu: &mut Option<u32>, rule: Rule, report: &mut Report) {
    let place = &Place::of(fact);
    let got = format!("{} bytes", fact.len);
    // IBA C9-94
    match fact.info.position {
        Position::First | Position::Middle => match *mtu {
            Some(mtu) if fact.len != mtu => {
                let wanted = format!("{mtu} bytes, the path MTU");
                report.find(rule, place, "payload of a first or middle packet", got, wanted);
            }
            Some(_) => {}
            None if Mtu::from_bytes(fact.len).is_ok() => *mtu = Some(fact.len),
            None => {
                let wanted = "a path MTU: 256, 512, 1024, 2048 or 4096 bytes";
                report.find(rule, place, "payload of a first or middle packet", got, wanted);
            }
        },
        Position::Last => {
            let most = mtu.unwrap_or(Mtu::B4096.bytes());
            if fact.len == 0 || fact.len > most {
                let wanted = format!("1 to {most} bytes");
                report.find(rule, place, "payload of a last packet", got, wanted);
            }
        }
        Position::Only => {
            let most = mtu.unwrap_or(Mtu::B4096.bytes());
            if fact.len > most {
                let wanted = format!("at most {most} bytes");
                report.find(rule, place, "payload of an only packet", got, wanted);
            }
        }
    }
}
