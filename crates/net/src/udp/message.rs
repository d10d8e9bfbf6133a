//! Messages with ancillary data: segmentation out, traffic class and TTL both ways.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use socket2::SockAddr;

use crate::batch::{Arrival, Flow, RxBatch};
use crate::cmsg::Cmsgs;

/// Room for the ancillary data of one message, aligned as its headers want.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 128]);

/// Sends messages.
pub(super) struct Tx {
    control: Control,
}

impl Default for Tx {
    fn default() -> Self {
        Self { control: Control([0; 128]) }
    }
}

impl Tx {
    /// Sends `bytes` as one datagram, or as datagrams of `segment` bytes.
    pub(super) fn send(
        &mut self,
        fd: BorrowedFd<'_>,
        to: SocketAddr,
        bytes: &[u8],
        segment: Option<usize>,
        flow: &Flow,
    ) -> io::Result<()> {
        let address = SockAddr::from(to);
        let mut iov =
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: a message header of zeros is a valid, empty one.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = address.as_ptr().cast_mut().cast();
        message.msg_namelen = address.len();
        message.msg_iov = &raw mut iov;
        message.msg_iovlen = 1;
        message.msg_control = self.control.0.as_mut_ptr().cast();
        message.msg_controllen = self.control.0.len();
        let mut writer = CmsgWriter::new(&mut message);
        if flow.traffic_class != 0 {
            let class = i32::from(flow.traffic_class);
            match flow.dst {
                IpAddr::V4(_) => writer.push(libc::IPPROTO_IP, libc::IP_TOS, class),
                IpAddr::V6(_) => writer.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class),
            }
        }
        let hops = i32::from(flow.hop_limit.max(1));
        match flow.dst {
            IpAddr::V4(_) => writer.push(libc::IPPROTO_IP, libc::IP_TTL, hops),
            IpAddr::V6(_) => writer.push(libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, hops),
        }
        if let Some(segment) = segment {
            let segment = u16::try_from(segment).unwrap_or(u16::MAX);
            writer.push(libc::IPPROTO_UDP, libc::UDP_SEGMENT, segment);
        }
        let used = writer.used;
        message.msg_controllen = used;
        // SAFETY: address, slice and control data live through the call; sendmsg only reads them.
        let rc = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
        if rc >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Writes control messages behind each other.
struct CmsgWriter<'a> {
    message: &'a mut libc::msghdr,
    next: *mut libc::cmsghdr,
    used: usize,
}

impl<'a> CmsgWriter<'a> {
    fn new(message: &'a mut libc::msghdr) -> Self {
        // SAFETY: `msg_control` points to `msg_controllen` writable bytes.
        let next = unsafe { libc::CMSG_FIRSTHDR(message) };
        Self { message, next, used: 0 }
    }

    fn push<T: Copy>(&mut self, level: i32, kind: i32, value: T) {
        let size = u32::try_from(size_of::<T>()).unwrap_or(0);
        // SAFETY: computes sizes only.
        let space = unsafe { libc::CMSG_SPACE(size) } as usize;
        assert!(self.used + space <= self.message.msg_controllen, "control data does not fit");
        // SAFETY: computes sizes only.
        let len = unsafe { libc::CMSG_LEN(size) } as usize;
        let header = libc::cmsghdr { cmsg_len: len, cmsg_level: level, cmsg_type: kind };
        // SAFETY: `next` is within the control data, which has room for header and value.
        unsafe { self.next.write(header) };
        // SAFETY: as above; the value follows its header.
        let data = unsafe { libc::CMSG_DATA(self.next) };
        // SAFETY: as above; alignment is not assumed.
        unsafe { data.cast::<T>().write_unaligned(value) };
        self.used += space;
        // SAFETY: still within, or one past, the control data; checked before the next write.
        self.next = unsafe { self.next.cast::<u8>().add(space) }.cast();
    }
}

/// Bytes of the largest socket address.
#[expect(clippy::cast_possible_truncation, reason = "128")]
const STORAGE: libc::socklen_t = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
/// Messages of one call at most.
const CALL: usize = 8;

/// Receives messages into a batch.
pub(super) struct Rx<'a> {
    batch: &'a mut RxBatch,
}

impl<'a> Rx<'a> {
    /// Empties the batch.
    pub(super) fn new(batch: &'a mut RxBatch) -> Self {
        batch.arrivals.clear();
        Self { batch }
    }

    /// How many datagrams the host gave, each a run of packets.
    pub(super) fn runs(&self) -> usize {
        self.batch.arrivals.len()
    }

    /// Receives from `fd`, whose datagrams are for `dst`, without waiting; gives how many
    /// datagrams came.
    pub(super) fn fill(&mut self, fd: BorrowedFd<'_>, dst: IpAddr) -> io::Result<usize> {
        let slots = self.batch.bytes.len() / self.batch.slot;
        let mut datagrams = 0;
        while self.batch.arrivals.len() < slots {
            let from = self.batch.arrivals.len();
            let n = (slots - from).min(CALL);
            let got = self.call(fd, from, n, dst, &mut datagrams)?;
            if got < n {
                break;
            }
        }
        Ok(datagrams)
    }

