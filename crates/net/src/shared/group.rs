//! The sockets of an address, and the filter that tells them apart.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use socket2::{SockFilter, Socket};
use urxe_wire::ROCE_UDP_PORT;

use super::{GSI_SLOT, SLOTS};
use crate::PortError;
use crate::udp::{bind, enable_gro, socket_for};

/// Bytes of MADs that may wait for the broker: some hundreds of MADs.
const GSI_BUFFER: usize = 1 << 20;

/// Opens UDP port 4791 of `address` as many times as there are slots; the socket's place in the
/// list is its slot.
pub(super) fn open(address: IpAddr) -> Result<[Socket; SLOTS], PortError> {
    let fail = |call| PortError::socket(call, address);
    // The first one is bound alone, so that it joins no group of another's: what is left of a
    // broker, say. Sockets that may be shared once they are bound can be joined.
    let first = open_one(address, false)?;
    first.set_reuse_port(true).map_err(fail("SO_REUSEPORT"))?;
    let mut sockets = vec![first];
    while sockets.len() < SLOTS {
        sockets.push(open_one(address, true)?);
    }
    // Packets to QP1 are looked at one by one, in the broker.
    let gsi = &sockets[usize::from(GSI_SLOT)];
    set_gathering(gsi.as_fd(), false);
    crate::sys::set_buffers(gsi, GSI_BUFFER);
    crate::sys::attach_group_filter(&sockets[0], &by_slot())
        .map_err(fail("SO_ATTACH_REUSEPORT_CBPF"))?;
    Ok(sockets.try_into().expect("as many as there are slots"))
}

fn open_one(address: IpAddr, shared: bool) -> Result<Socket, PortError> {
    // Nobody reads it yet.
    let socket = socket_for(address, 0)?;
    socket.set_reuse_port(shared).map_err(PortError::socket("SO_REUSEPORT", address))?;
    bind(&socket, SocketAddr::new(address, ROCE_UDP_PORT))?;
    // Which of them the kernel asks whether it may gather is not ours to say.
    enable_gro(&socket);
    Ok(socket)
}

/// The slot of a packet: the upper six bits of its destination QPN, bytes 5 to 7 of the BTH. One
/// that is too short has slot 0.
fn by_slot() -> [SockFilter; 3] {
    let step = |code: u32, k| SockFilter::new(u16::try_from(code).unwrap_or(0), 0, 0, k);
    [
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 5),
        step(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, 2),
        step(libc::BPF_RET | libc::BPF_A, 0),
    ]
}

/// The slot of a packet from its BTH on, as the filter sees it.
pub(crate) fn slot_of(packet: &[u8]) -> u8 {
    packet.get(5).map_or(0, |byte| byte >> 2)
}

/// Makes a socket as new: as little room as the host gives, for nobody reads it, and nothing in it.
/// Allocates nothing.
pub(super) fn clear(socket: BorrowedFd<'_>) {
    // It only saves memory, and ends the flow of what is thrown away.
    let _ = set_socket_recv_buffer_size(socket, 0);
    // More than fit in the largest buffer, and not for ever.
    for _ in 0..1 << 21 {
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        match rustix::net::recv(socket, &mut [0_u8; 1][..], flags) {
            Ok(_) | Err(Errno::INTR | Errno::CONNREFUSED) => {}
            Err(_) => return,
        }
    }
}

/// Sets whether the host gathers what arrives for a socket. Allocates nothing.
pub(super) fn set_gathering(socket: BorrowedFd<'_>, on: bool) {
    // Where the host cannot, it does not.
    let _ = crate::sys::set_fd(socket, libc::IPPROTO_UDP, libc::UDP_GRO, on.into());
}
