//! A SEND of 64 KiB from one QP to another on this host, all of it looked at.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use urxe::{
    Access, Address, Config, Context, Cq, PortKind, PortStatsSnapshot, QpKind, SendOp, WcStatus,
};

use crate::ending;

/// Bytes sent.
const LEN: usize = 64 << 10;
/// How long it may take: more than all retries of a packet.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was seen on the way.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) from: Option<IpAddr>,
    pub(super) to: Option<IpAddr>,
    /// Counted by the sender's port.
    pub(super) sent: PortStatsSnapshot,
    /// Counted by the receiver's port.
    pub(super) came: PortStatsSnapshot,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |address: Option<IpAddr>| address.map_or_else(String::new, |a| a.to_string());
        let (from, to) = (name(self.from), name(self.to));
        write!(f, "RC SEND of {LEN} bytes, {from} to {to}: all bytes right")
    }
}

/// Sends from `context` to a second device of this host; where none can be reached from its
/// address, to itself.
pub(super) fn run(config: &Config, context: &Context) -> Result<Seen, String> {
    let second = second(config, context).map_err(|e| format!("a second device: {e}"))?;
    send(context, second.as_ref().unwrap_or(context))
}

fn second(config: &Config, context: &Context) -> Result<Option<Context>, urxe::Error> {
    if context.address().is_ipv6() || config.port != PortKind::Udp {
        return Ok(None);
    }
    let config = Config { address: Address::Loopback, pcap: None, mtu: None, ..config.clone() };
    Context::open(&config).map(Some)
}

fn send(a: &Context, b: &Context) -> Result<Seen, String> {
    let fail = |e: urxe::Error| e.to_string();
    let bytes = pattern();
    let (pd_a, pd_b) = (a.alloc_pd().map_err(fail)?, b.alloc_pd().map_err(fail)?);
    let from = pd_a.register(LEN, Access::LOCAL_WRITE).map_err(fail)?;
    let to = pd_b.register(LEN, Access::LOCAL_WRITE).map_err(fail)?;
    let (cq_a, cq_b) = (a.create_cq(4).map_err(fail)?, b.create_cq(4).map_err(fail)?);
    let mtu = a.query_port().active_mtu.min(b.query_port().active_mtu);
    let qp_a = pd_a.qp(QpKind::Rc).cq(&cq_a).attr(|attr| attr.path_mtu = mtu).build();
    let qp_a = qp_a.map_err(fail)?;
    let qp_b = pd_b.qp(QpKind::Rc).cq(&cq_b).attr(|attr| attr.path_mtu = mtu).build();
    let qp_b = qp_b.map_err(fail)?;
    qp_a.connect(&qp_b.endpoint()).map_err(fail)?;
    qp_b.connect(&qp_a.endpoint()).map_err(fail)?;
    from.write(0, &bytes).map_err(fail)?;
    qp_b.post_recv(1, &[to.sge(0..LEN)]).map_err(fail)?;
    qp_a.post_send(2, SendOp::Send { imm: None }, &[from.sge(0..LEN)]).map_err(fail)?;
    // If the packets are lost, it is the send that fails, after all its retries.
    done(&cq_a, "the send")?;
    done(&cq_b, "the receive")?;
    let got = to.to_vec(0..LEN).map_err(fail)?;
    if let Some(at) = got.iter().zip(&bytes).position(|(got, wanted)| got != wanted) {
        return Err(format!("byte {at} of {LEN}: got {:#04x}, wanted {:#04x}", got[at], bytes[at]));
    }
    let (from, to) = (Some(a.address()), Some(b.address()));
    Ok(Seen { from, to, sent: a.port_stats(), came: b.port_stats() })
}

/// Bytes of which none may stand in another's place.
fn pattern() -> Vec<u8> {
    (0..LEN).map(|i| (i ^ (i >> 8)).to_le_bytes()[0].wrapping_mul(37)).collect()
}

fn done(cq: &Cq, what: &str) -> Result<(), String> {
    let completion = ending::completion(cq, PATIENCE).map_err(|e| format!("{what}: {e}"))?;
    let completion = completion.ok_or_else(|| format!("{what}: a signal came"))?;
    match completion.status {
        WcStatus::Success => Ok(()),
        _ => Err(format!("{what}: {}", completion.explain())),
    }
}
