//! Connections between two identifiers of a process.

use std::ffi::c_int;
use std::ptr;

use ibverbs::layout::*;

use super::library::*;
use super::pair::*;

const RC: c_int = 2;
const UD: c_int = 4;

fn conn_of(got: &Got) -> RdmaConnParam {
    // SAFETY: that of a connection.
    unsafe { got.event.param.conn }
}

#[test]
fn a_connection_stands_on_both_sides_with_what_each_said_and_ends_on_both() {
    let rig = Rig::new(PS_TCP);
    let (client, channel) = rig.client();
    qp(client, RC);
    let mut please = RdmaConnParam { retry_count: 10, ..param(b"please") };
    assert_eq!(rdma_connect(client, &raw mut please), 0, "errno {}", errno());
    let asked = expect(rig.channel, CONNECT_REQUEST);
    let server = asked.event.id;
    assert_eq!(asked.event.listen_id, rig.listener);
    assert_eq!((asked.data.len(), &asked.data[..6]), (56, &b"please"[..]));
    // From the other side's view: what one asks for, the other serves.
    let conn = conn_of(&asked);
    assert_eq!((conn.responder_resources, conn.initiator_depth), (2, 3));
    // Ten retries are seven: the field has three bits.
    assert_eq!((conn.retry_count, conn.rnr_retry_count), (7, 6));
    assert_eq!(conn.qp_num, read(read(client).qp).qp_num);
    assert_eq!(read(server).context, nowhere(), "the listener's");
    assert_eq!(rdma_get_dst_port(server), rdma_get_src_port(client));
    qp(server, RC);
    assert_eq!(rdma_accept(server, &mut param(b"welcome")), 0, "errno {}", errno());
    let stands = expect(channel, ESTABLISHED);
    assert_eq!((stands.data.len(), &stands.data[..7]), (196, &b"welcome"[..]));
    assert_eq!(conn_of(&stands).qp_num, read(read(server).qp).qp_num);
    assert_eq!(expect(rig.channel, ESTABLISHED).event.id, server);
    for id in [client, server] {
        assert_eq!(read(read(id).qp).state, 3, "RTS");
    }
    assert_eq!(rdma_disconnect(client), 0);
    assert_eq!(expect(rig.channel, DISCONNECTED).event.id, server);
    assert_eq!(rdma_disconnect(server), 0);
    assert_eq!(expect(channel, DISCONNECTED).event.id, client);
    for id in [client, server] {
        assert_eq!(read(read(id).qp).state, 6, "ERR");
        rdma_destroy_qp(id);
        assert_eq!(rdma_destroy_id(id), 0);
    }
    rdma_destroy_event_channel(channel);
    rig.close();
}

#[test]
fn a_request_is_rejected_with_the_programs_words() {
    let rig = Rig::new(PS_TCP);
    let client = rig.client();
    qp(client.0, RC);
    assert_eq!(rdma_connect(client.0, ptr::null_mut()), 0, "errno {}", errno());
    let server = expect(rig.channel, CONNECT_REQUEST).event.id;
    let no = b"no room";
    assert_eq!(rdma_reject(server, no.as_ptr().cast(), 7), 0, "errno {}", errno());
    let rejected = expect(client.1, REJECTED);
    // IBA 12.6.7.2: 28 is the program's own refusal.
    assert_eq!(rejected.event.status, 28);
    assert_eq!((rejected.data.len(), &rejected.data[..7]), (148, &no[..]));
    assert_eq!(rdma_accept(server, ptr::null_mut()), -1, "it was rejected");
    assert_eq!(errno(), libc::EINVAL);
    assert_eq!(rdma_destroy_id(server), 0);
    finish(client);
    rig.close();
}

#[test]
fn nobody_listens_and_the_peer_says_so() {
    let rig = Rig::new(PS_TCP);
    let client = rig.client();
    qp(client.0, RC);
    rig.close();
    assert_eq!(rdma_connect(client.0, ptr::null_mut()), 0, "errno {}", errno());
    // IBA 12.6.7.2: 8, invalid service id.
    assert_eq!(expect(client.1, REJECTED).event.status, 8);
    finish(client);
}

