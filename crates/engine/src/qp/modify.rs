//! From state to state.

use std::sync::Arc;

use urxe_wire::{PKey, Psn, flow_label, source_port};

use super::{Cx, Inner};
use crate::attr::{AhAttr, AttrError, AttrMask, Limits, QpAttr, QpKind, QpState};
use crate::completer::Completer;
use crate::config::NicConfig;
use crate::dcqcn::{Pacer, Rate, ReactionPoint};
use crate::path::Path;
use crate::requester::Requester;
use crate::responder::Responder;

/// The path of a QP or AH. Without a flow label of its own, a connected QP's source port comes
/// from both QPNs.
pub(crate) fn flow_path(
    config: &NicConfig,
    ah: &AhAttr,
    own: urxe_wire::Qpn,
    peer: urxe_wire::Qpn,
) -> Option<Path> {
    let src = *config.addresses.get(usize::from(ah.sgid_index))?;
    let label = if ah.flow_label == 0 { flow_label(own, peer) } else { ah.flow_label };
    let src_port = source_port(label);
    let flow_label = if config.profile.flow_label { ah.flow_label } else { 0 };
    let (traffic_class, hop_limit) = (ah.traffic_class, ah.hop_limit);
    Some(Path { src, dst: ah.dst, src_port, traffic_class, hop_limit, flow_label })
}

/// The source port that rxe's datagrams have: a multiplicative hash of the own QPN, 14 bits (Linux
/// drivers/infiniband/sw/rxe/rxe_qp.c).
pub(super) fn own_port(own: urxe_wire::Qpn) -> u16 {
    let hash = own.value().wrapping_mul(0x61c8_8647) >> 18;
    0xc000 | u16::try_from(hash & 0x3fff).unwrap_or(0)
}

impl Inner {
    /// Changes attributes, and the state with them (IBA 10.3.1).
    pub(crate) fn modify<T>(
        &mut self,
        cx: &mut Cx<'_, T>,
        new: &QpAttr,
        mask: AttrMask,
        limits: &Limits,
    ) -> Result<(), AttrError> {
        let before = self.attr;
        let (from, to) = self.attr.modify(cx.qp.kind, new, mask, limits)?;
        if to == QpState::Err && from != QpState::Err {
            // The way to ERR is the same whoever asks for it.
            self.attr = QpAttr { qp_state: from, cur_qp_state: from, ..before };
            self.enter_error(cx, false);
            return Ok(());
        }
        self.follow(cx, mask);
        match (from, to) {
            (_, QpState::Reset) => self.reset(cx),
            (QpState::Init, QpState::Rtr) => self.ready_to_receive(cx),
            (QpState::Rtr, QpState::Rts) => self.ready_to_send(cx),
            (QpState::Rts, QpState::Sqd) => {
                let asked = mask.contains(AttrMask::EN_SQD_ASYNC_NOTIFY);
                self.draining = asked && new.en_sqd_async_notify;
            }
            _ => {}
        }
        Ok(())
    }

    /// Copies what has changed to where the halves read it.
    fn follow<T>(&mut self, cx: &Cx<'_, T>, mask: AttrMask) {
        let config = &cx.nic.config;
        let attr = &self.attr;
        let conn = &mut self.conn;
        conn.mtu = match cx.qp.kind {
            QpKind::Ud | QpKind::Gsi => config.active_mtu.bytes(),
            _ => attr.path_mtu.bytes(),
        };
        conn.dest_qp = attr.dest_qp;
        conn.qkey = attr.qkey;
        conn.access = attr.access;
        conn.max_rd_atomic = attr.max_rd_atomic.into();
        conn.min_rnr_timer = attr.min_rnr_timer;
        if mask.contains(AttrMask::MAX_DEST_RD_ATOMIC) {
            conn.max_dest_rd_atomic = attr.max_dest_rd_atomic.into();
            self.responder.set_depth(conn.max_dest_rd_atomic);
        }
        let pkey = config.pkeys.get(usize::from(attr.pkey_index)).copied();
        conn.pkey = pkey.filter(|_| !config.profile.default_pkey_only).unwrap_or(PKey::DEFAULT);
        if mask.contains(AttrMask::AV) && cx.qp.kind.is_connected() {
            self.path = flow_path(config, &attr.ah, cx.qp.qpn, attr.dest_qp);
        }
        if mask.contains(AttrMask::RATE_LIMIT) {
            let rate = Rate::from_bps(u64::from(attr.rate_limit) * 1000);
            self.limit = (attr.rate_limit != 0).then(|| (rate, Pacer::default()));
        }
        if mask.intersects(AttrMask::RETRY_CNT | AttrMask::RNR_RETRY) {
            self.refill_retries();
        }
    }

    fn ready_to_receive<T>(&mut self, cx: &Cx<'_, T>) {
        let depth = usize::from(self.attr.max_dest_rd_atomic);
        self.responder = Responder::new(self.attr.rq_psn, depth, cx.qp.recv_sges(self));
    }

    fn ready_to_send<T>(&mut self, cx: &Cx<'_, T>) {
        let config = &cx.nic.config;
        // Nobody grants credits where nothing is acknowledged.
        let credits = self.conn.profile.credits && self.conn.reliable();
        self.requester = Requester::new(self.attr.sq_psn, config.max_window, credits);
        self.requester.start_at(self.sq.end());
        self.completer = Completer::new(self.attr.sq_psn);
        self.cc = match (&config.dcqcn, cx.qp.kind.is_connected()) {
            (Some(params), true) => Some(Box::new(ReactionPoint::new(params, config.line_rate))),
            _ => None,
        };
    }

    /// As it was created; work requests vanish without a completion (IBA 10.3.1).
    fn reset<T>(&mut self, cx: &Cx<'_, T>) {
        self.stop_timers();
        self.sq.clear();
        if let Some(rq) = &mut self.rq {
            rq.clear();
        }
        self.responder = Responder::new(Psn::ZERO, 0, 0);
        self.requester = Requester::new(Psn::ZERO, 0, false);
        self.completer = Completer::new(Psn::ZERO);
        self.path = None;
        self.xrc = None;
        self.nak = None;
        self.rnr_over = None;
        self.cc = None;
        self.limit = None;
        self.established = false;
        self.draining = false;
        self.cq_lost = false;
        self.request_turn = false;
        self.rest_of_turn = 0;
        let profile = Arc::clone(&self.conn.profile);
        self.conn = crate::conn::Conn::new(cx.qp.kind, cx.qp.qpn, cx.qp.pd, profile);
    }

    /// What it is set to now.
    pub(crate) fn query(&self) -> QpAttr {
        let mut attr = self.attr;
        attr.cur_qp_state = attr.qp_state;
        attr.sq_draining = attr.qp_state == QpState::Sqd && !self.is_drained();
        attr.rq_psn = self.responder.epsn();
        attr.sq_psn = self.requester.next_psn();
        attr
    }
}
