//! A device in a process of its own, for tests: it is told what to do by lines on its standard
//! input, and answers each with a line. Numbers are decimal.
//!
//! At first it says `ADDRESS QPN PSN REMOTE RKEY`: the endpoint of its first QP, of kind `rc`, and
//! its memory of 64 KiB; or, where the device cannot be opened, `error:` and why. Then:
//!
//! | line | what it does | answer |
//! |---|---|---|
//! | `new KIND` | makes a QP, which the next lines mean | `ADDRESS QPN PSN INDEX SRQN` |
//! | `use INDEX` | goes back to a QP, 0 for the first | `ok` |
//! | `connect ADDRESS QPN PSN` | connects the QP | `ok` |
//! | `join GROUP` | puts the QP in a multicast group | `ok` |
//! | `receive N LEN` | posts a receive of LEN bytes, N × 4096 into its memory | `ok` |
//! | `send AT LEN` | sends a part of its memory | `ok` |
//! | `sendto ADDRESS QPN AT LEN` | as a datagram | `ok` |
//! | `sendsrq SRQN AT LEN` | to an XRC shared receive queue | `ok` |
//! | `wait` | waits for a completion | its text |
//! | `read AT LEN` | | hexadecimal bytes of its memory |
//! | `write AT BYTE LEN` | fills a part of its memory | `ok` |
//!
//! Kinds: `rc`, `uc`, `ud`, `srq` (RC with a shared receive queue), `xrc` (initiator), `xrcsrq`
//! (target, with an SRQ of its domain).

#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};
use std::net::IpAddr;

use urxe::{
    Access, AckTimeout, Ah, AhAttr, Config, Context, Cq, Mr, Mtu, Pd, QKey, Qp, QpAttr, QpKind,
    Qpn, SendOp, SendWr, Sge, Srq, SrqAttr, UdDest, Xrcd,
};

type Failure = Box<dyn std::error::Error>;

const QKEY: QKey = QKey(0x1234);

/// A QP, and what receives are posted to where that is no queue of its own.
struct End {
    qp: Qp,
    srq: Option<Srq>,
    _xrcd: Option<Xrcd>,
}

struct Peer {
    // Before what they were made from.
    ends: Vec<End>,
    used: usize,
    ahs: Vec<Ah>,
    mr: Mr,
    cq: Cq,
    pd: Pd,
    context: Context,
}

