//! A packet as urxe-wire reads it, in tshark's words.

use std::collections::BTreeMap;

use urxe_cli::capture::Frame;
use urxe_wire::{
    Bth, CmMessage, Ethernet, Ext, Link, MAD_HEADER_LEN, MAD_LEN, MadHeader, Network, Packet, Roce,
    Syndrome, Udp,
    cm::{Drep, Dreq, IpAddresses, Rep, Req, Rtu},
};

/// Our values by tshark's names of the fields; a field that is not there has no entry.
pub(crate) type Row = BTreeMap<&'static str, String>;

/// All that tshark is asked for, of one packet.
pub(crate) fn row(frame: &Frame<'_>, packet: &Packet<'_>) -> Row {
    let mut row = Row::new();
    row.insert("frame.number", frame.number.to_string());
    row.insert("frame.len", frame.original_len.to_string());
    row.insert("frame.time_epoch", frame.time.unwrap().to_string());
    let Link::Ethernet(Ethernet { src, dst, .. }) = packet.link else {
        panic!("the captures are of Ethernet");
    };
    row.insert("eth.src", src.to_string());
    row.insert("eth.dst", dst.to_string());
    network(&mut row, &packet.network);
    bth(&mut row, &packet.roce.bth);
    extensions(&mut row, &packet.roce.ext);
    let icrc = u32::from_be_bytes(packet.roce.icrc);
    row.insert("infiniband.invariant.crc", format!("{icrc:#010x}"));
    payload(&mut row, &packet.roce);
    row
}

fn network(row: &mut Row, network: &Network<'_>) {
    let Udp { src_port, dst_port, len, .. } = match network {
        Network::Ipv4 { header, udp, .. } => {
            row.insert("ip.src", header.src.to_string());
            row.insert("ip.dst", header.dst.to_string());
            row.insert("ip.id", format!("{:#06x}", header.id));
            row.insert("ip.ttl", header.ttl.to_string());
            row.insert("ip.len", header.total_len.to_string());
            udp
        }
        Network::Ipv6 { header, udp } => {
            row.insert("ipv6.src", header.src.to_string());
            row.insert("ipv6.dst", header.dst.to_string());
            row.insert("ipv6.hlim", header.hop_limit.to_string());
            row.insert("ipv6.plen", header.payload_len.to_string());
            udp
        }
        Network::Grh(_) | Network::Local => panic!("the captures are of RoCEv2"),
    };
    row.insert("udp.srcport", src_port.to_string());
    row.insert("udp.dstport", dst_port.to_string());
    row.insert("udp.length", len.to_string());
}

fn bit(on: bool) -> String {
    u8::from(on).to_string()
}

fn bth(row: &mut Row, h: &Bth) {
    row.insert("infiniband.bth.opcode", h.opcode.0.to_string());
    row.insert("infiniband.bth.se", bit(h.solicited));
    row.insert("infiniband.bth.m", bit(h.mig_req));
    row.insert("infiniband.bth.padcnt", h.pad.to_string());
    // A BTH of another version does not parse.
    row.insert("infiniband.bth.tver", "0".to_owned());
    row.insert("infiniband.bth.p_key", h.pkey.0.to_string());
    row.insert("infiniband.bth.destqp", format!("{:#08x}", h.dest_qp.value()));
    row.insert("infiniband.bth.a", bit(h.ack_req));
    row.insert("infiniband.bth.reserved7", h.reserved7.to_string());
    row.insert("infiniband.bth.psn", h.psn.to_string());
}

fn extensions(row: &mut Row, ext: &Ext) {
    if let Some(h) = &ext.deth {
        row.insert("infiniband.deth.q_key", format!("{:#018x}", h.qkey.0));
        row.insert("infiniband.deth.srcqp", format!("{:#010x}", h.src_qp.value()));
    }
    if let Some(h) = &ext.reth {
        row.insert("infiniband.reth.va", format!("{:#018x}", h.va));
        row.insert("infiniband.reth.r_key", format!("{:#010x}", h.rkey));
        row.insert("infiniband.reth.dmalen", h.dma_len.to_string());
    }
    if let Some(h) = &ext.atomic {
        // tshark has the same names for the address and key of both headers.
        row.insert("infiniband.reth.va", format!("{:#018x}", h.va));
        row.insert("infiniband.reth.r_key", format!("{:#010x}", h.rkey));
        row.insert("infiniband.atomiceth.swapdt", h.swap_add.to_string());
        row.insert("infiniband.atomiceth.cmpdt", h.compare.to_string());
    }
    if let Some(h) = &ext.aeth {
        let bits = h.syndrome.bits();
        row.insert("infiniband.aeth.syndrome", bits.to_string());
        row.insert("infiniband.aeth.syndrome.opcode", (bits >> 5).to_string());
        match h.syndrome {
            Syndrome::Ack(credit) => {
                row.insert("infiniband.aeth.syndrome.credit_count", credit.code().to_string())
            }
            Syndrome::RnrNak(timer) => {
                row.insert("infiniband.aeth.syndrome.timer", timer.code().to_string())
            }
            Syndrome::Nak(_) | Syndrome::Reserved(_) => {
                row.insert("infiniband.aeth.syndrome.error_code", (bits & 0x1f).to_string())
            }
        };
        row.insert("infiniband.aeth.msn", h.msn.to_string());
    }
    if let Some(h) = &ext.atomic_ack {
        row.insert("infiniband.atomicacketh.origremdt", h.original.to_string());
    }
    if let Some(h) = &ext.imm {
        row.insert("infiniband.immdt", octets(&h.data));
    }
    if let Some(h) = &ext.ieth {
        row.insert("infiniband.ieth", octets(&h.rkey.to_be_bytes()));
    }
}