#[test]
fn qps_of_the_programs_own_are_brought_up_with_the_attributes_of_the_exchange() {
    let rig = Rig::new(PS_TCP);
    let client = rig.client();
    // QPs of the library's, made through identifiers that connect nothing.
    let (a, b) = (rig.client(), rig.client());
    qp(a.0, RC);
    qp(b.0, RC);
    let number = |of: &(Id, _)| read(read(of.0).qp).qp_num;
    let with = |of| RdmaConnParam { qp_num: number(of), ..param(b"") };
    assert_eq!(rdma_connect(client.0, ptr::null_mut()), -1, "no QP is named");
    let mut ece = IbvEce { vendor_id: 0x15b3, options: 7, comp_mask: 0 };
    assert_eq!(rdma_set_local_ece(client.0, &raw mut ece), 0);
    assert_eq!(rdma_connect(client.0, &mut with(&a)), 0, "errno {}", errno());
    let asked = expect(rig.channel, CONNECT_REQUEST);
    let server = asked.event.id;
    let mut told = IbvEce::zero();
    assert_eq!(rdma_get_remote_ece(server, &raw mut told), 0);
    assert_eq!((told.vendor_id, told.options), (0x15b3, 7));
    assert_eq!(rdma_accept(server, &mut with(&b)), 0, "errno {}", errno());
    let answer = expect(client.1, CONNECT_RESPONSE);
    assert_eq!(conn_of(&answer).qp_num, number(&b));
    let mut attr = IbvQpAttr { qp_state: 2, ..IbvQpAttr::zero() };
    let mut mask = 0;
    assert_eq!(rdma_init_qp_attr(client.0, &raw mut attr, &raw mut mask), 0, "errno {}", errno());
    // STATE, AV, PATH_MTU, DEST_QPN, RQ_PSN, MAX_DEST_RD_ATOMIC, MIN_RNR_TIMER.
    assert_eq!(mask, 0x12_9181);
    assert_eq!((attr.dest_qp_num, attr.max_dest_rd_atomic), (number(&b), 2));
    assert_eq!(ip_of(attr.ah_attr.grh.dgid), *rig.at.ip());
    attr.qp_state = 3;
    assert_eq!(rdma_init_qp_attr(client.0, &raw mut attr, &raw mut mask), 0);
    // STATE, TIMEOUT, RETRY_CNT, RNR_RETRY, MAX_QP_RD_ATOMIC, SQ_PSN.
    assert_eq!((mask, attr.retry_cnt, attr.max_rd_atomic), (0x1_2e01, 5, 2));
    assert_eq!(rdma_establish(client.0), 0, "errno {}", errno());
    assert_eq!(expect(rig.channel, ESTABLISHED).event.id, server);
    // What is going on is ended with the identifiers.
    assert_eq!(rdma_destroy_id(server), 0);
    [client, a, b].into_iter().for_each(finish);
    rig.close();
}

#[test]
fn a_datagram_service_tells_its_qp_and_the_way_to_it() {
    let rig = Rig::new(PS_UDP);
    let client = rig.client();
    qp(client.0, UD);
    assert_eq!(rdma_connect(client.0, &mut param(b"who")), 0, "errno {}", errno());
    let asked = expect(rig.channel, CONNECT_REQUEST);
    assert_eq!((asked.data.len(), &asked.data[..3]), (180, &b"who"[..]));
    let server = asked.event.id;
    qp(server, UD);
    assert_eq!(rdma_accept(server, &mut param(b"me")), 0, "errno {}", errno());
    let found = expect(client.1, ESTABLISHED);
    // SAFETY: that of datagrams.
    let ud = unsafe { found.event.param.ud };
    assert_eq!((ud.qp_num, ud.qkey), (read(read(server).qp).qp_num, 0x0123_4567));
    assert_eq!((ud.ah_attr.is_global, ip_of(ud.ah_attr.grh.dgid)), (1, (*rig.at.ip()).into()));
    assert_eq!((found.data.len(), &found.data[..2]), (136, &b"me"[..]));
    rdma_destroy_qp(server);
    assert_eq!(rdma_destroy_id(server), 0);
    finish(client);
    rig.close();
}

#[test]
fn a_group_is_joined_by_its_address_and_left() {
    let rig = Rig::new(PS_UDP);
    let client = rig.client();
    qp(client.0, UD);
    let mut group = address([239, 7, 7, 7].into(), 0);
    let group: *mut libc::sockaddr = (&raw mut group).cast();
    assert_eq!(rdma_join_multicast(client.0, group, nowhere()), 0, "errno {}", errno());
    let mut event = ptr::null_mut();
    assert_eq!(rdma_get_cm_event(client.1, &raw mut event), 0);
    let got = read(event);
    assert_eq!((got.event, got.status), (MULTICAST_JOIN, 0));
    // SAFETY: that of datagrams.
    let ud = unsafe { got.param.ud };
    assert_eq!((ud.private_data, ud.qp_num), (nowhere::<()>().cast_const().cast(), 0xff_ffff));
    assert_eq!(ip_of(ud.ah_attr.grh.dgid).to_string(), "239.7.7.7");
    assert_eq!(rdma_ack_cm_event(event), 0);
    assert_eq!(rdma_join_multicast(client.0, group, nowhere()), -1);
    assert_eq!(errno(), libc::EADDRINUSE);
    assert_eq!(rdma_leave_multicast(client.0, group), 0, "errno {}", errno());
    assert_eq!(rdma_leave_multicast(client.0, group), -1);
    assert_eq!(errno(), libc::EADDRNOTAVAIL);
    finish(client);
    rig.close();
}