fn main() -> Result<(), Failure> {
    let mut out = io::stdout();
    let context = match Context::open(&Config::from_env()?) {
        Ok(context) => context,
        Err(error) => {
            writeln!(out, "error: {error}")?;
            return Ok(());
        }
    };
    let mut peer = Peer::new(context)?;
    peer.add("rc")?;
    let end = peer.ends[0].qp.endpoint();
    writeln!(out, "{end} {} {}", peer.mr.addr(), peer.mr.rkey())?;
    for line in io::stdin().lock().lines() {
        let answer = peer.obey(&line?)?;
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn access() -> Access {
    Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC
}

impl Peer {
    fn new(context: Context) -> Result<Self, Failure> {
        let pd = context.alloc_pd()?;
        let (mr, cq) = (pd.register(64 << 10, access())?, context.create_cq(256)?);
        Ok(Self { ends: Vec::new(), used: 0, ahs: Vec::new(), mr, cq, pd, context })
    }

    fn add(&mut self, kind: &str) -> Result<(), Failure> {
        let quick = AckTimeout::new(12)?;
        let edit = |attr: &mut QpAttr| {
            (attr.path_mtu, attr.timeout) = (Mtu::B1024, quick);
        };
        let attr = SrqAttr { max_wr: 64, max_sge: 1, limit: 0 };
        let build = |kind| self.pd.qp(kind).access(access()).attr(edit);
        let (mut srq, mut xrcd) = (None, None);
        let qp = match kind {
            "rc" => build(QpKind::Rc).cq(&self.cq).build()?,
            "uc" => build(QpKind::Uc).cq(&self.cq).build()?,
            "ud" => self.pd.qp(QpKind::Ud).cq(&self.cq).build()?,
            "srq" => {
                let made = srq.insert(self.pd.create_srq(attr)?);
                build(QpKind::Rc).cq(&self.cq).srq(made).build()?
            }
            "xrc" => build(QpKind::XrcInit).cq(&self.cq).build()?,
            "xrcsrq" => {
                let domain = xrcd.insert(self.context.alloc_xrcd()?);
                srq = Some(Srq::xrc(&self.pd, attr, domain, &self.cq)?);
                build(QpKind::XrcTarget).xrcd(domain).build()?
            }
            _ => return Err(format!("no kind of QP: {kind}").into()),
        };
        if kind == "ud" {
            qp.ready(QKEY)?;
        }
        self.used = self.ends.len();
        self.ends.push(End { qp, srq, _xrcd: xrcd });
        Ok(())
    }

    fn obey(&mut self, line: &str) -> Result<String, Failure> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let ok = || Ok("ok".to_owned());
        match verb {
            "new" => {
                self.add(rest)?;
                let End { qp, srq, .. } = &self.ends[self.used];
                let number = srq.as_ref().map_or(0, Srq::number);
                return Ok(format!("{} {} {number}", qp.endpoint(), self.used));
            }
            "connect" => {
                self.qp().connect(&rest.parse()?)?;
                return ok();
            }
            "join" => {
                self.qp().attach_mcast(rest.parse()?)?;
                return ok();
            }
            "sendto" => {
                let (address, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                self.send_to(address.parse()?, &numbers(rest)?)?;
                return ok();
            }
            _ => {}
        }
        match (verb, &numbers(rest)?[..]) {
            ("use", &[index]) => {
                self.used = index;
                ok()
            }
            ("receive", &[n, len]) => {
                let (id, sges) = (n as u64, [self.mr.sge(n * 4096..n * 4096 + len)]);
                match &self.ends[self.used].srq {
                    Some(srq) => srq.post_recv(id, &sges)?,
                    None => self.qp().post_recv(id, &sges)?,
                }
                ok()
            }
            ("send", &[at, len]) => {
                self.qp().post_send(77, SendOp::Send { imm: None }, &self.part(at, len))?;
                ok()
            }
            ("sendsrq", &[srqn, at, len]) => {
                let sges = self.part(at, len);
                let wr = SendWr::new(77, SendOp::Send { imm: None }, &sges);
                self.qp().post(&SendWr { remote_srqn: u32::try_from(srqn)?, ..wr })?;
                ok()
            }
            ("wait", []) => Ok(self.cq.wait_one()?.explain()),
            ("read", &[at, len]) => {
                let mut text = String::new();
                for byte in self.mr.to_vec(at..at + len)? {
                    write!(text, "{byte:02x}")?;
                }
                Ok(text)
            }
            ("write", &[at, byte, len]) => {
                self.mr.write(at, &vec![u8::try_from(byte)?; len])?;
                ok()
            }
            _ => Err(format!("no such order: {line}").into()),
        }
    }

    fn qp(&self) -> &Qp {
        &self.ends[self.used].qp
    }

    fn part(&self, at: usize, len: usize) -> [Sge; 1] {
        [self.mr.sge(at..at + len)]
    }

    fn send_to(&mut self, dst: IpAddr, numbers: &[usize]) -> Result<(), Failure> {
        let &[qpn, at, len] = numbers else {
            return Err("wanted ADDRESS QPN AT LEN".into());
        };
        let ah = self.pd.create_ah(&AhAttr { dst, ..AhAttr::default() })?;
        let dest = Some(UdDest { ah: ah.id(), qpn: Qpn::new(u32::try_from(qpn)?), qkey: QKEY });
        self.ahs.push(ah);
        let sges = self.part(at, len);
        let wr = SendWr::new(77, SendOp::Send { imm: None }, &sges);
        self.qp().post(&SendWr { dest, ..wr })?;
        Ok(())
    }
}

fn numbers(text: &str) -> Result<Vec<usize>, Failure> {
    Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}
