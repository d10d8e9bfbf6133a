//! UC and UD: on a link that loses nothing, all arrives.

use std::net::IpAddr;

use urxe::{Access, QpKind, Qpn, SendOp, WcFlags, WcOpcode};

use super::reliable::write_op;
use crate::bench::{Bench, Role};
use crate::node::{Dest, Spec};

const IMM: [u8; 4] = [1, 2, 3, 4];
const LENGTHS: [usize; 7] = [0, 1, 1023, 1024, 1025, 4096, 10_001];
/// Bytes before a datagram's payload.
const GRH: usize = 40;

const fn uc() -> Spec {
    Spec { kind: QpKind::Uc, access: Access::REMOTE_WRITE, ..Spec::DEFAULT }
}

const fn ud() -> Spec {
    Spec { kind: QpKind::Ud, access: Access::empty(), ..Spec::DEFAULT }
}

pub fn send(bench: &mut Bench) {
    let p = bench.pair(&uc());
    for (n, len) in LENGTHS.into_iter().enumerate() {
        let imm = (n % 2 == 0).then_some(IMM);
        bench.a.fill(&p.ra.piece(0..len), n);
        bench.b.receive(p.qb, n as u64, &[p.rb.piece(0..20_000)]);
        bench.a.send(p.qa, n as u64, SendOp::Send { imm }, &[p.ra.piece(0..len)]);
        bench.a.done(1);
        let got = bench.b.done(1)[0];
        assert_eq!((got.wr_id, got.byte_len as usize), (n as u64, len));
        assert_eq!(got.flags & WcFlags::WITH_IMM.bits() != 0, imm.is_some());
        bench.b.holds(&p.rb.piece(0..len), n, "UC SEND");
    }
}

pub fn write(bench: &mut Bench) {
    let p = bench.pair(&uc());
    for (n, len) in LENGTHS.into_iter().enumerate() {
        bench.a.fill(&p.ra.piece(0..len), n);
        // The second tells that the first has arrived.
        bench.b.receive(p.qb, n as u64, &[]);
        bench.a.send(p.qa, 1, write_op(&p, None), &[p.ra.piece(0..len)]);
        let empty = write_op(&p, Some(IMM));
        bench.a.send(p.qa, 2, empty, &[p.ra.piece(0..0)]);
        bench.a.done(2);
        let got = bench.b.done(1)[0];
        assert_eq!(got.opcode, WcOpcode::RecvRdmaWithImm as u32);
        assert_eq!(got.extra, u32::from_be_bytes(IMM));
        bench.b.holds(&p.rb.piece(0..len), n, "UC WRITE");
    }
}

/// The addresses of the header before a datagram.
fn addresses(grh: &[u8], v6: bool) -> [IpAddr; 2] {
    let v4 = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&grh[at..at + 4]).unwrap());
    let whole = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&grh[at..at + 16]).unwrap());
    if v6 { [whole(8), whole(24)] } else { [v4(32), v4(36)] }
}

fn datagrams(bench: &mut Bench, group: Option<IpAddr>) {
    let p = bench.pair(&ud());
    let (from, to) = (bench.a.endpoint(p.qa), bench.b.endpoint(p.qb));
    let qkey = ud().qkey;
    let dest = match group {
        None => Dest { address: to.address, qpn: to.qpn.value(), qkey },
        Some(address) => {
            bench.b.join(p.qb, address);
            Dest { address, qpn: Qpn::MULTICAST.value(), qkey }
        }
    };
    for (n, len) in [0, 1, 2, 500, 1024, 4096].into_iter().enumerate() {
        for imm in [None, Some(IMM)] {
            bench.a.fill(&p.ra.piece(0..len), n);
            bench.b.receive(p.qb, n as u64, &[p.rb.piece(0..8192)]);
            bench.a.datagram(p.qa, n as u64, &dest, imm, &p.ra.piece(0..len));
            bench.a.done(1);
            let got = bench.b.done(1)[0];
            assert_eq!((got.wr_id, got.byte_len as usize), (n as u64, len + GRH));
            assert_eq!(got.src_qp, from.qpn.value());
            assert_ne!(got.flags & WcFlags::GRH.bits(), 0, "{got:?}");
            assert_eq!(got.flags & WcFlags::WITH_IMM.bits() != 0, imm.is_some());
            assert!(imm.is_none() || got.extra == u32::from_be_bytes(IMM), "{got:?}");
            bench.b.holds(&p.rb.piece(GRH..GRH + len), n, "datagram");
            let grh = bench.b.read(p.rb.index, 0..GRH);
            assert_eq!(addresses(&grh, bench.column.v6), [from.address, dest.address]);
        }
    }
    // Another Q_Key: it is dropped, and the next one takes the receive.
    bench.b.receive(p.qb, 70, &[p.rb.piece(0..8192)]);
    let wrong = Dest { qkey: urxe::QKey(qkey.0 + 1), ..dest };
    bench.a.datagram(p.qa, 71, &wrong, None, &p.ra.piece(0..7));
    bench.a.datagram(p.qa, 72, &dest, None, &p.ra.piece(0..8));
    bench.a.done(2);
    assert_eq!(bench.b.done(1)[0].byte_len as usize, 8 + GRH);
}

pub fn unicast(bench: &mut Bench) {
    datagrams(bench, None);
}

pub fn multicast(bench: &mut Bench) {
    let group = if bench.column.v6 { "ff0e::88:1" } else { "239.88.0.1" };
    // rxe joins the group for its QPs, but its host's IP has to join by other means.
    let host_joins = bench.column.role == Role::Urxe;
    let prefix = if bench.column.v6 { 128 } else { 32 };
    if host_joins {
        bench.exec(&format!("ip addr replace {group}/{prefix} dev eth0 autojoin"));
    }
    datagrams(bench, Some(group.parse().unwrap()));
    if host_joins {
        bench.exec(&format!("ip addr del {group}/{prefix} dev eth0"));
    }
}
