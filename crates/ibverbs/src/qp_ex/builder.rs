//! Requests in the making.

use parking_lot::Mutex;
use urxe::{SendFlags, SendWr, Sge, UdDest};

use crate::call::Fail;
use crate::turn::Turn;

/// Requests between `ibv_wr_start` and `ibv_wr_complete`, which are one thread's.
#[derive(Debug)]
pub(crate) struct Builder {
    operations: u64,
    turn: Turn,
    list: Mutex<List>,
}

/// Their pieces; kept from one round to the next, so that building allocates no more than once.
#[derive(Debug, Default)]
struct List {
    requests: Vec<Request>,
    sges: Vec<Sge>,
    inline: Vec<u8>,
    /// Why they cannot be posted: the first thing that was wrong.
    failed: Option<Fail>,
}

#[derive(Debug)]
struct Request {
    wr: SendWr<'static>,
    /// Where its elements, or its inline data, stand.
    from: usize,
    to: usize,
    is_inline: bool,
}

impl Builder {
    pub(crate) fn new(operations: u64) -> Self {
        Self { operations, turn: Turn::default(), list: Mutex::default() }
    }

    /// The requests that it was made for.
    pub(crate) const fn operations(&self) -> u64 {
        self.operations
    }

    /// Begins; waits while another thread builds.
    pub(super) fn start(&self) {
        self.turn.begin();
        self.list.lock().clear();
    }

    /// Forgets all.
    pub(super) fn abort(&self) {
        self.list.lock().clear();
        self.turn.end();
    }

    /// Posts all, or none.
    pub(super) fn complete(&self, qp: &urxe::Qp) -> Result<(), Fail> {
        let posted = self.list.lock().post(qp);
        self.turn.end();
        posted
    }

    /// Begins a request. `operation` is its bit in `send_ops_flags`.
    pub(super) fn request(&self, operation: u64, wr: Result<SendWr<'static>, Fail>) {
        let list = &mut *self.list.lock();
        match wr {
            Ok(_) if self.operations & operation == 0 => {
                let why = format!("the QP was made without {operation:#x} in send_ops_flags");
                list.fail(Fail::invalid(why));
            }
            Ok(wr) => {
                let at = list.sges.len();
                list.requests.push(Request { wr, from: at, to: at, is_inline: false });
            }
            Err(fail) => list.fail(fail),
        }
    }

    /// Changes the request begun last.
    fn last(&self, change: impl FnOnce(&mut Request, &mut Vec<Sge>, &mut Vec<u8>)) {
        let List { requests, sges, inline, failed } = &mut *self.list.lock();
        match requests.last_mut() {
            Some(request) => change(request, sges, inline),
            None if failed.is_some() => {}
            None => *failed = Some(Fail::invalid("data for a request that was not begun")),
        }
    }

    pub(super) fn set_dest(&self, dest: Result<UdDest, Fail>) {
        match dest {
            Ok(dest) => self.last(|request, _, _| request.wr.dest = Some(dest)),
            Err(fail) => self.list.lock().fail(fail),
        }
    }

    pub(super) fn set_srqn(&self, number: u32) {
        self.last(|request, _, _| request.wr.remote_srqn = number);
    }

    pub(super) fn set_sges(&self, list: Result<&[Sge], Fail>) {
        match list {
            Ok(list) => self.last(|request, sges, _| {
                sges.truncate(if request.is_inline { sges.len() } else { request.from });
                request.from = sges.len();
                sges.extend_from_slice(list);
                (request.to, request.is_inline) = (sges.len(), false);
                request.wr.flags.remove(SendFlags::INLINE);
            }),
            Err(fail) => self.list.lock().fail(fail),
        }
    }

    /// Takes inline data, piece after piece.
    pub(super) fn set_inline<'a>(&self, pieces: impl Iterator<Item = Result<&'a [u8], Fail>>) {
        let mut wrong = None;
        self.last(|request, _, inline| {
            request.from = inline.len();
            for piece in pieces {
                match piece {
                    Ok(piece) => inline.extend_from_slice(piece),
                    Err(fail) => wrong = Some(fail),
                }
            }
            (request.to, request.is_inline) = (inline.len(), true);
            request.wr.flags.insert(SendFlags::INLINE);
        });
        if let Some(fail) = wrong {
            self.list.lock().fail(fail);
        }
    }
}

impl List {
    fn clear(&mut self) {
        self.requests.clear();
        self.sges.clear();
        self.inline.clear();
        self.failed = None;
    }

    fn fail(&mut self, fail: Fail) {
        self.failed.get_or_insert(fail);
    }

    fn post(&mut self, qp: &urxe::Qp) -> Result<(), Fail> {
        if let Some(fail) = self.failed.take() {
            return Err(fail);
        }
        let requests = self.requests.iter().map(|request| {
            let part = request.from..request.to;
            let (sges, inline): (&[Sge], &[u8]) =
                if request.is_inline { (&[], &self.inline[part]) } else { (&self.sges[part], &[]) };
            SendWr { sges, inline, ..request.wr }
        });
        qp.batch(|batch| {
            // With room for all and each of them right, posting cannot fail half way.
            batch.check(requests.clone())?;
            requests.clone().try_for_each(|wr| Ok(batch.post(&wr)?))
        })?
    }
}
