//! The data path: from keys and addresses to pinned bytes.

use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::gather::{MAX_SGE, Piece};
use crate::table::State;
use crate::{Access, Gather, KeyError, Memory, PdId, Pinned, Sge};

impl Memory {
    /// Pins `len` bytes of a scatter/gather list, from `offset` bytes into it: a packet's payload.
    ///
    /// Only elements that these bytes touch are checked, and those of length 0 never are. Reading
    /// through an lkey needs no right.
    ///
    /// # Errors
    ///
    /// [`KeyError::TooManySges`], [`KeyError::ListTooShort`], and those of any key, PD and range.
    pub fn gather(
        &self,
        pd: PdId,
        sges: &[Sge],
        offset: u64,
        len: usize,
    ) -> Result<Gather, KeyError> {
        let mut gather = Gather::default();
        self.gather_into(pd, sges, offset, len, &mut gather)?;
        Ok(gather)
    }

    /// [`gather`](Self::gather) in place of what `into` held: a [`Gather`] is large, and moving one
    /// costs more than filling it. After an error `into` is empty.
    ///
    /// # Errors
    ///
    /// As [`gather`](Self::gather).
    pub fn gather_into(
        &self,
        pd: PdId,
        sges: &[Sge],
        offset: u64,
        len: usize,
        into: &mut Gather,
    ) -> Result<(), KeyError> {
        into.clear();
        let filled = self.cut(pd, sges, offset, len, Access::empty(), |piece| into.push(piece));
        if filled.is_err() {
            into.clear();
        }
        filled
    }

    /// Places a packet's payload into a scatter/gather list, from `offset` bytes into it.
    ///
    /// All elements that it touches are checked (they need `LOCAL_WRITE`) before any byte is
    /// placed; then bytes are placed as by [`Pinned::write`], element by element.
    ///
    /// # Errors
    ///
    /// As [`gather`](Self::gather), and [`KeyError::Rights`]. Nothing was placed then.
    pub fn scatter(
        &self,
        pd: PdId,
        sges: &[Sge],
        offset: u64,
        data: &[u8],
    ) -> Result<(), KeyError> {
        let need = Access::LOCAL_WRITE;
        if let [sge] = sges
            && offset.saturating_add(data.len() as u64) <= u64::from(sge.length)
            && !data.is_empty()
        {
            return self.local(pd, sge, offset, data.len() as u64, need)?.write(data);
        }
        let mut pieces = ArrayVec::<Piece, MAX_SGE>::new();
        self.cut(pd, sges, offset, data.len(), need, |piece| pieces.push(piece))?;
        let mut rest = data;
        for piece in &pieces {
            let (now, later) = rest.split_at(piece.len().min(rest.len()));
            piece.write(now)?;
            rest = later;
        }
        Ok(())
    }

    /// Checks and pins memory for a peer's request of `len` bytes at `addr` under `rkey`, arriving
    /// on QP `qpn` of `pd`; `need` are the rights the operation needs.
    ///
    /// With `len` 0 neither key nor address is checked, and the answer is empty (IBA C9-88).
    ///
    /// Keep the answer over one packet only: it delays [`dereg_mr`](Self::dereg_mr), and rights may
    /// change before the next packet.
    ///
    /// # Errors
    ///
    /// Any [`KeyError`] of key, PD, QP, rights and range.
    pub fn remote(
        &self,
        pd: PdId,
        qpn: u32,
        rkey: u32,
        addr: u64,
        len: u64,
        need: Access,
    ) -> Result<Pinned, KeyError> {
        if len == 0 {
            return Ok(Pinned::empty()); // IBA C9-88
        }
        self.pin(pd, qpn, rkey, Some((addr, len)), need)
    }

    /// Checks and pins all that `rkey` covers: a FLUSH of a whole region (placement selectivity
    /// "MR").
    ///
    /// # Errors
    ///
    /// As [`remote`](Self::remote).
    pub fn remote_all(
        &self,
        pd: PdId,
        qpn: u32,
        rkey: u32,
        need: Access,
    ) -> Result<Pinned, KeyError> {
        self.pin(pd, qpn, rkey, None, need)
    }

    fn pin(
        &self,
        pd: PdId,
        qpn: u32,
        key: u32,
        range: Option<(u64, u64)>,
        need: Access,
    ) -> Result<Pinned, KeyError> {
        let slot = self.slot(key)?.read();
        slot.check(key)?;
        let grant = match &slot.state {
            State::Region(grant) => grant,
            State::Window(window) if window.bound => &window.grant,
            _ => return Err(KeyError::NotBound { key }),
        };
        grant.check_pd(pd)?;
        grant.check_qp(qpn)?;
        grant.check_rights(need)?;
        let (addr, len) = range.unwrap_or((grant.start, grant.len));
        let offset = grant.locate(addr, len)?;
        Ok(Pinned::new(Arc::clone(grant), addr, offset, len, need))
    }

    /// Pins the parts of a list that `len` bytes at `offset` touch, and hands them out: at most
    /// [`MAX_SGE`].
    fn cut(
        &self,
        pd: PdId,
        sges: &[Sge],
        offset: u64,
        len: usize,
        need: Access,
        mut out: impl FnMut(Piece),
    ) -> Result<(), KeyError> {
        if sges.len() > MAX_SGE {
            return Err(KeyError::TooManySges { got: sges.len(), max: MAX_SGE });
        }
        let (mut skip, mut left) = (offset, len as u64);
        for sge in sges {
            let length = u64::from(sge.length);
            if left == 0 {
                break;
            }
            if length <= skip {
                skip -= length;
                continue;
            }
            let part = left.min(length - skip);
            out(self.local(pd, sge, skip, part, need)?);
            left -= part;
            skip = 0;
        }
        if left > 0 {
            let (len, capacity) = (len as u64, Sge::total(sges));
            return Err(KeyError::ListTooShort { offset, len, capacity });
        }
        Ok(())
    }

    /// Pins `len` bytes of an element, `skip` bytes into it.
    fn local(
        &self,
        pd: PdId,
        sge: &Sge,
        skip: u64,
        len: u64,
        need: Access,
    ) -> Result<Piece, KeyError> {
        let key = sge.lkey;
        let slot = self.slot(key)?.read();
        slot.check(key)?;
        let State::Region(grant) = &slot.state else {
            return Err(KeyError::NotARegion { key });
        };
        grant.check_pd(pd)?;
        grant.check_rights(need)?;
        let Some(addr) = sge.addr.checked_add(skip) else {
            let (start, length) = (grant.start, grant.len);
            return Err(KeyError::Range { key, addr: sge.addr, len: skip + len, start, length });
        };
        let offset = grant.locate(addr, len)?;
        Piece::new(Arc::clone(grant), addr, offset, len)
    }
}
