//! QP1: how MADs come and go.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use urxe_cm::{Mad, Route};
use urxe_engine::{
    AhAttr, Arm, Completion, CqId, QpAttr, QpCaps, QpInit, QpKind, RecvWr, SendFlags, SendOp,
    SendWr, UdDest, WcStatus,
};
use urxe_memory::{Access, Backing, Buffer, MrInfo, PdId, Sge};
use urxe_wire::{MAD_LEN, QKey, Qpn};

use crate::Error;
use crate::device::Device;

/// Receives that wait: so many MADs may come before one of them is looked at.
const RECEIVES: usize = 1024;
/// Sends that may wait for room in the port.
const SENDS: u32 = 1024;
/// What stands before each MAD that is received.
const GRH: usize = 40;
/// Bytes of a receive.
const SLOT: usize = GRH + MAD_LEN;

/// QP1 of a device, with what it needs.
#[derive(Debug)]
pub(super) struct Gsi {
    pd: PdId,
    pub(super) cq: CqId,
    buffer: Arc<Buffer>,
    mr: MrInfo,
    completions: Vec<Completion>,
}

impl Gsi {
    /// Makes QP1, which is made once for a device.
    pub(super) fn open(device: &Device) -> Result<Self, Error> {
        let pd = device.nic.memory().alloc_pd()?;
        let made = Self::in_pd(device, pd);
        if made.is_err() {
            device.nic.memory().dealloc_pd(pd)?;
        }
        made
    }

    fn in_pd(device: &Device, pd: PdId) -> Result<Self, Error> {
        let buffer = Buffer::zeroed(RECEIVES * SLOT)?;
        let addr = buffer.as_ptr().addr() as u64;
        let backing = Backing::buffer(Arc::clone(&buffer));
        let mr = device.nic.memory().reg_mr(pd, backing, addr, Access::LOCAL_WRITE)?;
        let cq = device.nic.create_cq(2 * u32::try_from(RECEIVES).unwrap_or(SENDS));
        let made = cq.map_err(Error::from).and_then(|cq| {
            let gsi = Self { pd, cq, buffer, mr, completions: Vec::new() };
            let up = gsi.bring_up(device);
            if up.is_err() {
                device.nic.destroy_cq(cq)?;
            }
            up.map(|()| gsi)
        });
        if made.is_err() {
            device.nic.memory().dereg_mr(mr.id)?;
        }
        made
    }

    fn bring_up(&self, device: &Device) -> Result<(), Error> {
        let nic = &device.nic;
        let qpn = nic.create_qp(&QpInit {
            kind: QpKind::Gsi,
            pd: self.pd,
            send_cq: Some(self.cq),
            recv_cq: Some(self.cq),
            srq: None,
            xrcd: None,
            caps: QpCaps {
                max_send_wr: SENDS,
                max_recv_wr: u32::try_from(RECEIVES).unwrap_or(SENDS),
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: u32::try_from(MAD_LEN).unwrap_or(0),
            },
            sig_all: false,
        })?;
        let ready = nic
            .connect_qp(qpn, &QpAttr { qkey: QKey::GSI, port_num: 1, ..QpAttr::default() })
            .map_err(Error::from)
            .and_then(|()| (0..RECEIVES).try_for_each(|slot| self.post(device, slot)));
        if ready.is_err() {
            nic.destroy_qp(qpn)?;
        }
        ready
    }

    fn post(&self, device: &Device, slot: usize) -> Result<(), Error> {
        let addr = self.buffer.as_ptr().addr() as u64 + (slot * SLOT) as u64;
        let length = u32::try_from(SLOT).unwrap_or(0);
        let sges = [Sge { addr, length, lkey: self.mr.lkey }];
        let wr = RecvWr { wr_id: slot as u64, sges: &sges };
        Ok(device.nic.post_recv(device.now(), Qpn::GSI, &wr)?)
    }

    /// Hands what has come to `take`, and asks for the next event first.
    pub(super) fn take_in(&mut self, device: &Device, mut take: impl FnMut(&Route, &[u8])) {
        if let Err(error) = device.nic.arm_cq(self.cq, Arm::Next) {
            tracing::error!(%error, "QP1's CQ");
        }
        let mut completions = std::mem::take(&mut self.completions);
        while matches!(device.nic.poll_cq(self.cq, &mut completions, 64), Ok(n) if n != 0) {
            for done in completions.drain(..) {
                let slot = usize::try_from(done.wr_id).unwrap_or(0);
                let mut bytes = [0; SLOT];
                let len = usize::try_from(done.byte_len).unwrap_or(0);
                let read = self.buffer.read(slot * SLOT, &mut bytes);
                if let (WcStatus::Success, Ok(()), Some(mad)) =
                    (done.status, read, bytes.get(GRH..len))
                {
                    let local = device.address();
                    let remote = source(bytes.first_chunk().unwrap_or(&[0; GRH]), local);
                    take(&Route { local, remote, remote_qpn: done.src_qp }, mad);
                }
                if let Err(error) = self.post(device, slot) {
                    tracing::error!(%error, "a receive of QP1");
                }
            }
        }
        self.completions = completions;
    }

    /// Sends MADs. One that finds no room is lost as one on the wire is.
    pub(super) fn send(&self, device: &Device, mads: &[(Route, Mad)]) {
        if mads.is_empty() {
            return;
        }
        let now = device.now();
        device.with_sink(|sink| {
            for (route, mad) in mads {
                let attr = AhAttr { dst: route.remote, ..AhAttr::default() };
                let sent = device.nic.create_ah(self.pd, &attr).map_err(Error::from);
                let sent = sent.and_then(|ah| {
                    let dest = Some(UdDest { ah, qpn: route.remote_qpn, qkey: QKey::GSI });
                    let wr = SendWr {
                        inline: mad,
                        flags: SendFlags::INLINE,
                        dest,
                        ..SendWr::new(0, SendOp::Send { imm: None }, &[])
                    };
                    let posted = device.nic.post_send(now, Qpn::GSI, &wr, sink);
                    device.nic.destroy_ah(ah)?;
                    Ok(posted?)
                });
                if let Err(error) = sent {
                    tracing::warn!(%error, to = %route.remote, "a MAD was not sent");
                }
            }
        });
    }
}

/// Who sent a MAD, as the bytes before it tell: an IPv6 header, or 20 bytes and an IPv4 header.
fn source(grh: &[u8; GRH], own: IpAddr) -> IpAddr {
    match own {
        IpAddr::V4(_) => Ipv4Addr::new(grh[32], grh[33], grh[34], grh[35]).into(),
        IpAddr::V6(_) => {
            let mut octets = [0; 16];
            octets.copy_from_slice(&grh[8..24]);
            Ipv6Addr::from(octets).into()
        }
    }
}
