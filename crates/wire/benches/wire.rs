//! What the codec costs. `cargo bench -p urxe-wire`.
//!
//! `icrc/*` puts our ICRC beside crc32fast over the same bytes in one piece, already masked:
//! `bare` is the floor; `receive` and `send` are packets of a batch, whose prefix is known but for
//! the identification; `single` is a packet alone, from header bytes; `socket` is one alone whose
//! identification is hidden and solved for.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

use std::hint::black_box;
use std::net::Ipv4Addr;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use urxe_wire::{
    Bth, Ethernet, Ext, Header, IcrcPrefix, Ipv4, Link, LinkType, Network, Opcode, Packet, Psn,
    Qpn, Repr, Reth, Roce, Udp, Vlans, emit_headers, id_difference, view,
};

const SRC: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// A sealed RC packet over Ethernet.
fn frame(opcode: &str, payload: &[u8]) -> Vec<u8> {
    let opcode = Opcode::from_name(opcode).unwrap();
    let headers = opcode.info().unwrap().headers;
    let (ext, _) = Ext::parse(headers, &[0; 64]).unwrap();
    let mut packet = Packet {
        link: Link::Ethernet(Ethernet::default()),
        vlans: Vlans::NONE,
        network: Network::Ipv4 {
            header: Ipv4 { id: 0x1234, ..Ipv4::udp(SRC, DST) },
            options: &[],
            udp: Udp::roce(0xc123),
        },
        roce: Roce::new(Bth::new(opcode, Qpn::new(0x11), Psn::new(7)), ext, payload),
        trailer: &[],
    };
    packet.seal().unwrap();
    let mut bytes = vec![0; packet.len()];
    packet.emit(&mut bytes).unwrap();
    bytes
}

fn headers(c: &mut Criterion) {
    let bytes = frame("RC_RDMA_WRITE_FIRST", &[0x5a; 1024]);
    let roce = &bytes[42..];
    let (bth, rest) = Bth::parse(roce).unwrap();
    let (reth, _) = Reth::parse(rest).unwrap();
    let ext = Ext { reth: Some(reth), ..Ext::NONE };
    let mut out = [0; 64];
    let mut group = c.benchmark_group("header");
    group.bench_function("BTH parse", |b| b.iter(|| Bth::parse(black_box(roce))));
    group.bench_function("BTH emit", |b| b.iter(|| black_box(&bth).emit(black_box(&mut out))));
    group.bench_function("RETH parse", |b| b.iter(|| Reth::parse(black_box(rest))));
    group.bench_function("RETH emit", |b| b.iter(|| black_box(&reth).emit(black_box(&mut out))));
    group.bench_function("BTH+RETH emit", |b| {
        b.iter(|| emit_headers(black_box(&bth), black_box(&ext), black_box(&mut out)));
    });
    group.bench_function("IPv4 parse", |b| b.iter(|| Ipv4::parse(black_box(&bytes[14..]))));
    group.finish();
}

fn packets(c: &mut Criterion) {
    let mut group = c.benchmark_group("packet");
    for (name, payload) in [("RC_ACKNOWLEDGE", 0), ("RC_RDMA_WRITE_FIRST", 1024)] {
        let bytes = frame(name, &vec![0x5a; payload]);
        group.bench_function(BenchmarkId::new("transport parse", name), |b| {
            b.iter(|| Roce::parse(black_box(&bytes[42..])).unwrap());
        });
        group.bench_function(BenchmarkId::new("frame parse", name), |b| {
            b.iter(|| Packet::parse(LinkType::Ethernet, black_box(&bytes)).unwrap());
        });
        let packet = Packet::parse(LinkType::Ethernet, &bytes).unwrap();
        let mut out = vec![0; bytes.len()];
        group.bench_function(BenchmarkId::new("frame emit", name), |b| {
            b.iter(|| black_box(&packet).emit(black_box(&mut out)).unwrap());
        });
    }
    group.finish();
}

fn icrc(c: &mut Criterion) {
    let mut group = c.benchmark_group("icrc");
    for size in [64, 256, 512, 1024, 2048, 4096] {
        let bytes = frame("RC_SEND_MIDDLE", &vec![0x5a; size]);
        let (ip, rest) = view::Ipv4::view(&bytes[14..]).unwrap();
        let (udp, roce) = view::Udp::view(rest).unwrap();
        let (header, payload) = (&roce[..12], &roce[12..12 + size]);
        let len = u16::try_from(roce.len()).unwrap();
        let masked = [&[0xff; 8], &bytes[14..bytes.len() - 4]].concat();
        group.throughput(Throughput::Bytes(masked.len() as u64));
        group.bench_function(BenchmarkId::new("bare", size), |b| {
            b.iter(|| crc32fast::hash(black_box(&masked)));
        });
        let prefix = IcrcPrefix::socket_v4(SRC, DST, 0xc123, 0, len);
        group.bench_function(BenchmarkId::new("receive", size), |b| {
            b.iter(|| black_box(&prefix).with_id(black_box(0x1234)).verify(black_box(roce)));
        });
        group.bench_function(BenchmarkId::new("send", size), |b| {
            b.iter(|| {
                let prefix = black_box(&prefix).with_id(black_box(0x1234));
                let mut icrc = prefix.start(black_box(header));
                icrc.update(black_box(payload));
                icrc.finish()
            });
        });
        group.bench_function(BenchmarkId::new("single", size), |b| {
            b.iter(|| IcrcPrefix::ipv4(black_box(ip), &[], black_box(udp)).verify(black_box(roce)));
        });
        group.bench_function(BenchmarkId::new("socket", size), |b| {
            b.iter(|| {
                IcrcPrefix::socket_v4(black_box(SRC), black_box(DST), 0xc123, 0, len)
                    .verify_hidden_id(black_box(roce))
            });
        });
    }
    group.finish();
}

fn solver(c: &mut Criterion) {
    let mut group = c.benchmark_group("solver");
    for after in [72, 1084, 4156] {
        group.bench_function(BenchmarkId::from_parameter(after), |b| {
            b.iter(|| id_difference(black_box([1, 2, 3, 4]), black_box([9; 4]), black_box(after)));
        });
    }
    group.finish();
}

criterion_group!(benches, headers, packets, icrc, solver);
criterion_main!(benches);