fn octets(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn payload(row: &mut Row, roce: &Roce<'_>) {
    let Ok((header, message)) = CmMessage::parse(roce.payload) else {
        // tshark counts the pad as payload.
        match roce.payload.len() + roce.pad.len() {
            0 => {}
            len => drop(row.insert("data.len", len.to_string())),
        }
        return;
    };
    mad(row, &header);
    // tshark knows nothing of SIDR, so the whole body is compared: as we write what we have read.
    let mut out = [0; MAD_LEN];
    message.emit(&header, &mut out).unwrap();
    row.insert("infiniband.mad.data", octets(&out[MAD_HEADER_LEN..]));
    match &message {
        CmMessage::Req(m) => req(row, m),
        CmMessage::Rep(m) => rep(row, m),
        CmMessage::Rtu(Rtu { local_comm_id, remote_comm_id, .. }) => {
            row.insert("infiniband.cm.rtu.localcommid", local_comm_id.to_string());
            row.insert("infiniband.cm.rtu.remotecommid", remote_comm_id.to_string());
        }
        CmMessage::Dreq(Dreq { local_comm_id, remote_comm_id, remote_qpn, .. }) => {
            row.insert("infiniband.cm.dreq.localcommid", local_comm_id.to_string());
            row.insert("infiniband.cm.dreq.remotecommid", remote_comm_id.to_string());
            row.insert("infiniband.cm.req.remoteqpneecn", remote_qpn.to_string());
        }
        CmMessage::Drep(Drep { local_comm_id, remote_comm_id, .. }) => {
            row.insert("infiniband.cm.drsp.localcommid", local_comm_id.to_string());
            row.insert("infiniband.cm.drsp.remotecommid", remote_comm_id.to_string());
        }
        CmMessage::SidrReq(_) | CmMessage::SidrRep(_) => {}
        other => panic!("the captures hold no {}", other.name()),
    }
}

fn mad(row: &mut Row, h: &MadHeader) {
    row.insert("infiniband.mad.baseversion", format!("{:#04x}", h.base_version));
    row.insert("infiniband.mad.mgmtclass", format!("{:#04x}", h.class.code()));
    row.insert("infiniband.mad.classversion", format!("{:#04x}", h.class_version));
    row.insert("infiniband.mad.method", format!("{:#04x}", h.method.code()));
    row.insert("infiniband.mad.status", format!("{:#06x}", h.status));
    row.insert("infiniband.mad.classspecific", format!("{:#06x}", h.class_specific));
    row.insert("infiniband.mad.transactionid", format!("{:#018x}", h.transaction_id));
    row.insert("infiniband.mad.attributeid", format!("{:#06x}", h.attribute_id));
    row.insert("infiniband.mad.attributemodifier", format!("{:#010x}", h.attribute_modifier));
}

fn req(row: &mut Row, m: &Req) {
    let byte = |n: u8| format!("{n:#04x}");
    let service = m.service_id.0.to_be_bytes();
    row.insert("infiniband.cm.req", m.local_comm_id.to_string());
    row.insert("infiniband.cm.req.serviceid.prefix", octets(&service[..5]));
    row.insert("infiniband.cm.req.serviceid.protocol", byte(service[5]));
    row.insert("infiniband.cm.req.serviceid.dport", format!("0x{}", octets(&service[6..])));
    row.insert("infiniband.cm.req.localcaguid", format!("{:#018x}", m.local_ca_guid));
    row.insert("infiniband.cm.req.localqkey", format!("{:#010x}", m.local_qkey.0));
    row.insert("infiniband.cm.req.localqpn", m.local_qpn.to_string());
    row.insert("infiniband.cm.req.responderres", byte(m.responder_resources));
    row.insert("infiniband.cm.req.localeecn", format!("{:#08x}", m.local_eecn));
    row.insert("infiniband.cm.req.initdepth", byte(m.initiator_depth));
    row.insert("infiniband.cm.req.remoteeecn", format!("{:#08x}", m.remote_eecn));
    row.insert("infiniband.cm.req.remoteresptout", byte(m.remote_cm_response_timeout.code()));
    row.insert("infiniband.cm.req.transpsvctype", byte(m.transport_service.code()));
    row.insert("infiniband.cm.req.e2eflowctrl", byte(m.end_to_end_flow_control.into()));
    row.insert("infiniband.cm.req.startpsn", format!("{:#08x}", m.starting_psn.value()));
    row.insert("infiniband.cm.req.localresptout", byte(m.local_cm_response_timeout.code()));
    row.insert("infiniband.cm.req.retrcount", byte(m.retry_count.count()));
    row.insert("infiniband.cm.req.pkey", format!("{:#06x}", m.pkey.0));
    row.insert("infiniband.cm.req.pppmtu", byte(m.mtu.0));
    row.insert("infiniband.cm.req.rdcexist", byte(m.rdc_exists.into()));
    row.insert("infiniband.cm.req.rnrretrcount", byte(m.rnr_retry_count.count()));
    row.insert("infiniband.cm.req.maxcmretr", byte(m.max_cm_retries));
    row.insert("infiniband.cm.req.srq", byte(m.srq.into()));
    row.insert("infiniband.cm.req.ext_transport", byte(m.extended_transport));
    let path = &m.primary;
    row.insert("infiniband.cm.req.prim_locallid", path.local_lid.to_string());
    row.insert("infiniband.cm.req.prim_remotelid", path.remote_lid.to_string());
    let ipv4 = |gid: [u8; 16]| std::net::Ipv6Addr::from(gid).to_ipv4_mapped().unwrap().to_string();
    row.insert("infiniband.cm.req.prim_localgid_ipv4", ipv4(path.local_gid.0));
    row.insert("infiniband.cm.req.prim_remotegid_ipv4", ipv4(path.remote_gid.0));
    let word = path.flow_label << 12 | u32::from(path.packet_rate);
    row.insert("infiniband.cm.req.prim_flowlabel", format!("{:#07x}", path.flow_label));
    row.insert("infiniband.cm.req.prim_pktrate", format!("{word:#010x}"));
    row.insert("infiniband.cm.req.prim_tfcclass", byte(path.traffic_class));
    row.insert("infiniband.cm.req.prim_hoplim", byte(path.hop_limit));
    row.insert("infiniband.cm.req.prim_sl", byte(path.service_level));
    row.insert("infiniband.cm.req.prim_subnetlocal", byte(path.subnet_local.into()));
    row.insert("infiniband.cm.req.prim_localacktout", byte(path.local_ack_timeout.code()));
    let (ip, _) = m.ip_header().unwrap();
    let IpAddresses::V4 { source, destination, .. } = ip.addresses else {
        panic!("the captures hold no REQ over IPv6");
    };
    // A header of another version does not parse.
    row.insert("infiniband.cm.req.ip_cm.majv", byte(0));
    row.insert("infiniband.cm.req.ip_cm.minv", byte(0));
    row.insert("infiniband.cm.req.ip_cm.ipv", byte(4));
    row.insert("infiniband.cm.req.ip_cm.sport", format!("{:#06x}", ip.source_port));
    row.insert("infiniband.cm.req.ip_cm.sip4", source.to_string());
    row.insert("infiniband.cm.req.ip_cm.dip4", destination.to_string());
}

fn rep(row: &mut Row, m: &Rep) {
    let byte = |n: u8| format!("{n:#04x}");
    row.insert("infiniband.cm.rep", m.local_comm_id.to_string());
    row.insert("infiniband.cm.rep.remotecommid", m.remote_comm_id.to_string());
    row.insert("infiniband.cm.rep.localqkey", format!("{:#010x}", m.local_qkey.0));
    row.insert("infiniband.cm.rep.localqpn", m.local_qpn.to_string());
    row.insert("infiniband.cm.rep.localeecn", format!("{:#08x}", m.local_eecn));
    row.insert("infiniband.cm.rep.startpsn", format!("{:#08x}", m.starting_psn.value()));
    row.insert("infiniband.cm.rep.respres", byte(m.responder_resources));
    row.insert("infiniband.cm.rep.initdepth", byte(m.initiator_depth));
    row.insert("infiniband.cm.rep.tgtackdelay", byte(m.target_ack_delay.code()));
    row.insert("infiniband.cm.rep.failoveracc", byte(m.failover.code()));
    row.insert("infiniband.cm.rep.e2eflowctrl", byte(m.end_to_end_flow_control.into()));
    row.insert("infiniband.cm.rep.rnrretrcount", byte(m.rnr_retry_count.count()));
    row.insert("infiniband.cm.rep.srq", byte(m.srq.into()));
    row.insert("infiniband.cm.rep.localcaguid", format!("{:#018x}", m.local_ca_guid));
}
