//! The passive side of a connection in a process of its own, for tests: it is told what to do by
//! lines on its standard input, and answers each with a line.
//!
//! At first it says `ADDRESS QPN PSN REMOTE RKEY`: its endpoint and its memory of 64 KiB. Then:
//!
//! | line | what it does | answer |
//! |---|---|---|
//! | `connect ADDRESS QPN PSN` | connects its QP | `ok` |
//! | `receive N LEN` | posts a receive of LEN bytes, N × 4096 into its memory | `ok` |
//! | `wait` | waits for a completion | its text |
//! | `read AT LEN` | | hexadecimal bytes of its memory |
//! | `write AT BYTE LEN` | fills a part of its memory | `ok` |

#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

use urxe::{Access, AckTimeout, Config, Context, Cq, Mr, Mtu, Qp, QpAttr, QpKind};

type Failure = Box<dyn std::error::Error>;

struct Peer {
    mr: Mr,
    cq: Cq,
    qp: Qp,
}

fn main() -> Result<(), Failure> {
    let context = Context::open(&Config::from_env()?)?;
    let pd = context.alloc_pd()?;
    let all =
        Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    let (mr, cq) = (pd.register(64 << 10, all)?, context.create_cq(64)?);
    let quick = AckTimeout::new(12)?;
    let edit = |attr: &mut QpAttr| {
        (attr.path_mtu, attr.timeout) = (Mtu::B1024, quick);
    };
    let qp = pd.qp(QpKind::Rc).cq(&cq).access(all).attr(edit).build()?;
    let peer = Peer { mr, cq, qp };
    let mut out = io::stdout();
    writeln!(out, "{} {} {}", peer.qp.endpoint(), peer.mr.addr(), peer.mr.rkey())?;
    for line in io::stdin().lock().lines() {
        let answer = peer.obey(&line?)?;
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

impl Peer {
    fn obey(&self, line: &str) -> Result<String, Failure> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        if verb == "connect" {
            self.qp.connect(&rest.parse()?)?;
            return Ok("ok".into());
        }
        let numbers: Vec<usize> =
            rest.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        match (verb, &numbers[..]) {
            ("receive", &[n, len]) => {
                self.qp.post_recv(n as u64, &[self.mr.sge(n * 4096..n * 4096 + len)])?;
                Ok("ok".into())
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
                Ok("ok".into())
            }
            _ => Err(format!("no such order: {line}").into()),
        }
    }
}
