//! What a message says, in a sentence.

use std::time::Duration;

use urxe_wire::CmMessage;
use urxe_wire::cm::{
    CmTimeout, IpHeader, Mra, Rej, RejReason, Rep, Req, SidrRep, SidrReq, SidrStatus,
    TransportService,
};

#[cfg(test)]
mod tests;

/// A message in a sentence, from the view of its reader: `sent` by us, or by the peer.
pub(super) fn explain(message: &CmMessage, sent: bool) -> String {
    let who = if sent { "We" } else { "The peer" };
    let s = if sent { "" } else { "s" };
    match message {
        CmMessage::Req(req) => format!("{who} ask{s} for {}", request(req)),
        CmMessage::Mra(mra) => format!("{who} ask{s} for patience: {}", patience(mra)),
        CmMessage::Rej(rej) => format!("{who} refuse{s}: {}", refusal(rej)),
        CmMessage::Rep(rep) => format!("{who} accept{s} {}", acceptance(rep)),
        CmMessage::Rtu(rtu) => {
            format!(
                "{who} say{s} that the QP is ready: the connection stands{}",
                said(&rtu.private_data)
            )
        }
        CmMessage::Dreq(dreq) => format!(
            "{who} end{s} the connection of QP {:#x}: nothing more comes{}",
            dreq.remote_qpn.value(),
            said(&dreq.private_data)
        ),
        CmMessage::Drep(drep) => {
            let have = if sent { "have" } else { "has" };
            let data = said(&drep.private_data);
            format!("{who} agree{s}, and {have} ended it, too{data}")
        }
        CmMessage::SidrReq(req) => format!("{who} ask{s} for the QP of {}", question(req)),
        CmMessage::SidrRep(rep) => format!("{who} answer{s}: {}", answer(rep)),
        CmMessage::Lap(_) => format!("{who} ask{s} for an alternate path"),
        CmMessage::Apr(apr) => format!("{who} answer{s} about an alternate path: {}", apr.status),
    }
}

fn request(req: &Req) -> String {
    let transport = match (req.transport_service, req.extended_transport) {
        (TransportService::Extended, 1) => "XRC",
        (service, _) => match service {
            TransportService::Rc => "RC",
            TransportService::Uc => "UC",
            TransportService::Rd => "RD",
            _ => "an unknown transport",
        },
    };
    let mtu = req.mtu.mtu().map_or(0, urxe_wire::Mtu::bytes);
    format!(
        "{transport} between its QP {:#x} and one of the service{}. It serves {} READs at once and \
         would like {}; path MTU {mtu}; packets to it start at PSN {}. An answer is expected \
         within {}, else it asks again, {} times{}",
        req.local_qpn.value(),
        from(req.ip_header().ok().map(|(ip, _)| ip)),
        req.responder_resources,
        req.initiator_depth,
        req.starting_psn,
        seconds(req.remote_cm_response_timeout),
        req.max_cm_retries,
        said(req.ip_header().map_or(&req.private_data[..], |(_, data)| data)),
    )
}

fn from(ip: Option<IpHeader>) -> String {
    ip.map_or_else(String::new, |ip| format!(", as {}", ip.source()))
}

fn patience(mra: &Mra) -> String {
    let (message, time) = (mra.message.text(), seconds(mra.service_timeout));
    format!("the {message} has come, its answer takes up to {time}{}", said(&mra.private_data))
}

fn refusal(rej: &Rej) -> String {
    let more = match rej.reason {
        RejReason::InvalidServiceId => " (nothing listens to that port)",
        RejReason::ConsumerDefined => " (the program said so)",
        RejReason::Timeout => " (no answer came)",
        _ => "",
    };
    format!("{}{more}{}", rej.reason.text(), said(&rej.private_data))
}

fn acceptance(rep: &Rep) -> String {
    let qpn = if rep.local_eecn != 0 { rep.local_eecn } else { rep.local_qpn.value() };
    format!(
        "with QP {qpn:#x}. It serves {} READs at once and will have {} outstanding; packets to it \
         start at PSN {}{}",
        rep.responder_resources,
        rep.initiator_depth,
        rep.starting_psn,
        said(&rep.private_data)
    )
}

fn question(req: &SidrReq) -> String {
    let data = req.ip_header().map_or(&req.private_data[..], |(_, data)| data);
    let as_whom = from(req.ip_header().ok().map(|(ip, _)| ip));
    format!("service {}{as_whom}{}", req.service_id, said(data))
}

fn answer(rep: &SidrRep) -> String {
    let data = said(&rep.private_data);
    match rep.status {
        SidrStatus::Success => {
            format!("datagrams go to QP {:#x} with Q_Key {:#x}{data}", rep.qpn.value(), rep.qkey.0)
        }
        status => format!("no, {}{data}", status.text()),
    }
}

fn seconds(time: CmTimeout) -> String {
    let time = time.duration();
    match time {
        t if t < Duration::from_millis(1) => format!("{} us", t.as_micros()),
        t if t < Duration::from_secs(1) => format!("{} ms", t.as_millis()),
        t => format!("{:.1} s", t.as_secs_f64()),
    }
}

/// Private data: as text where it is some, else in hexadecimal digits, without the zeros behind it.
pub(super) fn text_of(data: &[u8]) -> Option<String> {
    let len = data.iter().rposition(|&byte| byte != 0)? + 1;
    let data = &data[..len];
    let plain = std::str::from_utf8(data).ok().filter(|t| !t.chars().any(char::is_control));
    Some(match plain {
        Some(text) => format!("\u{201c}{text}\u{201d}"),
        None => data.iter().map(|byte| format!("{byte:02x}")).collect(),
    })
}

fn said(data: &[u8]) -> String {
    text_of(data).map_or_else(|| ".".to_owned(), |text| format!("; private data: {text}."))
}
