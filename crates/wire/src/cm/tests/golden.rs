//! Each message against bytes put together by hand from the offsets of IBA chapter 12, with every
//! field (reserved ones too) holding a value of its own.

use core::fmt::Debug;

use super::body;
use crate::{AckTimeout, Gid, PKey, Psn, QKey, Qpn, Repr, cm::*};

const ID: &[u8] = &[0x01, 0x02, 0x03, 0x04];
const PEER_ID: &[u8] = &[0x05, 0x06, 0x07, 0x08];
const LOCAL: CommId = CommId(0x0102_0304);
const REMOTE: CommId = CommId(0x0506_0708);

#[track_caller]
fn golden<T: Repr + PartialEq + Debug>(value: T, bytes: [u8; 232]) {
    let (parsed, rest) = T::parse(&bytes).unwrap();
    assert_eq!(parsed, value);
    assert!(rest.is_empty());
    let mut out = [0xaa; 232];
    assert_eq!(value.emit(&mut out), Ok(232));
    assert_eq!(out, bytes);
}

fn time(code: u8) -> CmTimeout {
    CmTimeout::new(code).unwrap()
}

fn retry(count: u8) -> RetryCount {
    RetryCount::new(count).unwrap()
}

fn gid(first: u8) -> [u8; 16] {
    core::array::from_fn(|i| first + u8::try_from(i).unwrap())
}

fn path(n: u8) -> ReqPath {
    ReqPath {
        local_lid: 0x1100 + u16::from(n),
        remote_lid: 0x2200 + u16::from(n),
        local_gid: Gid(gid(n)),
        remote_gid: Gid(gid(n + 0x10)),
        flow_label: 0xabcde,
        reserved38: 0b10_0001,
        packet_rate: 0b11_0010,
        traffic_class: 0x33,
        hop_limit: 0x44,
        service_level: 0x5,
        subnet_local: true,
        reserved42: 0b101,
        local_ack_timeout: AckTimeout::new(17).unwrap(),
        sap_supported: true,
        reserved43: 0b01,
    }
}

#[test]
fn req_stands_at_its_offsets() {
    let value = Req {
        local_comm_id: LOCAL,
        reserved4: 0x09,
        vendor_id: 0x0a_0b0c,
        service_id: ServiceId::tcp(7174),
        local_ca_guid: 0x1112_1314_1516_1718,
        reserved24: 0x191a_1b1c,
        local_qkey: QKey(0x1d1e_1f20),
        local_qpn: Qpn::new(0x21_2223),
        responder_resources: 0x24,
        local_eecn: 0x25_2627,
        initiator_depth: 0x28,
        remote_eecn: 0x29_2a2b,
        remote_cm_response_timeout: time(20),
        transport_service: TransportService::Uc,
        end_to_end_flow_control: true,
        starting_psn: Psn::new(0x2c_2d2e),
        local_cm_response_timeout: time(18),
        retry_count: retry(6),
        pkey: PKey(0x2f30),
        mtu: MtuCode(3),
        rdc_exists: true,
        rnr_retry_count: retry(7),
        max_cm_retries: 15,
        srq: true,
        extended_transport: 1,
        primary: path(0x40),
        alternate: path(0x80),
        private_data: [0x5a; 92],
    };
    // Flow label, 10_0001, rate 11_0010; SL 5, subnet local, 101; timeout 17, SAP, 01.
    let path_end = [0xab, 0xcd, 0xe8, 0x72, 0x33, 0x44, 0x5d, 0x8d];
    golden(
        value,
        body(&[
            (0, ID),
            (4, &[0x09, 0x0a, 0x0b, 0x0c]),
            (8, &[0, 0, 0, 0, 0x01, 0x06, 0x1c, 0x06]),
            (16, &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c]),
            (28, &[0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24]),
            (36, &[0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b]),
            (43, &[20 << 3 | 1 << 1 | 1, 0x2c, 0x2d, 0x2e, 18 << 3 | 6]),
            (48, &[0x2f, 0x30, 0x3f, 0xf9]),
            (52, &[0x11, 0x40, 0x22, 0x40]),
            (56, &gid(0x40)),
            (72, &gid(0x50)),
            (88, &path_end),
            (96, &[0x11, 0x80, 0x22, 0x80]),
            (100, &gid(0x80)),
            (116, &gid(0x90)),
            (132, &path_end),
            (140, &[0x5a; 92]),
        ]),
    );
}

#[test]
fn mra_stands_at_its_offsets() {
    let value = Mra {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        message: MraMessage::Lap,
        reserved8: 0b11_0011,
        service_timeout: time(24),
        reserved9: 0b011,
        private_data: [0x5a; 222],
    };
    let parts: &[(usize, &[u8])] =
        &[(0, ID), (4, PEER_ID), (8, &[2 << 6 | 0x33, 24 << 3 | 3]), (10, &[0x5a; 222])];
    golden(value, body(parts));
}

#[test]
fn rej_stands_at_its_offsets() {
    let value = Rej {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        message: RejMessage::Rep,
        reserved8: 0b10_0001,
        info_length: 72,
        reserved9: 1,
        reason: RejReason::ConsumerDefined,
        info: [0x3c; 72],
        private_data: [0x5a; 148],
    };
    let bytes = body(&[
        (0, ID),
        (4, PEER_ID),
        (8, &[1 << 6 | 0x21, 72 << 1 | 1, 0, 28]),
        (12, &[0x3c; 72]),
        (84, &[0x5a; 148]),
    ]);
    golden(value, bytes);
    assert_eq!(value.additional_info().unwrap(), [0x3c; 72]);
}

