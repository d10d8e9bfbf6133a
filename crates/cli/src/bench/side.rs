//! One side's device and what is made on it, in either process.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use urxe::{
    Access, Address, Arm, CompChannel, Completion, Config, Context, Cq, Endpoint, Mr, Pd, Qp,
    QpCaps, QpKind, SendFlags, SendOp, SendWr, WcStatus,
};
use urxe_wire::Mtu;

use crate::command::Failure;

/// Settings that `--set` takes; the others are the cases' or would spoil a figure.
pub(super) const SETTINGS: [&str; 6] = ["window", "buffer", "icrc", "gso", "profile", "seed"];

/// What a side shall be like.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Spec {
    pub(super) mtu: u16,
    pub(super) qps: usize,
    /// Bytes of its region.
    pub(super) bytes: usize,
    /// Sends of a QP that may be under way.
    pub(super) sends: usize,
    /// Receives of a QP that are always posted.
    pub(super) receives: usize,
    /// Where in the region a receive puts a message, and its length.
    pub(super) receive: (usize, usize),
    /// Whether completions of receives come as events.
    pub(super) events: bool,
    pub(super) faults: String,
    /// As `name=value`.
    pub(super) settings: Vec<String>,
}

impl Spec {
    pub(super) fn config(&self) -> Result<Config, Failure> {
        let mut config = Config::from_env()?;
        for setting in &self.settings {
            match setting.split_once('=').filter(|(name, _)| SETTINGS.contains(name)) {
                Some((name, value)) => config.set(name, value)?,
                None => {
                    let known = SETTINGS.join(", ");
                    return Err(format!("--set {setting}: wanted NAME=VALUE, of {known}").into());
                }
            }
        }
        config.address = Address::Loopback;
        config.mtu = Some(Mtu::from_bytes(self.mtu.into())?);
        self.faults.clone_into(&mut config.faults);
        config.pcap = None;
        Ok(config)
    }
}

/// Where the peer's region is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Remote {
    pub(super) addr: u64,
    pub(super) rkey: u32,
}

/// So long without anything done is a failure.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A device with QPs, a region and two CQs.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) qps: Vec<Qp>,
    pub(super) mr: Mr,
    pub(super) sends: Cq,
    pub(super) receives: Cq,
    pub(super) channel: Option<CompChannel>,
    pub(super) spec: Spec,
    pd: Pd,
    _context: Context,
}

impl Side {
    pub(super) fn open(spec: &Spec) -> Result<Self, Failure> {
        let context = Context::open(&spec.config()?)?;
        let pd = context.alloc_pd()?;
        let rights = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
        let mr = pd.register(spec.bytes.max(8), rights)?;
        let all = |each: usize| u32::try_from((each * spec.qps).max(16)).unwrap_or(u32::MAX);
        let channel = spec.events.then(|| context.create_comp_channel()).transpose()?;
        let receives = match &channel {
            Some(channel) => context.create_cq_on(all(spec.receives), channel)?,
            None => context.create_cq(all(spec.receives))?,
        };
        let sends = context.create_cq(all(spec.sends))?;
        let (qps, spec) = (Vec::new(), spec.clone());
        let mut side = Self { qps, mr, sends, receives, channel, spec, pd, _context: context };
        side.add_qps(side.spec.qps)?;
        Ok(side)
    }

