//! Two devices, and connections between them whose every call is recorded.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use urxe::{
    Access, Completion, Context, Cq, Error, Mr, Pd, Qp, QpAttr, QpKind, SendOp, SendWr, WcStatus,
};
use urxe_wire::{AckTimeout, Mtu, QKey, RnrTimer};

use super::recorder::{Pair, Recorder};
use crate::ending;

/// What went wrong in a step.
#[derive(Debug)]
pub(super) struct Fault(pub String);

impl<E: std::error::Error> From<E> for Fault {
    fn from(e: E) -> Self {
        Self(e.to_string())
    }
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Who {
    /// The one that begins.
    Alice,
    /// Its peer.
    Bob,
}

impl Who {
    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Alice => "alice",
            Self::Bob => "bob",
        }
    }

    /// The other one.
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Alice => Self::Bob,
            Self::Bob => Self::Alice,
        }
    }
}

/// Two devices.
pub(super) struct World {
    /// The one that begins.
    pub(super) alice: Arc<Context>,
    /// Its peer.
    pub(super) bob: Arc<Context>,
    /// Looks on.
    pub(super) recorder: Arc<Recorder>,
    /// The path MTU of all connections.
    pub(super) mtu: Mtu,
}

/// One side of a connection, and memory of its own.
pub(super) struct Side {
    /// Its protection domain.
    pub(super) pd: Pd,
    /// The QP.
    pub(super) qp: Qp,
    /// Where all completes.
    cq: Cq,
    /// Memory of [`SIZE`] bytes.
    pub(super) mr: Arc<Mr>,
    /// Whose it is.
    who: Who,
    /// Where the peer's memory begins.
    far: u64,
    /// The peer's device, which is driven while this side waits.
    peer: Arc<Context>,
    recorder: Arc<Recorder>,
}

/// Bytes of a side's memory: a half holds three packets of the greatest MTU.
pub(super) const SIZE: usize = 32 << 10;
/// The path MTU if nothing else is asked for and the link carries it.
pub(super) const USUAL: Mtu = Mtu::B1024;
/// How long anything is waited for: longer than all retries of a step.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
const ALL: Access = Access::LOCAL_WRITE
    .union(Access::REMOTE_READ)
    .union(Access::REMOTE_WRITE)
    .union(Access::REMOTE_ATOMIC);

/// A pattern that tells its place; no byte of it is what stands in fresh memory.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (1u8..=251).cycle().take(len).collect()
}

/// Values that a reader need not wait for.
fn quick(attr: &mut QpAttr) {
    // 4.096 µs · 2^14 = 67 ms. All retries must outlast a machine so busy that its kernel hands on
    // what loopback carries only after 400 ms, as has been seen.
    attr.timeout = AckTimeout::new(14).unwrap_or_default();
    // 0.32 ms.
    attr.min_rnr_timer = RnrTimer::new(10).unwrap_or_default();
}

impl World {
    /// Alice's address and bob's.
    pub(super) fn addresses(&self) -> [IpAddr; 2] {
        [self.alice.address(), self.bob.address()]
    }

    /// Bytes of payload of a full packet.
    pub(super) const fn full(&self) -> usize {
        self.mtu.bytes() as usize
    }

    /// Two connected QPs; the first half of alice's memory holds the pattern.
    pub(super) fn pair(&self, kind: QpKind) -> Result<(Side, Side), Error> {
        self.pair_with(kind, |_| {})
    }

    /// As [`Self::pair`], with other attributes.
    pub(super) fn pair_with(
        &self,
        kind: QpKind,
        edit: fn(&mut QpAttr),
    ) -> Result<(Side, Side), Error> {
        let mut a = self.side(Who::Alice, kind, edit)?;
        let mut b = self.side(Who::Bob, kind, edit)?;
        (a.far, b.far) = (b.mr.addr(), a.mr.addr());
        if kind == QpKind::Ud {
            a.qp.ready(QKey(0x1234))?;
            b.qp.ready(QKey(0x1234))?;
        } else {
            a.qp.connect(&b.qp.endpoint())?;
            b.qp.connect(&a.qp.endpoint())?;
        }
        a.mr.write(0, &pattern(SIZE / 2))?;
        self.recorder.connected(Pair::of(kind, &a, &b));
        a.recorder.watch(a.who, a.qp.qpn(), &a.mr);
        b.recorder.watch(b.who, b.qp.qpn(), &b.mr);
        Ok((a, b))
    }