#[test]
fn rep_and_rtu_stand_at_their_offsets() {
    let value = Rep {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        local_qkey: QKey(0x090a_0b0c),
        local_qpn: Qpn::new(0x0d_0e0f),
        vendor_id_high: 0x10,
        local_eecn: 0x11_1213,
        vendor_id_middle: 0x14,
        starting_psn: Psn::new(0x15_1617),
        vendor_id_low: 0x18,
        responder_resources: 0x19,
        initiator_depth: 0x1a,
        target_ack_delay: time(15),
        failover: Failover::Rejected,
        end_to_end_flow_control: true,
        rnr_retry_count: retry(5),
        srq: true,
        reserved27: 0b1001,
        local_ca_guid: 0x1b1c_1d1e_1f20_2122,
        private_data: [0x5a; 196],
    };
    let bytes = body(&[
        (0, ID),
        (4, PEER_ID),
        (8, &[0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10]),
        (16, &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]),
        (24, &[0x19, 0x1a, 15 << 3 | 2 << 1 | 1, 5 << 5 | 1 << 4 | 9]),
        (28, &[0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22]),
        (36, &[0x5a; 196]),
    ]);
    golden(value, bytes);
    assert_eq!(value.vendor_id(), 0x10_1418);

    let rtu = Rtu { local_comm_id: LOCAL, remote_comm_id: REMOTE, private_data: [0x5a; 224] };
    golden(rtu, body(&[(0, ID), (4, PEER_ID), (8, &[0x5a; 224])]));
}

#[test]
fn dreq_and_drep_stand_at_their_offsets() {
    let dreq = Dreq {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        remote_qpn: Qpn::new(0x09_0a0b),
        reserved11: 0x0c,
        private_data: [0x5a; 220],
    };
    let bytes = body(&[(0, ID), (4, PEER_ID), (8, &[0x09, 0x0a, 0x0b, 0x0c]), (12, &[0x5a; 220])]);
    golden(dreq, bytes);
    let drep = Drep { local_comm_id: LOCAL, remote_comm_id: REMOTE, private_data: [0x5a; 224] };
    golden(drep, body(&[(0, ID), (4, PEER_ID), (8, &[0x5a; 224])]));
}

#[test]
fn sidr_req_and_sidr_rep_stand_at_their_offsets() {
    let req = SidrReq {
        request_id: LOCAL,
        pkey: PKey(0x7fff),
        reserved6: 0x0506,
        service_id: ServiceId::udp(7174),
        private_data: [0x5a; 216],
    };
    let service: &[u8] = &[0, 0, 0, 0, 0x01, 0x11, 0x1c, 0x06];
    let bytes = body(&[(0, ID), (4, &[0x7f, 0xff, 5, 6]), (8, service), (16, &[0x5a; 216])]);
    golden(req, bytes);

    let rep = SidrRep {
        request_id: LOCAL,
        status: SidrStatus::Redirect,
        info_length: 8,
        vendor_id_high: 0x0506,
        qpn: Qpn::new(0x07_0809),
        vendor_id_low: 0x0a,
        service_id: ServiceId::udp(7174),
        qkey: QKey::RDMA_CM_UDP,
        info: [0x3c; 72],
        private_data: [0x5a; 136],
    };
    let bytes = body(&[
        (0, ID),
        (4, &[4, 8, 5, 6, 7, 8, 9, 0x0a]),
        (12, service),
        (20, &[0x01, 0x23, 0x45, 0x67]),
        (24, &[0x3c; 72]),
        (96, &[0x5a; 136]),
    ]);
    golden(rep, bytes);
    assert_eq!(rep.additional_info().unwrap(), [0x3c; 8]);
    assert_eq!(rep.vendor_id(), 0x05_060a);
}

#[test]
fn lap_and_apr_stand_at_their_offsets() {
    let lap = Lap {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        reserved8: 0x090a_0b0c,
        remote_qpn: Qpn::new(0x0d_0e0f),
        remote_cm_response_timeout: time(19),
        reserved15: 0b110,
        reserved16: 0x1011_1213,
        local_lid: 0x1415,
        remote_lid: 0x1617,
        local_gid: Gid([0x18; 16]),
        remote_gid: Gid([0x19; 16]),
        flow_label: 0x12345,
        reserved58: 0x6,
        traffic_class: 0x1a,
        hop_limit: 0x1b,
        reserved61: 0b10,
        packet_rate: 0b00_0011,
        service_level: 0xf,
        subnet_local: false,
        reserved62: 0b011,
        local_ack_timeout: AckTimeout::new(14).unwrap(),
        reserved63: 0b100,
        private_data: [0x5a; 168],
    };
    let bytes = body(&[
        (0, ID),
        (4, PEER_ID),
        (8, &[0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 19 << 3 | 6]),
        (16, &[0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17]),
        (24, &[0x18; 16]),
        (40, &[0x19; 16]),
        (56, &[0x12, 0x34, 0x56, 0x1a, 0x1b, 0x83, 0xf3, 14 << 3 | 4]),
        (64, &[0x5a; 168]),
    ]);
    golden(lap, bytes);

    let apr = Apr {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        info_length: 73,
        status: AprStatus::InvalidSl,
        reserved10: 0x090a,
        info: [0x3c; 72],
        private_data: [0x5a; 148],
    };
    let bytes = body(&[
        (0, ID),
        (4, PEER_ID),
        (8, &[73, 13, 9, 10]),
        (12, &[0x3c; 72]),
        (84, &[0x5a; 148]),
    ]);
    golden(apr, bytes);
    let error = apr.additional_info().unwrap_err();
    assert_eq!(error.to_string(), "CM APR information length: got 73, wanted at most 72");
}
