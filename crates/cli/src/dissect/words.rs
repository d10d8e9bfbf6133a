//! Coded fields in words.

use urxe_wire::{FlushLevel, NakCode, Syndrome};

use super::{fields::Octets, outcome::Icrc};

/// A syndrome: `ACK credits 31 (no limit)`, `RNR NAK 0.64 ms`, `NAK PSN sequence`.
#[must_use]
pub(crate) fn syndrome(syndrome: Syndrome) -> String {
    match syndrome {
        Syndrome::Ack(credit) => {
            let code = credit.code();
            match credit.messages() {
                None => format!("ACK credits {code} (no limit)"),
                Some(1) => format!("ACK credits {code} (1 message)"),
                Some(n) => format!("ACK credits {code} ({n} messages)"),
            }
        }
        Syndrome::RnrNak(timer) => {
            let microseconds = timer.duration().as_micros();
            format!("RNR NAK {}.{:02} ms", microseconds / 1000, microseconds / 10 % 100)
        }
        Syndrome::Nak(code) => format!("NAK {}", nak(code)),
        Syndrome::Reserved(bits) => format!("reserved syndrome {bits:#04x}"),
    }
}

const fn nak(code: NakCode) -> &'static str {
    match code {
        NakCode::PsnSequence => "PSN sequence",
        NakCode::InvalidRequest => "invalid request",
        NakCode::RemoteAccess => "remote access",
        NakCode::RemoteOperational => "remote operational",
        NakCode::InvalidRdRequest => "invalid RD request",
    }
}

/// How far a FLUSH carries data.
#[must_use]
pub(crate) fn flush_level(level: FlushLevel) -> String {
    let mut words = Vec::new();
    if level.contains(FlushLevel::GLOBAL) {
        words.push("global visibility".to_owned());
    }
    if level.contains(FlushLevel::PERSISTENT) {
        words.push("persistence".to_owned());
    }
    let known = FlushLevel::GLOBAL.union(FlushLevel::PERSISTENT).bits();
    if level.bits() & !known != 0 {
        words.push(format!("reserved bits {:#x}", level.bits() & !known));
    }
    if words.is_empty() { "none".to_owned() } else { words.join(" and ") }
}

/// The verdict on an ICRC.
#[must_use]
pub(crate) fn icrc(icrc: Icrc) -> String {
    match icrc {
        Icrc::Ok => "right".to_owned(),
        Icrc::Bad { wanted, .. } => format!("wrong, wanted {}", Octets(&wanted)),
        Icrc::Unseen => "not seen: the frame is cut short".to_owned(),
    }
}
