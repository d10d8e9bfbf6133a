//! The CM MADs that two kernels exchanged (`tests/captures`): each is read, compared with what is
//! known of the run, and sent again byte for byte.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::{AckTimeout, Gid, MAD_LEN, MadHeader, Mtu, PKey, Psn, QKey, Qpn, cm::*};

const RPING: &[u8] = include_bytes!("../../../../../tests/captures/rping.pcap");
const UDADDY: &[u8] = include_bytes!("../../../../../tests/captures/udaddy.pcap");

/// Side A listens and side B connects in both runs.
const A: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 11);
const B: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 12);
const PORT: u16 = 7174;

/// The MADs of a capture: pcap file header 24, record header 16, Ethernet 14, IPv4 20, UDP 8,
/// BTH 12 (the destination QP is its bytes 5 to 7), DETH 8, MAD 256, ICRC 4.
fn mads(pcap: &[u8]) -> Vec<(MadHeader, CmMessage)> {
    let mut found = vec![];
    let mut rest = &pcap[24..];
    while let Some((record, after)) = rest.split_at_checked(16) {
        let len = u32::from_le_bytes(record[8..12].try_into().unwrap()) as usize;
        let (frame, after) = after.split_at(len);
        rest = after;
        let bth = &frame[42..54];
        if bth[0] != 0x64 || bth[5..8] != [0, 0, 1] {
            continue;
        }
        let mad = &frame[62..frame.len() - 4];
        let (header, message) = CmMessage::parse(mad).unwrap();
        let mut out = [0; MAD_LEN];
        message.emit(&header, &mut out).unwrap();
        assert_eq!(out, mad, "{} is not sent as it came", message.name());
        found.push((header, message));
    }
    found
}

fn ip(address: Ipv4Addr) -> Gid {
    IpAddr::V4(address).into()
}

fn time(code: u8) -> CmTimeout {
    CmTimeout::new(code).unwrap()
}

#[test]
fn rping_connects_and_disconnects() {
    let mads = mads(RPING);
    for (header, message) in &mads {
        assert_eq!(*header, message.header(0x0000_0002_055a_4402), "one transaction id throughout");
    }
    let (active, passive) = (CommId(0x0244_5a05), CommId(0x409c_8df6));
    let req = expected_req(active);
    let rep = Rep {
        local_comm_id: passive,
        remote_comm_id: active,
        local_qpn: Qpn::new(0x14),
        starting_psn: Psn::new(0x55_038e),
        responder_resources: 1,
        initiator_depth: 1,
        target_ack_delay: time(15),
        rnr_retry_count: RetryCount::MAX,
        local_ca_guid: 0x5054_00ff_fe77_0001,
        ..Rep::default()
    };
    let rtu = Rtu { local_comm_id: active, remote_comm_id: passive, ..Rtu::default() };
    let dreq = Dreq {
        local_comm_id: active,
        remote_comm_id: passive,
        remote_qpn: Qpn::new(0x14),
        ..Dreq::default()
    };
    let drep = Drep { local_comm_id: passive, remote_comm_id: active, ..Drep::default() };
    let messages: Vec<CmMessage> = mads.into_iter().map(|(_, message)| message).collect();
    let expected: [CmMessage; 5] = [req.into(), rep.into(), rtu.into(), dreq.into(), drep.into()];
    assert_eq!(messages, expected);
}

fn expected_req(active: CommId) -> Req {
    let from = IpHeader::new(SocketAddr::new(B.into(), 0xe01e), A.into()).unwrap();
    Req {
        local_comm_id: active,
        service_id: ServiceId::tcp(PORT),
        local_ca_guid: 0x5054_00ff_fe77_0002,
        local_qpn: Qpn::new(0x14),
        responder_resources: 1,
        initiator_depth: 1,
        remote_cm_response_timeout: time(20),
        transport_service: TransportService::Rc,
        starting_psn: Psn::new(0x34_bcd1),
        local_cm_response_timeout: time(20),
        retry_count: RetryCount::MAX,
        pkey: PKey::DEFAULT,
        mtu: Mtu::B1024.into(),
        rnr_retry_count: RetryCount::MAX,
        max_cm_retries: 15,
        primary: ReqPath {
            local_lid: 0xffff,
            remote_lid: 0xffff,
            local_gid: ip(B),
            remote_gid: ip(A),
            flow_label: 0xb3fa8,
            hop_limit: 64,
            local_ack_timeout: AckTimeout::new(17).unwrap(),
            ..ReqPath::default()
        },
        private_data: from.with_data(&[]).unwrap(),
        ..Req::default()
    }
}

#[test]
fn udaddy_resolves_its_service_id() {
    let mads = mads(UDADDY);
    let [(header, CmMessage::SidrReq(req)), (reply_header, CmMessage::SidrRep(rep))] = &mads[..]
    else {
        panic!("a SIDR REQ and a SIDR REP, got {mads:?}");
    };
    assert_eq!(header.transaction_id, 0x0000_0002_feee_4085);
    assert_eq!(reply_header.transaction_id, header.transaction_id);

    let (ip, data) = req.ip_header().unwrap();
    assert_eq!(ip.source(), SocketAddr::new(B.into(), 0x83d9));
    assert_eq!(ip.destination(), IpAddr::V4(A));
    assert_eq!(data, [0; 180]);
    let request_id = CommId(0x8540_eefe);
    let service_id = ServiceId::udp(PORT);
    let expected = SidrReq {
        request_id,
        pkey: PKey::DEFAULT,
        service_id,
        private_data: req.private_data,
        ..SidrReq::default()
    };
    assert_eq!(*req, expected);

    let expected = SidrRep {
        request_id,
        status: SidrStatus::Success,
        qpn: Qpn::new(0x20),
        service_id,
        qkey: QKey::RDMA_CM_UDP,
        ..SidrRep::default()
    };
    assert_eq!(*rep, expected);
}