    pub(super) fn add_qps(&mut self, n: usize) -> Result<(), Failure> {
        let few = |n: usize| u32::try_from(n.max(1)).unwrap_or(u32::MAX);
        let caps = QpCaps {
            max_send_wr: few(self.spec.sends),
            max_recv_wr: few(self.spec.receives),
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        for _ in 0..n {
            let qp = self.pd.qp(QpKind::Rc).cq(&self.sends).recv_cq(&self.receives);
            let rights = Access::REMOTE_WRITE | Access::REMOTE_READ;
            self.qps.push(qp.caps(caps).signal_all(false).access(rights).build()?);
        }
        Ok(())
    }

    pub(super) fn ends(&self) -> Vec<String> {
        self.qps.iter().map(|qp| qp.endpoint().to_string()).collect()
    }

    pub(super) fn remote(&self) -> Remote {
        Remote { addr: self.mr.addr(), rkey: self.mr.rkey() }
    }

    /// Connects each QP with the peer's, and posts its receives.
    pub(super) fn connect(&self, ends: &[String]) -> Result<(), Failure> {
        if ends.len() != self.qps.len() {
            let (ours, theirs) = (self.qps.len(), ends.len());
            return Err(format!("the peer has {theirs} QPs, we have {ours}").into());
        }
        for (nth, (qp, end)) in self.qps.iter().zip(ends).enumerate() {
            qp.connect(&end.parse::<Endpoint>()?)?;
            for _ in 0..self.spec.receives {
                self.post_receive(nth)?;
            }
        }
        if self.channel.is_some() {
            self.receives.req_notify(Arm::Next)?;
        }
        Ok(())
    }

    pub(super) fn post_receive(&self, nth: usize) -> Result<(), Failure> {
        let (start, len) = self.spec.receive;
        Ok(self.qps[nth].post_recv(nth as u64, &[self.mr.sge(start..start + len)])?)
    }

    /// Posts a request of `len` bytes from `start` on.
    pub(super) fn post(
        &self,
        nth: usize,
        op: SendOp,
        (start, len): (usize, usize),
        signaled: bool,
    ) -> Result<(), Failure> {
        let sges = [self.mr.sge(start..start + len)];
        let flags = if signaled { SendFlags::SIGNALED } else { SendFlags::empty() };
        let wr = SendWr { flags, ..SendWr::new(nth as u64, op, &sges) };
        Ok(self.qps[nth].post(&wr)?)
    }

    /// Posts `n` such requests in one go, of which the last is signaled.
    pub(super) fn post_list(
        &self,
        nth: usize,
        op: SendOp,
        (start, len): (usize, usize),
        n: usize,
    ) -> Result<(), Failure> {
        let sges = [self.mr.sge(start..start + len)];
        let last = SendWr::new(nth as u64, op, &sges);
        let quiet = SendWr { flags: SendFlags::empty(), ..last };
        let posted = self.qps[nth].batch(|batch| {
            (1..n).try_for_each(|_| batch.post(&quiet))?;
            batch.post(&last)
        });
        Ok(posted??)
    }

    /// Puts a pattern into the first `len` bytes.
    pub(super) fn fill(&self, seed: u64, len: usize) -> Result<(), Failure> {
        Ok(self.mr.write(0, &pattern(seed, len))?)
    }

    /// Whether the first `len` bytes are the pattern.
    pub(super) fn check(&self, seed: u64, len: usize) -> Result<(), Failure> {
        let (got, wanted) = (self.mr.to_vec(0..len)?, pattern(seed, len));
        match got.iter().zip(&wanted).position(|(got, wanted)| got != wanted) {
            None => Ok(()),
            Some(at) => {
                let (got, wanted) = (got[at], wanted[at]);
                let what = format!("byte {at} of {len} is {got:#04x}, {wanted:#04x} was sent");
                Err(format!("wrong data arrived: {what}; the figures mean nothing").into())
            }
        }
    }
}

/// A completion that must be a success.
pub(super) fn good(done: &Completion) -> Result<(), Failure> {
    if done.status == WcStatus::Success { Ok(()) } else { Err(done.explain().into()) }
}

/// Bytes that tell of a wrong place and of an older message (xorshift64*).
pub(super) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend(state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Spins until `done` gives something; between, now and then, `stopped` is asked.
pub(super) fn spin<R>(
    mut done: impl FnMut() -> Result<Option<R>, Failure>,
    mut stopped: impl FnMut() -> bool,
) -> Result<Option<R>, Failure> {
    const SOME: u32 = 1024;
    let mut since = None;
    loop {
        for _ in 0..SOME {
            if let Some(it) = done()? {
                return Ok(Some(it));
            }
        }
        if stopped() {
            return Ok(None);
        }
        if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(format!("nothing came from the peer within {seconds} s").into());
        }
    }
}
