//! The headers below the transport's.

use urxe_wire::{
    Ethernet, Grh, Ipv4, Ipv6, Lrh, NextHeader, Repr, Sll, Sll2, Udp, Vlan, ethertype, protocol,
};

use super::{HeaderFields, Value};

/// An Ethernet header.
#[must_use]
pub(crate) fn ethernet(at: usize, h: &Ethernet) -> HeaderFields {
    HeaderFields::new("Ethernet", at, 14)
        .with("dst", 0, 6, Value::Text(h.dst.to_string()))
        .with("src", 6, 6, Value::Text(h.src.to_string()))
        .with("ethertype", 12, 2, ethertype_value(h.ethertype))
}

/// A VLAN tag after its TPID.
#[must_use]
pub(crate) fn vlan(at: usize, h: &Vlan) -> HeaderFields {
    HeaderFields::new("VLAN", at, 4)
        .with("priority", 0, 1, Value::Number(h.priority.into()))
        .with("drop_eligible", 0, 1, Value::Flag(h.drop_eligible))
        .with("id", 0, 2, Value::Number(h.id.into()))
        .with("ethertype", 2, 2, ethertype_value(h.ethertype))
}

/// A Linux cooked header.
#[must_use]
pub(crate) fn sll(at: usize, h: &Sll) -> HeaderFields {
    HeaderFields::new("SLL", at, 16)
        .with("packet_type", 0, 2, packet_type(h.packet_type))
        .with("device_type", 2, 2, Value::Number(h.device_type.into()))
        .with("address_length", 4, 2, Value::Number(h.address_len.into()))
        .with("address", 6, 8, Value::Bytes(h.address.to_vec()))
        .with("ethertype", 14, 2, ethertype_value(h.ethertype))
}

/// A Linux cooked header, version 2.
#[must_use]
pub(crate) fn sll2(at: usize, h: &Sll2) -> HeaderFields {
    HeaderFields::new("SLL2", at, 20)
        .with("ethertype", 0, 2, ethertype_value(h.ethertype))
        .with("reserved", 2, 2, Value::Hex(h.reserved.into(), 16))
        .with("interface", 4, 4, Value::Number(h.interface.into()))
        .with("device_type", 8, 2, Value::Number(h.device_type.into()))
        .with("packet_type", 10, 1, packet_type(h.packet_type.into()))
        .with("address_length", 11, 1, Value::Number(h.address_len.into()))
        .with("address", 12, 8, Value::Bytes(h.address.to_vec()))
}

/// An IPv4 header with its options.
#[must_use]
pub(crate) fn ipv4(at: usize, h: &Ipv4, options: &[u8]) -> HeaderFields {
    let fixed = HeaderFields::new("IPv4", at, h.header_len())
        .with("header_length", 0, 1, Value::Number(h.header_len() as u64))
        .with("dscp", 1, 1, Value::Number(u64::from(h.tos >> 2)))
        .with("ecn", 1, 1, ecn(h.tos))
        .with("total_length", 2, 2, Value::Number(h.total_len.into()))
        .with("id", 4, 2, Value::Hex(h.id.into(), 16))
        .with("reserved", 6, 1, Value::Flag(h.reserved))
        .with("dont_fragment", 6, 1, Value::Flag(h.dont_fragment))
        .with("more_fragments", 6, 1, Value::Flag(h.more_fragments))
        .with("fragment_offset", 6, 2, Value::Number(h.fragment_offset.into()))
        .with("ttl", 8, 1, Value::Number(h.ttl.into()))
        .with("protocol", 9, 1, protocol_value(h.protocol))
        .with("checksum", 10, 2, Value::Hex(h.checksum.into(), 16))
        .with("src", 12, 4, Value::Text(h.src.to_string()))
        .with("dst", 16, 4, Value::Text(h.dst.to_string()));
    if options.is_empty() {
        return fixed;
    }
    fixed.with("options", Ipv4::LEN, options.len(), Value::Bytes(options.to_vec()))
}

/// An IPv6 header.
#[must_use]
pub(crate) fn ipv6(at: usize, h: &Ipv6) -> HeaderFields {
    HeaderFields::new("IPv6", at, 40)
        .with("dscp", 0, 2, Value::Number(u64::from(h.traffic_class >> 2)))
        .with("ecn", 1, 1, ecn(h.traffic_class))
        .with("flow_label", 1, 3, Value::Hex(h.flow_label.into(), 20))
        .with("payload_length", 4, 2, Value::Number(h.payload_len.into()))
        .with("next_header", 6, 1, protocol_value(h.next_header))
        .with("hop_limit", 7, 1, Value::Number(h.hop_limit.into()))
        .with("src", 8, 16, Value::Text(h.src.to_string()))
        .with("dst", 24, 16, Value::Text(h.dst.to_string()))
}

