//! Two identifiers of a process that connect with each other.

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::ptr;

use ibverbs::layout::*;

use super::library::*;

pub(crate) const PS_TCP: c_int = 0x106;
pub(crate) const PS_UDP: c_int = 0x111;

/// `enum rdma_cm_event_type`.
pub(crate) const ADDR_RESOLVED: c_int = 0;
pub(crate) const ROUTE_RESOLVED: c_int = 2;
pub(crate) const CONNECT_REQUEST: c_int = 4;
pub(crate) const CONNECT_RESPONSE: c_int = 5;
pub(crate) const REJECTED: c_int = 8;
pub(crate) const ESTABLISHED: c_int = 9;
pub(crate) const DISCONNECTED: c_int = 10;
pub(crate) const MULTICAST_JOIN: c_int = 12;

pub(crate) type Id = *mut RdmaCmId;

/// The calling thread's errno.
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// What a live object shows.
pub(crate) fn read<T: Copy>(object: *mut T) -> T {
    // SAFETY: a live object of the library's.
    unsafe { *object }
}

/// Any pointer that is no object.
pub(crate) fn nowhere<T>() -> *mut T {
    ptr::without_provenance_mut(0x1000)
}

/// An address as C has it.
pub(crate) fn address(ip: Ipv4Addr, port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: 2,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) },
        sin_zero: [0; 8],
    }
}

pub(crate) fn id(channel: *mut RdmaEventChannel, ps: c_int) -> Id {
    let mut made = ptr::null_mut();
    assert_eq!(rdma_create_id(channel, &raw mut made, nowhere(), ps), 0, "errno {}", errno());
    assert_eq!(read(made).context, nowhere());
    made
}

/// An event, acknowledged already, with its private data.
pub(crate) struct Got {
    pub(crate) event: RdmaCmEvent,
    pub(crate) data: Vec<u8>,
}

/// The next event, which must be this one.
pub(crate) fn expect(channel: *mut RdmaEventChannel, wanted: c_int) -> Got {
    let mut event = ptr::null_mut();
    assert_eq!(rdma_get_cm_event(channel, &raw mut event), 0, "errno {}", errno());
    let got = read(event);
    assert_eq!(got.event, wanted, "status {}", got.status);
    // SAFETY: both of the union begin with the same two fields.
    let conn = unsafe { got.param.conn };
    let data = match conn.private_data.is_null() {
        true => Vec::new(),
        // SAFETY: as long as the event says.
        false => unsafe {
            std::slice::from_raw_parts(conn.private_data.cast(), conn.private_data_len.into())
        }
        .to_vec(),
    };
    assert_eq!(rdma_ack_cm_event(event), 0);
    Got { event: got, data }
}

/// The address of the device.
pub(crate) fn own() -> Ipv4Addr {
    let channel = rdma_create_event_channel();
    let probe = id(channel, PS_TCP);
    let mut any = address(Ipv4Addr::UNSPECIFIED, 9);
    let (none, any) = (ptr::null_mut(), (&raw mut any).cast());
    assert_eq!(rdma_resolve_addr(probe, none, any, 1000), 0, "errno {}", errno());
    expect(channel, ADDR_RESOLVED);
    let gid = read(probe).route.addr.ib.sgid.0;
    assert_eq!(rdma_destroy_id(probe), 0);
    rdma_destroy_event_channel(channel);
    Ipv4Addr::new(gid[12], gid[13], gid[14], gid[15])
}

/// Both sides of a service, each with a channel of its own.
pub(crate) struct Rig {
    pub(crate) channel: *mut RdmaEventChannel,
    pub(crate) listener: Id,
    pub(crate) at: SocketAddrV4,
    pub(crate) ps: c_int,
}

impl Rig {
    pub(crate) fn new(ps: c_int) -> Self {
        let channel = rdma_create_event_channel();
        let listener = id(channel, ps);
        let ip = own();
        let mut bound = address(ip, 0);
        assert_eq!(rdma_bind_addr(listener, (&raw mut bound).cast()), 0, "errno {}", errno());
        assert_eq!(rdma_listen(listener, 8), 0, "errno {}", errno());
        let port = u16::from_be(rdma_get_src_port(listener));
        assert_ne!(port, 0);
        Self { channel, listener, at: SocketAddrV4::new(ip, port), ps }
    }

    /// An identifier that has the way to the service, and its channel.
    pub(crate) fn client(&self) -> (Id, *mut RdmaEventChannel) {
        let channel = rdma_create_event_channel();
        let client = id(channel, self.ps);
        let mut to = address(*self.at.ip(), self.at.port());
        let (none, to) = (ptr::null_mut(), (&raw mut to).cast());
        assert_eq!(rdma_resolve_addr(client, none, to, 1000), 0, "errno {}", errno());
        expect(channel, ADDR_RESOLVED);
        assert_eq!(rdma_resolve_route(client, 1000), 0, "errno {}", errno());
        expect(channel, ROUTE_RESOLVED);
        assert_eq!(u16::from_be(rdma_get_dst_port(client)), self.at.port());
        (client, channel)
    }

    pub(crate) fn close(self) {
        assert_eq!(rdma_destroy_id(self.listener), 0);
        rdma_destroy_event_channel(self.channel);
    }
}

/// Gives an identifier a QP, with CQs of the library's.
pub(crate) fn qp(of: Id, qp_type: c_int) {
    let cap = IbvQpCap {
        max_send_wr: 4,
        max_recv_wr: 4,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    let mut init = IbvQpInitAttr { cap, qp_type, sq_sig_all: 1, ..IbvQpInitAttr::zero() };
    assert_eq!(rdma_create_qp(of, ptr::null_mut(), &raw mut init), 0, "errno {}", errno());
    assert!(!read(of).qp.is_null() && !read(of).send_cq.is_null() && !read(of).recv_cq.is_null());
}

pub(crate) fn finish((id, channel): (Id, *mut RdmaEventChannel)) {
    if !read(id).qp.is_null() {
        rdma_destroy_qp(id);
    }
    assert_eq!(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

/// Parameters with private data.
pub(crate) fn param(data: &[u8]) -> RdmaConnParam {
    RdmaConnParam {
        private_data: data.as_ptr().cast(),
        private_data_len: u8::try_from(data.len()).unwrap(),
        responder_resources: 3,
        initiator_depth: 2,
        retry_count: 5,
        rnr_retry_count: 6,
        ..RdmaConnParam::zero()
    }
}

/// An IPv4-mapped GID's address.
pub(crate) fn ip_of(gid: RawGid) -> IpAddr {
    std::net::Ipv6Addr::from(gid.0).to_canonical()
}