    fn call(
        &mut self,
        fd: BorrowedFd<'_>,
        from: usize,
        n: usize,
        dst: IpAddr,
        datagrams: &mut usize,
    ) -> io::Result<usize> {
        let slot = self.batch.slot;
        let mut controls = [Control([0; 128]); CALL];
        // SAFETY: addresses of zeros are valid storage to be written to.
        let mut names: [libc::sockaddr_storage; CALL] = unsafe { std::mem::zeroed() };
        // SAFETY: slices of zeros are valid, empty ones.
        let mut iovs: [libc::iovec; CALL] = unsafe { std::mem::zeroed() };
        // SAFETY: message headers of zeros are valid, empty ones.
        let mut messages: [libc::mmsghdr; CALL] = unsafe { std::mem::zeroed() };
        let slots = self.batch.bytes[from * slot..].chunks_exact_mut(slot);
        for (i, bytes) in slots.take(n).enumerate() {
            iovs[i] = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: slot };
            let header = &mut messages[i].msg_hdr;
            header.msg_name = (&raw mut names[i]).cast();
            header.msg_namelen = STORAGE;
            header.msg_iov = &raw mut iovs[i];
            header.msg_iovlen = 1;
            header.msg_control = controls[i].0.as_mut_ptr().cast();
            header.msg_controllen = controls[i].0.len();
        }
        let count = u32::try_from(n).unwrap_or(0);
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: each header's name, slice and control data are distinct, writable and live
        // through the call.
        let rc = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                messages.as_mut_ptr(),
                count,
                flags,
                std::ptr::null_mut(),
            )
        };
        let Ok(got) = usize::try_from(rc) else {
            return not_waiting(io::Error::last_os_error());
        };
        for (i, message) in messages.iter().take(got).enumerate() {
            let len = (message.msg_len as usize).min(slot);
            let Some(src) = address_of(&names[i], message.msg_hdr.msg_namelen) else {
                continue;
            };
            // SAFETY: the kernel wrote it, and `controls` are not touched meanwhile.
            let told = Told::read(unsafe { Cmsgs::of(&message.msg_hdr) });
            let stride = told.segment.filter(|&s| s != 0).unwrap_or(len.max(1));
            let flow = Flow {
                src: src.ip(),
                dst,
                src_port: src.port(),
                traffic_class: told.traffic_class,
                hop_limit: told.hop_limit,
                flow_label: 0,
            };
            *datagrams += len.div_ceil(stride).max(1);
            let start = (from + i) * slot;
            let unseen = Arrival { flow, start, len, stride, headers: 0, nth: 0, record: None };
            self.batch.arrivals.push(unseen);
        }
        Ok(got)
    }
}

/// One datagram, alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Single {
    pub(crate) from: SocketAddr,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    /// Its bytes; more than there was room for where it was cut.
    pub(crate) len: usize,
}

/// Receives one datagram without waiting, from a socket that gathers nothing. Allocates nothing.
pub(crate) fn receive_one(fd: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<Option<Single>> {
    let mut control = Control([0; 128]);
    // SAFETY: an address of zeros is valid storage to be written to.
    let mut name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut iov = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: a message header of zeros is a valid, empty one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = STORAGE;
    message.msg_iov = &raw mut iov;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: name, slice and control data are distinct, writable and live through the call.
    let rc = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags) };
    let Ok(len) = usize::try_from(rc) else {
        return not_waiting(io::Error::last_os_error()).map(|_| None);
    };
    let Some(from) = address_of(&name, message.msg_namelen) else { return Ok(None) };
    // SAFETY: the kernel wrote it, and `control` is not touched meanwhile.
    let Told { traffic_class, hop_limit, .. } = Told::read(unsafe { Cmsgs::of(&message) });
    Ok(Some(Single { from, traffic_class, hop_limit, len }))
}

/// Nothing there, or interrupted, is no error: 0 messages came.
fn not_waiting(e: io::Error) -> io::Result<usize> {
    match e.raw_os_error() {
        // ECONNREFUSED: an ICMP for something sent earlier.
        Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED) => Ok(0),
        _ => Err(e),
    }
}

fn address_of(storage: &libc::sockaddr_storage, len: libc::socklen_t) -> Option<SocketAddr> {
    let mut copy = socket2::SockAddrStorage::zeroed();
    // SAFETY: libc's type is one of those that the storage may be seen as.
    *unsafe { copy.view_as::<libc::sockaddr_storage>() } = *storage;
    // SAFETY: the kernel wrote an address of `len` bytes.
    unsafe { SockAddr::new(copy, len) }.as_socket()
}

/// What the control data of a message that came tell.
#[derive(Default)]
struct Told {
    traffic_class: u8,
    hop_limit: u8,
    segment: Option<usize>,
}

impl Told {
    fn read(control: Cmsgs<'_>) -> Self {
        let mut told = Self::default();
        for cmsg in control {
            match cmsg.kind {
                (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    told.traffic_class = low_byte(cmsg.int());
                }
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    told.hop_limit = low_byte(cmsg.int());
                }
                (libc::IPPROTO_UDP, libc::UDP_GRO) => {
                    told.segment = usize::try_from(cmsg.int()).ok();
                }
                _ => {}
            }
        }
        told
    }
}

fn low_byte(value: i32) -> u8 {
    value.to_le_bytes()[0]
}