/// A UDP header.
#[must_use]
pub(crate) fn udp(at: usize, h: &Udp) -> HeaderFields {
    HeaderFields::new("UDP", at, 8)
        .with("src_port", 0, 2, Value::Number(h.src_port.into()))
        .with("dst_port", 2, 2, Value::Number(h.dst_port.into()))
        .with("length", 4, 2, Value::Number(h.len.into()))
        .with("checksum", 6, 2, Value::Hex(h.checksum.into(), 16))
}

/// InfiniBand's local route header.
#[must_use]
pub(crate) fn lrh(at: usize, h: &Lrh) -> HeaderFields {
    let next = match h.next {
        NextHeader::RawEthertype => "raw, ethertype header",
        NextHeader::RawIpv6 => "raw, IPv6 header",
        NextHeader::Local => "BTH",
        NextHeader::Global => "GRH",
    };
    HeaderFields::new("LRH", at, 8)
        .with("virtual_lane", 0, 1, Value::Number(h.vl.into()))
        .with("service_level", 1, 1, Value::Number(h.sl.into()))
        .with("reserved_2", 1, 1, Value::Number(h.reserved2.into()))
        .with("next_header", 1, 1, Value::Coded(h.next as u64, next.to_owned()))
        .with("dlid", 2, 2, Value::Number(h.dlid.into()))
        .with("reserved_5", 4, 1, Value::Number(h.reserved5.into()))
        .with("packet_length", 4, 2, Value::Number(h.packet_bytes() as u64))
        .with("slid", 6, 2, Value::Number(h.slid.into()))
}

/// InfiniBand's global route header.
#[must_use]
pub(crate) fn grh(at: usize, h: &Grh) -> HeaderFields {
    HeaderFields::new("GRH", at, 40)
        .with("traffic_class", 0, 2, Value::Number(h.traffic_class.into()))
        .with("flow_label", 1, 3, Value::Hex(h.flow_label.into(), 20))
        .with("payload_length", 4, 2, Value::Number(h.payload_len.into()))
        .with("next_header", 6, 1, protocol_value(h.next_header))
        .with("hop_limit", 7, 1, Value::Number(h.hop_limit.into()))
        .with("sgid", 8, 16, Value::Text(h.sgid.to_string()))
        .with("dgid", 24, 16, Value::Text(h.dgid.to_string()))
}

fn coded(code: u64, meaning: Option<&str>, bits: usize) -> Value {
    match meaning {
        Some(meaning) => Value::CodedHex(code, bits, meaning.to_owned()),
        None => Value::Hex(code, bits),
    }
}

fn ethertype_value(code: u16) -> Value {
    let meaning = match code {
        ethertype::IPV4 => Some("IPv4"),
        ethertype::IPV6 => Some("IPv6"),
        ethertype::VLAN => Some("VLAN"),
        ethertype::SERVICE_VLAN => Some("service VLAN"),
        ethertype::OLD_SERVICE_VLAN => Some("service VLAN, before 802.1ad"),
        ethertype::ROCE_V1 => Some("RoCE version 1"),
        _ => None,
    };
    coded(code.into(), meaning, 16)
}

fn protocol_value(code: u8) -> Value {
    match code {
        protocol::UDP => Value::Coded(code.into(), "UDP".to_owned()),
        protocol::IBA_TRANSPORT => Value::Coded(code.into(), "BTH".to_owned()),
        _ => Value::Number(code.into()),
    }
}

/// The two low bits of a traffic class (RFC 3168).
fn ecn(traffic_class: u8) -> Value {
    let meaning = match traffic_class & 3 {
        0 => "not ECN-capable",
        1 => "ECT(1)",
        2 => "ECT(0)",
        _ => "congestion experienced",
    };
    Value::Coded(u64::from(traffic_class & 3), meaning.to_owned())
}

fn packet_type(code: u16) -> Value {
    let meaning = match code {
        0 => "to us",
        1 => "broadcast",
        2 => "multicast",
        3 => "to another host",
        4 => "sent by us",
        _ => return Value::Number(code.into()),
    };
    Value::Coded(code.into(), meaning.to_owned())
}
