//! Frames out and in, many per call.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use socket2::{SockAddr, Socket};
use urxe_wire::ethertype;

use crate::TxBatch;
use crate::cmsg::Cmsgs;
use crate::frame::Headers;
use crate::sys::link_address;

/// Frames of one call at most.
pub(super) const CALL: usize = 32;
/// Frames that one call brings at most: each has a slot of 64 KiB.
const RECEIVE: usize = 8;
/// The header that tells of segmentation (struct virtio_net_hdr of Linux
/// include/uapi/linux/virtio_net.h).
const VNET: usize = 10;
const GSO_NONE: u8 = 0;
const GSO_UDP_L4: u8 = 5;
/// Set beside the type where the packet bears ECN.
const GSO_ECN: u8 = 0x80;

/// The front of a frame on its way out; what follows is the packet in the batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Out {
    pub(super) headers: Headers,
    /// Out of this interface.
    pub(super) index: u32,
}

/// Sends one frame.
pub(super) fn send_frame(socket: &Socket, frame: &[u8], index: u32) -> io::Result<()> {
    socket.send_to(frame, &link_address(index, 0)).map(drop)
}

/// Sends the first packets of a batch; gives how many the host took.
pub(super) fn send(fd: BorrowedFd<'_>, outs: &[Out], batch: &TxBatch) -> io::Result<usize> {
    // SAFETY: message headers of zeros are valid, empty ones.
    let mut messages: [libc::mmsghdr; CALL] = unsafe { std::mem::zeroed() };
    // SAFETY: slices of zeros are valid, empty ones.
    let mut iovs: [[libc::iovec; 2]; CALL] = unsafe { std::mem::zeroed() };
    let mut addresses: [Option<SockAddr>; CALL] = [const { None }; CALL];
    let mut n = 0;
    for (i, (out, packet)) in outs.iter().zip(&batch.packets).take(CALL).enumerate() {
        let piece = |bytes: &[u8]| libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        iovs[i] = [piece(out.headers.bytes()), piece(batch.bytes(packet.range.clone()))];
        let address = addresses[i].insert(link_address(out.index, 0));
        let header = &mut messages[i].msg_hdr;
        header.msg_name = address.as_ptr().cast_mut().cast();
        header.msg_namelen = address.len();
        header.msg_iov = iovs[i].as_mut_ptr();
        header.msg_iovlen = 2;
        n += 1;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: names and slices live through the call, which only reads them.
    let rc = unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), n, flags) };
    usize::try_from(rc).map_err(|_| io::Error::last_os_error())
}

/// Room for the ancillary data of one message, aligned as its headers want.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 64]);

/// A frame that came: where in its slot it is, and how long each of its segments is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    /// Which slot.
    pub(crate) slot: usize,
    pub(crate) start: usize,
    pub(crate) len: usize,
    /// Bytes of transport packet of each segment but the last, if the frame is several.
    pub(crate) segment: Option<usize>,
    /// The frame is whole, and what is known of its segmentation is understood.
    pub(crate) whole: bool,
}

/// Receives frames, each into one of the slots of `slot` bytes that `bytes` consists of, until the
/// slots are full or nothing waits. `vnet`: whether the header that tells of segmentation comes.
pub(super) fn receive(
    fd: BorrowedFd<'_>,
    bytes: &mut [u8],
    slot: usize,
    vnet: bool,
    came: &mut Vec<Came>,
) -> io::Result<()> {
    let slots = bytes.len() / slot;
    let mut from = 0;
    while from < slots {
        let n = (slots - from).min(RECEIVE);
        let got = call(fd, &mut bytes[from * slot..(from + n) * slot], slot, vnet, from, came)?;
        from += got;
        if got < n {
            break;
        }
    }
    Ok(())
}

/// Bytes of a VLAN tag, left free before each frame so that it can be put back.
const TAG: usize = 4;

fn call(
    fd: BorrowedFd<'_>,
    bytes: &mut [u8],
    slot: usize,
    vnet: bool,
    first: usize,
    came: &mut Vec<Came>,
) -> io::Result<usize> {
    let mut vnets = [[0_u8; VNET]; RECEIVE];
    let mut controls = [Control([0; 64]); RECEIVE];
    // SAFETY: message headers of zeros are valid, empty ones.
    let mut messages: [libc::mmsghdr; RECEIVE] = unsafe { std::mem::zeroed() };
    // SAFETY: slices of zeros are valid, empty ones.
    let mut iovs: [[libc::iovec; 2]; RECEIVE] = unsafe { std::mem::zeroed() };
    let head = if vnet { VNET } else { 0 };
    let mut n = 0;
    for (i, slot) in bytes.chunks_exact_mut(slot).take(RECEIVE).enumerate() {
        let frame = &mut slot[TAG..];
        iovs[i] = [
            libc::iovec { iov_base: vnets[i].as_mut_ptr().cast(), iov_len: head },
            libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() },
        ];
        let header = &mut messages[i].msg_hdr;
        header.msg_iov = iovs[i].as_mut_ptr();
        header.msg_iovlen = 2;
        header.msg_control = controls[i].0.as_mut_ptr().cast();
        header.msg_controllen = controls[i].0.len();
        n += 1;
    }
    let (none, flags) = (std::ptr::null_mut(), libc::MSG_DONTWAIT);
    // SAFETY: each header's slices and control data are distinct, writable and live through the
    // call.
    let rc = unsafe { libc::recvmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), n, flags, none) };
    let Ok(got) = usize::try_from(rc) else {
        let e = io::Error::last_os_error();
        return match e.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(0),
            _ => Err(e),
        };
    };
    for (i, message) in messages.iter().take(got).enumerate() {
        let whole = message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
        let len = (message.msg_len as usize).saturating_sub(head).min(slot - TAG);
        let [_, kind, _, _, low, high, ..] = vnets[i];
        let (segment, known) = match kind & !GSO_ECN {
            GSO_NONE => (None, true),
            GSO_UDP_L4 => (Some(u16::from_ne_bytes([low, high]).into()), true),
            _ => (None, false),
        };
        let mut start = TAG;
        // SAFETY: the kernel wrote it, and `controls` are not touched meanwhile.
        let control = unsafe { Cmsgs::of(&message.msg_hdr) };
        if let Some((tpid, tci)) = tag_of(control)
            && len >= 12
        {
            let slot = &mut bytes[i * slot..(i + 1) * slot];
            slot.copy_within(TAG..TAG + 12, 0);
            slot[12..14].copy_from_slice(&tpid.to_be_bytes());
            slot[14..16].copy_from_slice(&tci.to_be_bytes());
            start = 0;
        }
        let len = len + TAG - start;
        came.push(Came { slot: first + i, start, len, segment, whole: whole && known });
    }
    Ok(got)
}

/// Type and control information of the VLAN tag that the kernel took off.
fn tag_of(control: Cmsgs<'_>) -> Option<(u16, u16)> {
    let kind = (libc::SOL_PACKET, libc::PACKET_AUXDATA);
    for cmsg in control.filter(|cmsg| cmsg.kind == kind) {
        if cmsg.value().len() < size_of::<libc::tpacket_auxdata>() {
            continue;
        }
        let aux = cmsg.value().as_ptr().cast::<libc::tpacket_auxdata>();
        // SAFETY: it is long enough, and of plain numbers; alignment is not assumed.
        let aux = unsafe { aux.read_unaligned() };
        if aux.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
            return None;
        }
        let told = aux.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let tpid = if told { aux.tp_vlan_tpid } else { ethertype::VLAN };
        return Some((tpid, aux.tp_vlan_tci));
    }
    None
}
