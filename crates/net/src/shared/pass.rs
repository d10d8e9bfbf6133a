//! Messages with descriptors in them. Allocates nothing: the broker may not.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::SLOTS;

const SPACE: usize = rustix::cmsg_space!(ScmRights(SLOTS));

/// Sends a message, without waiting.
pub(super) fn send(
    to: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(to, &[IoSlice::new(bytes)], &mut control, flags).map(drop)
}

/// Receives a message, without waiting; gives its length, 0 where the other side is gone.
pub(super) fn recv(
    from: BorrowedFd<'_>,
    bytes: &mut [u8],
    peek: bool,
    mut take: impl FnMut(OwnedFd),
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    flags.set(RecvFlags::PEEK, peek);
    let got = recvmsg(from, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            descriptors.for_each(&mut take);
        }
    }
    if got.flags.contains(ReturnFlags::CTRUNC) {
        // The process has no room for the descriptors.
        return Err(Errno::MFILE);
    }
    Ok(got.bytes)
}