#[test]
fn events_move_with_their_identifier_to_another_channel() {
    let rig = Rig::new(PS_TCP);
    let (client, channel) = rig.client();
    qp(client, RC);
    assert_eq!(rdma_connect(client, ptr::null_mut()), 0, "errno {}", errno());
    let server = expect(rig.channel, CONNECT_REQUEST).event.id;
    assert_eq!(rdma_reject(server, ptr::null(), 0), 0, "errno {}", errno());
    assert_eq!(rdma_destroy_id(server), 0);
    let other = rdma_create_event_channel();
    assert_eq!(rdma_migrate_id(client, other), 0, "errno {}", errno());
    assert_eq!(read(client).channel, other);
    rdma_destroy_event_channel(channel);
    assert_eq!(expect(other, REJECTED).event.id, client);
    finish((client, other));
    rig.close();
}

#[test]
fn a_channel_does_not_block_if_the_program_says_so_and_an_identifier_waits_for_its_events() {
    let channel = rdma_create_event_channel();
    let fd = read(channel).fd;
    // SAFETY: the descriptor is open.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    assert_eq!(flags & libc::O_NONBLOCK, 0);
    // SAFETY: likewise.
    assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) }, 0);
    let mut event = ptr::null_mut();
    assert_eq!(rdma_get_cm_event(channel, &raw mut event), -1);
    assert_eq!(errno(), libc::EAGAIN);
    let one = id(channel, PS_TCP);
    let mut to = address(own(), 9);
    assert_eq!(rdma_resolve_addr(one, ptr::null_mut(), (&raw mut to).cast(), 1000), 0);
    assert_eq!(rdma_get_cm_event(channel, &raw mut event), 0);
    assert_eq!(read(event).event, ADDR_RESOLVED);
    let address = one.expose_provenance();
    let gone =
        std::thread::spawn(move || rdma_destroy_id(ptr::with_exposed_provenance_mut(address)));
    // Until it is being destroyed it is found.
    while rdma_get_dst_port(one) != 0 {
        std::thread::yield_now();
    }
    assert!(!gone.is_finished());
    assert_eq!(rdma_ack_cm_event(event), 0);
    assert_eq!(gone.join().unwrap(), 0);
    rdma_destroy_event_channel(channel);
}

#[test]
fn a_process_that_exits_ends_its_connections() {
    let role = std::env::var("URXE_TEST_CONNECT").ok();
    if let Some(to) = role {
        // The other process: connects, and leaves.
        let to: std::net::SocketAddrV4 = to.parse().unwrap();
        let channel = rdma_create_event_channel();
        let client = id(channel, PS_TCP);
        let mut to = address(*to.ip(), to.port());
        let (none, to) = (ptr::null_mut(), (&raw mut to).cast());
        assert_eq!(rdma_resolve_addr(client, none, to, 1000), 0);
        expect(channel, ADDR_RESOLVED);
        assert_eq!(rdma_resolve_route(client, 1000), 0);
        expect(channel, ROUTE_RESOLVED);
        qp(client, RC);
        assert_eq!(rdma_connect(client, ptr::null_mut()), 0);
        expect(channel, ESTABLISHED);
        std::process::exit(7);
    }
    let rig = Rig::new(PS_TCP);
    let test = "connection::a_process_that_exits_ends_its_connections";
    let mut other = std::process::Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", test]).env("URXE_TEST_CONNECT", rig.at.to_string());
    let mut other = other.spawn().unwrap();
    let server = expect(rig.channel, CONNECT_REQUEST).event.id;
    qp(server, RC);
    assert_eq!(rdma_accept(server, ptr::null_mut()), 0);
    expect(rig.channel, ESTABLISHED);
    assert_eq!(expect(rig.channel, DISCONNECTED).event.status, 0);
    assert_eq!(other.wait().unwrap().code(), Some(7));
    rdma_destroy_qp(server);
    assert_eq!(rdma_destroy_id(server), 0);
    rig.close();
}
