//! Lists of receive requests.

use std::marker::PhantomData;

use urxe::Sge;

use crate::call::Fail;
use crate::layout::{IbvRecvWr, IbvSge};

// An element of C's is one of ours.
const _: () = assert!(size_of::<Sge>() == size_of::<IbvSge>());
const _: () = assert!(align_of::<Sge>() == align_of::<IbvSge>());
const _: () = assert!(std::mem::offset_of!(Sge, addr) == 0);
const _: () = assert!(std::mem::offset_of!(Sge, length) == 8);
const _: () = assert!(std::mem::offset_of!(Sge, lkey) == 12);

/// The elements of a request.
///
/// # Safety
/// If `count` is not 0, `list` points to so many, which stay as they are while the answer lives.
pub(crate) unsafe fn sges<'a>(list: *const IbvSge, count: i32) -> Result<&'a [Sge], Fail> {
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        Ok(_) if list.is_null() || !list.is_aligned() => {
            Err(Fail::invalid(format!("{count} elements at {list:p}")))
        }
        // SAFETY: the caller's; the layouts are equal, as asserted above.
        Ok(count) => Ok(unsafe { std::slice::from_raw_parts(list.cast(), count) }),
        Err(_) => Err(Fail::invalid(format!("{count} elements"))),
    }
}

/// A list of receive requests, linked as C does.
pub(crate) struct List<'a> {
    next: *mut IbvRecvWr,
    bad: *mut *mut IbvRecvWr,
    _list: PhantomData<&'a IbvRecvWr>,
}

impl List<'_> {
    /// # Safety
    /// `first` is null or points to a list, `bad` is null or has room for a pointer; both stay
    /// as they are while this lives.
    pub(crate) unsafe fn new(first: *mut IbvRecvWr, bad: *mut *mut IbvRecvWr) -> Self {
        Self { next: first, bad, _list: PhantomData }
    }

    /// Posts all of them to what `queue` finds, or up to the first that is not taken, which C is
    /// told of.
    pub(crate) fn post<Q>(
        mut self,
        queue: impl FnOnce() -> Result<Q, Fail>,
        post: impl Fn(&Q, u64, &[Sge]) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        let done = queue().and_then(|queue| {
            while !self.next.is_null() {
                // SAFETY: of the list that the maker of this vouched for.
                let wr = unsafe { &*self.next };
                // SAFETY: likewise.
                post(&queue, wr.wr_id, unsafe { sges(wr.sg_list, wr.num_sge) }?)?;
                self.next = wr.next;
            }
            Ok(())
        });
        if done.is_err() && !self.bad.is_null() {
            // SAFETY: the maker of this vouched for it.
            unsafe { *self.bad = self.next };
        }
        done
    }
}