    fn side(&self, who: Who, kind: QpKind, edit: fn(&mut QpAttr)) -> Result<Side, Error> {
        let (context, peer) = match who {
            Who::Alice => (&self.alice, &self.bob),
            Who::Bob => (&self.bob, &self.alice),
        };
        let pd = context.alloc_pd()?;
        let mr = Arc::new(pd.register(SIZE, ALL)?);
        let cq = context.create_cq(256)?;
        let attr = |attr: &mut QpAttr| {
            quick(attr);
            attr.path_mtu = self.mtu;
            edit(attr);
        };
        let qp = pd.qp(kind).cq(&cq).access(ALL).attr(attr).build()?;
        let (peer, recorder) = (Arc::clone(peer), Arc::clone(&self.recorder));
        Ok(Side { pd, qp, cq, mr, who, far: 0, peer, recorder })
    }

    /// Lets what is on its way arrive, for a little while.
    pub(super) fn settle(&self) {
        let until = Instant::now() + Duration::from_millis(20);
        while self.recorder.lost() > 0 && Instant::now() < until {
            self.alice.progress();
            self.bob.progress();
            std::thread::yield_now();
        }
    }
}

impl Side {
    /// The program writes into its own memory.
    pub(super) fn fill(&self, offset: usize, bytes: &[u8]) -> Result<(), Fault> {
        self.mr.write(offset, bytes)?;
        self.recorder.filled(self.who, self.qp.qpn());
        Ok(())
    }

    /// Posts a request on a part of its memory.
    pub(super) fn send(&self, wr_id: u64, op: SendOp, part: Range<usize>) -> Result<(), Fault> {
        let sges = [self.mr.sge(part)];
        self.post(&SendWr::new(wr_id, op, &sges))
    }

    /// Posts any request.
    pub(super) fn post(&self, wr: &SendWr<'_>) -> Result<(), Fault> {
        let words = self.words(wr);
        self.recorder.posted(self.who, self.qp.qpn(), false, wr.wr_id, words);
        Ok(self.qp.post(wr)?)
    }

    /// Posts a receive into a part of its memory.
    pub(super) fn recv(&self, wr_id: u64, part: Range<usize>) -> Result<(), Fault> {
        let words = match part.len() {
            0 => "no room for data, only for news".to_owned(),
            len => format!("room for {len} bytes at +{}", part.start),
        };
        let sge = self.mr.sge(part.clone());
        self.recorder.posted(self.who, self.qp.qpn(), true, wr_id, words);
        let sges = [sge];
        Ok(self.qp.post_recv(wr_id, if part.is_empty() { &[] } else { &sges })?)
    }

    /// A request in words.
    fn words(&self, wr: &SendWr<'_>) -> String {
        let len: u32 = wr.sges.iter().map(|s| s.length).sum();
        let near = wr.sges.first().map_or(0, |s| s.addr.wrapping_sub(self.mr.addr()));
        let at = |remote: u64| {
            format!("{}'s memory +{}", self.who.other().name(), remote.wrapping_sub(self.far))
        };
        let with = |imm: Option<[u8; 4]>| {
            imm.map_or(String::new(), |i| format!(", immediate 0x{:08x}", u32::from_be_bytes(i)))
        };
        match wr.op {
            SendOp::Send { imm } => format!("SEND {len} bytes from +{near}{}", with(imm)),
            SendOp::Write { remote, imm, .. } => {
                format!("WRITE {len} bytes to {}{}", at(remote), with(imm))
            }
            SendOp::Read { remote, .. } => {
                format!("READ {len} bytes of {} to +{near}", at(remote))
            }
            SendOp::FetchAdd { remote, add, .. } => format!("FETCH_ADD {add} at {}", at(remote)),
            SendOp::CompareSwap { remote, compare, swap, .. } => {
                format!("CMP_SWAP {compare} → {swap} at {}", at(remote))
            }
            ref other => format!("{other:?}"),
        }
    }

    /// Waits for a completion, good or bad.
    pub(super) fn done(&self) -> Result<Completion, Fault> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(done) = self.cq.poll_one()? {
                self.recorder.completed(self.who, &done);
                return Ok(done);
            }
            if Instant::now() > until {
                return Ok(self.cq.wait_for(Duration::ZERO)?);
            }
            ending::check()?;
            // The peer's thread would do it, a little later: it shares the processor with us.
            self.peer.progress();
        }
    }

    /// Waits for a completion, which must be good.
    pub(super) fn good(&self) -> Result<Completion, Fault> {
        let done = self.done()?;
        if done.status == WcStatus::Success { Ok(done) } else { Err(Fault(done.explain())) }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.recorder.unwatch(self.who, self.qp.qpn());
    }
}
