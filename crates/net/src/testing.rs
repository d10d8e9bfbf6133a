//! What the tests of several ports share.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use urxe_wire::{Bth, Opcode, Psn, Qpn, Repr, Verdict};

use crate::udp::{UdpConfig, UdpPort};
use crate::{Flow, IcrcMode, Port, RxBatch, TxBatch, sys};

/// A loopback address of this process, so that runs beside each other do not meet.
pub(crate) fn loopback(last: u8) -> IpAddr {
    let [.., c, d] = std::process::id().to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, c.clamp(1, 254), d.clamp(1, 254), last))
}

pub(crate) fn udp(address: IpAddr) -> UdpPort {
    UdpPort::open(&UdpConfig::new(address)).unwrap()
}

pub(crate) fn flow(src: IpAddr, dst: IpAddr) -> Flow {
    Flow { src, dst, src_port: 0xc001, traffic_class: 2, hop_limit: 9, flow_label: 0 }
}

/// The packet of a PSN, BTH to pad.
pub(crate) fn packet(psn: u32, len: usize) -> Vec<u8> {
    let mut packet = vec![0; 12];
    Bth::new(Opcode(0x04), Qpn::new(2), Psn::new(psn)).emit(&mut packet).unwrap();
    packet.resize(12 + len, 0x5a);
    packet
}

/// Sends packets of these PSNs and 256 bytes.
pub(crate) fn send(port: &impl Port, flow: Flow, psns: std::ops::Range<u32>) {
    let mut batch = TxBatch::new(psns.len(), 4200);
    for psn in psns {
        batch.push(flow, &packet(psn, 256), |_| (), 0);
    }
    port.send(&mut batch).unwrap();
    assert!(batch.is_empty());
}

/// Whether a port says that it has something.
pub(crate) fn ready(port: &impl Port, timeout_ms: i32) -> bool {
    sys::wait_readable(port.fd(), timeout_ms).unwrap()
}

/// PSN and verdict of all that comes in calls until one brings nothing.
pub(crate) fn drain(port: &impl Port, rx: &mut RxBatch) -> Vec<(u32, Verdict)> {
    let mut all = Vec::new();
    while port.recv(rx).unwrap() != 0 {
        rx.for_each(IcrcMode::Solve, port.stats(), |p| {
            all.push((Bth::parse(p.bytes).unwrap().0.psn.value(), p.verdict));
        });
    }
    all
}

/// A clock that the test sets, microseconds.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn set(&self, us: u64) {
        self.0.store(us, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> impl Fn() -> Duration + Send + Sync + 'static {
        let clock = self.clone();
        move || Duration::from_micros(clock.0.load(Ordering::Relaxed))
    }
}
