//! Control messages of messages that came.

use std::marker::PhantomData;

/// A control message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cmsg<'a> {
    /// Level and type.
    pub(crate) kind: (i32, i32),
    value: &'a [u8],
}

impl Cmsg<'_> {
    /// The integer it holds; one byte where the kernel gives no more.
    pub(crate) fn int(&self) -> i32 {
        match (self.value.first_chunk(), self.value.first()) {
            (Some(bytes), _) => i32::from_ne_bytes(*bytes),
            (None, Some(byte)) => i32::from(*byte),
            (None, None) => 0,
        }
    }

    /// Its bytes.
    pub(crate) const fn value(&self) -> &[u8] {
        self.value
    }
}

/// The control messages of a message, in order.
#[derive(Debug)]
pub(crate) struct Cmsgs<'a> {
    header: &'a libc::msghdr,
    next: *const libc::cmsghdr,
    control: PhantomData<&'a [u8]>,
}

impl<'a> Cmsgs<'a> {
    /// # Safety
    /// `header` is as the kernel left it, and its control data live as long as it and are not
    /// written to.
    pub(crate) unsafe fn of(header: &'a libc::msghdr) -> Self {
        // SAFETY: the kernel wrote `msg_controllen` bytes of control messages.
        let next = unsafe { libc::CMSG_FIRSTHDR(header) };
        Self { header, next, control: PhantomData }
    }
}

impl<'a> Iterator for Cmsgs<'a> {
    type Item = Cmsg<'a>;

    fn next(&mut self) -> Option<Cmsg<'a>> {
        if self.next.is_null() {
            return None;
        }
        // SAFETY: not null, so within the control data.
        let cmsg = unsafe { &*self.next };
        // SAFETY: the value follows its header.
        let data = unsafe { libc::CMSG_DATA(self.next) };
        // SAFETY: computes sizes only.
        let header = unsafe { libc::CMSG_LEN(0) } as usize;
        let len = cmsg.cmsg_len.saturating_sub(header);
        // SAFETY: the kernel says that the value has so many bytes; `of` asks that they live.
        let value = unsafe { std::slice::from_raw_parts(data, len) };
        // SAFETY: `next` is one of the message's control headers.
        self.next = unsafe { libc::CMSG_NXTHDR(self.header, self.next) };
        Some(Cmsg { kind: (cmsg.cmsg_level, cmsg.cmsg_type), value })
    }
}
