//! Attributes of a connection's QP, from the exchange to the values of `ibv_modify_qp`.

use urxe_cm::{QpAttrs, RtrAttrs, State as CmState};
use urxe_engine::attr::Needs;
use urxe_engine::{AhAttr, AttrMask, QpAttr, QpKind, QpState};
use urxe_memory::Access;

use super::Id;
use super::dispatch::SERVICE_QKEY;
use super::state::{Entry, Role, State};
use crate::{Error, Qp};

impl Id {
    /// What `ibv_modify_qp` is to be told to bring the QP to INIT, RTR or RTS, as
    /// `rdma_init_qp_attr` gives it; nothing is done with it. INIT can be had as soon as the id has
    /// an address, the rest when the peer's QP is known. On the passive side it is what the peer
    /// asks for; a program that serves less lowers `max_dest_rd_atomic` and `max_rd_atomic`.
    ///
    /// # Errors
    /// Where the state is none of the three, or the peer's QP is not known.
    pub fn qp_attr(&self, to: QpState) -> Result<(QpAttr, AttrMask), Error> {
        self.manager()?.look(|state| {
            let entry = state.entry(self.number())?;
            let from = match to {
                QpState::Init => QpState::Reset,
                QpState::Rtr => QpState::Init,
                QpState::Rts => QpState::Rtr,
                _ => return Err(wrong("a way to INIT, RTR or RTS")),
            };
            let required = Needs::of(entry.kind, from, to).unwrap_or_default().required;
            let attr = match (entry.kind, state.attrs(entry), to) {
                (QpKind::Ud, ..) => datagram(entry),
                (_, Some(attrs), _) => connected(&attrs),
                (_, None, QpState::Init) => QpAttr { port_num: 1, ..QpAttr::default() },
                (_, None, _) => return Err(wrong("a peer whose QP is known")),
            };
            Ok((QpAttr { qp_state: to, ..attr }, AttrMask::STATE | required))
        })
    }
}

const fn wrong(wanted: &'static str) -> Error {
    Error::IdState { call: "qp_attr", wanted }
}

impl State {
    /// What the exchange has agreed on so far.
    pub(super) fn attrs(&self, entry: &Entry) -> Option<QpAttrs> {
        let Role::Conn(conn) = entry.role else { return None };
        match self.cm.state(conn)? {
            CmState::ReqReceived => self.cm.attrs_offered(conn, entry.psn).ok(),
            _ => self.cm.qp_attrs(conn).ok(),
        }
    }
}

fn datagram(entry: &Entry) -> QpAttr {
    QpAttr { qkey: SERVICE_QKEY, sq_psn: entry.psn, port_num: 1, ..QpAttr::default() }
}

fn connected(attrs: &QpAttrs) -> QpAttr {
    let QpAttrs { init, rtr, rts, .. } = attrs;
    let mut access = Access::empty();
    access.set(Access::REMOTE_WRITE, init.remote_write);
    access.set(Access::REMOTE_READ | Access::REMOTE_ATOMIC, init.remote_read_atomic);
    QpAttr {
        access,
        port_num: 1,
        path_mtu: rtr.mtu,
        dest_qp: rtr.dest_qpn,
        rq_psn: rtr.rq_psn,
        ah: way(rtr),
        max_dest_rd_atomic: rtr.max_dest_rd_atomic,
        min_rnr_timer: rtr.min_rnr_timer,
        sq_psn: rts.sq_psn,
        timeout: rts.timeout,
        retry_cnt: rts.retry_cnt.count(),
        rnr_retry: rts.rnr_retry.count(),
        max_rd_atomic: rts.max_rd_atomic,
        ..QpAttr::default()
    }
}

const fn way(rtr: &RtrAttrs) -> AhAttr {
    let path = &rtr.path;
    AhAttr {
        dst: path.remote,
        sgid_index: 0,
        hop_limit: path.hop_limit,
        traffic_class: path.traffic_class,
        flow_label: path.flow_label,
        sl: path.service_level,
        port_num: 1,
    }
}

/// Which steps [`adopt`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upto {
    /// The peer may send; we may not yet.
    Rtr,
    Rts,
}

/// Brings a QP, which is in RESET or has been readied for receives, to where its id says.
pub(super) fn adopt(qp: &Qp, id: &Id, upto: Upto) -> Result<(), Error> {
    for to in [QpState::Init, QpState::Rtr, QpState::Rts] {
        if to == QpState::Rts && upto == Upto::Rtr {
            break;
        }
        let state = qp.query()?.attr.qp_state;
        if state == to && to != QpState::Init || state > to {
            continue;
        }
        let (given, mask) = id.qp_attr(to)?;
        let own = qp.wanted();
        // What no exchange tells stays as the QP was built.
        let attr = QpAttr {
            access: given.access | own.access,
            min_rnr_timer: own.min_rnr_timer,
            pkey_index: own.pkey_index,
            ..given
        };
        qp.modify(&attr, mask)?;
    }
    Ok(())
}
