//! The attributes of a QP as typed values, their ranges, and how a change is applied.

use std::net::{IpAddr, Ipv4Addr};

use urxe_memory::Access;
use urxe_wire::{AckTimeout, Mtu, Psn, QKey, Qpn, RnrTimer};

use super::{AttrError, AttrMask, QpKind, QpState, check};

/// Alternate path state, with the values of `enum ibv_mig_state`. urxe has no alternate path, so
/// that a QP always is [`MigState::Migrated`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum MigState {
    /// On its only path.
    #[default]
    Migrated = 0,
    /// Asks for a new alternate path.
    Rearm = 1,
    /// Ready to migrate.
    Armed = 2,
}

/// The way to a peer (`struct ibv_ah_attr`): of a connected QP, or an address handle's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AhAttr {
    /// The peer's GID as an IP address: IPv4 where the GID is IPv4-mapped.
    pub dst: IpAddr,
    /// Which of our GIDs, so which of our addresses, packets come from.
    pub sgid_index: u8,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limit: u8,
    /// DSCP in the upper six bits, ECN in the lower two (IPv4 TOS, IPv6 traffic class).
    pub traffic_class: u8,
    /// IPv6 flow label, 0 to 2^20 − 1; not 0 chooses the UDP source port.
    pub flow_label: u32,
    /// Service level, 0 to 15.
    pub sl: u8,
    /// Our port, from 1.
    pub port_num: u8,
}

impl Default for AhAttr {
    fn default() -> Self {
        Self {
            dst: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            sgid_index: 0,
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
            sl: 0,
            port_num: 1,
        }
    }
}

/// Sizes of a QP's queues (`struct ibv_qp_cap`), set at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct QpCaps {
    /// Outstanding sends.
    pub max_send_wr: u32,
    /// Outstanding receives.
    pub max_recv_wr: u32,
    /// Scatter/gather elements of a send.
    pub max_send_sge: u32,
    /// Scatter/gather elements of a receive.
    pub max_recv_sge: u32,
    /// Bytes of an inline send.
    pub max_inline_data: u32,
}

/// What a QP is set to (`struct ibv_qp_attr`). Codes that cannot be out of range are types; the
/// plain numbers are checked by [`QpAttr::modify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpAttr {
    /// Modify: the state to go to. Query: the state it is in.
    pub qp_state: QpState,
    /// Modify: the state the caller takes it to be in. Query: as `qp_state`.
    pub cur_qp_state: QpState,
    /// Payload of a full packet to or from the peer.
    pub path_mtu: Mtu,
    /// Always [`MigState::Migrated`].
    pub path_mig_state: MigState,
    /// The key that datagrams must carry.
    pub qkey: QKey,
    /// First PSN expected of the peer.
    pub rq_psn: Psn,
    /// First PSN sent.
    pub sq_psn: Psn,
    /// The peer's QPN.
    pub dest_qp: Qpn,
    /// Which remote operations the QP takes.
    pub access: Access,
    /// Query only.
    pub caps: QpCaps,
    /// The way to the peer.
    pub ah: AhAttr,
    /// Which of the port's P_Keys the QP sends and accepts.
    pub pkey_index: u16,
    /// Whether an event tells that the send queue has drained.
    pub en_sqd_async_notify: bool,
    /// Query only: in SQD, and sends are still in flight.
    pub sq_draining: bool,
    /// READs and atomics that may be outstanding to the peer.
    pub max_rd_atomic: u8,
    /// READs and atomics that the peer may have outstanding to us.
    pub max_dest_rd_atomic: u8,
    /// How long an RNR NAK asks the peer to wait.
    pub min_rnr_timer: RnrTimer,
    /// Our port, from 1.
    pub port_num: u8,
    /// How long to wait for a response before a retry.
    pub timeout: AckTimeout,
    /// Retries after a timeout or a sequence error, 0 to 7.
    pub retry_cnt: u8,
    /// Retries after an RNR NAK, 0 to 6; 7 for ever.
    pub rnr_retry: u8,
    /// Greatest rate, kbit/s; 0 for no limit.
    pub rate_limit: u32,
}

impl Default for QpAttr {
    /// A QP as created: in RESET, its attributes at their least.
    fn default() -> Self {
        Self {
            qp_state: QpState::Reset,
            cur_qp_state: QpState::Reset,
            path_mtu: Mtu::B256,
            path_mig_state: MigState::Migrated,
            qkey: QKey(0),
            rq_psn: Psn::ZERO,
            sq_psn: Psn::ZERO,
            dest_qp: Qpn::new(0),
            access: Access::empty(),
            caps: QpCaps::default(),
            ah: AhAttr::default(),
            pkey_index: 0,
            en_sqd_async_notify: false,
            sq_draining: false,
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
            min_rnr_timer: RnrTimer::default(),
            port_num: 1,
            timeout: AckTimeout::default(),
            retry_cnt: 0,
            rnr_retry: 0,
            rate_limit: 0,
        }
    }
}

/// What device and port allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Ports of the device; they are numbered from 1.
    pub ports: u8,
    /// Length of a port's P_Key table.
    pub pkeys: u16,
    /// Length of a port's GID table, at most 256.
    pub gids: u16,
    /// The port's active MTU.
    pub active_mtu: Mtu,
    /// Greatest `max_rd_atomic` (device attribute `max_qp_init_rd_atom`).
    pub max_rd_atomic: u8,
    /// Greatest `max_dest_rd_atomic` (device attribute `max_qp_rd_atom`).
    pub max_dest_rd_atomic: u8,
}

fn range(field: &'static str, got: u32, least: u32, most: u32) -> Result<(), AttrError> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    Err(AttrError::Range { field, got, least, most })
}

/// An index below `len`; the error of an empty table names 0 as its greatest.
fn index(field: &'static str, got: u16, len: u16) -> Result<(), AttrError> {
    if got < len {
        return Ok(());
    }
    let most = u32::from(len).saturating_sub(1);
    Err(AttrError::Range { field, got: got.into(), least: 0, most })
}

impl AhAttr {
    /// Checks the way to a peer of a `kind` QP: an address handle's for [`QpKind::Ud`].
    ///
    /// # Errors
    /// [`AttrError::Range`] of a field, or [`AttrError::Destination`]: the unspecified address,
    /// or a multicast group for a connected QP.
    pub fn check(&self, kind: QpKind, limits: &Limits) -> Result<(), AttrError> {
        range("ah_attr.port_num", self.port_num.into(), 1, limits.ports.into())?;
        index("ah_attr.grh.sgid_index", self.sgid_index.into(), limits.gids)?;
        range("ah_attr.grh.flow_label", self.flow_label, 0, 0x000f_ffff)?;
        range("ah_attr.sl", self.sl.into(), 0, 15)?;
        let multicast_to_one = self.dst.is_multicast() && kind.is_connected();
        if self.dst.is_unspecified() || multicast_to_one {
            return Err(AttrError::Destination { kind, got: self.dst });
        }
        Ok(())
    }
}

impl QpAttr {
    /// Modifies the attributes `self` of a `kind` QP to those of `new` that `mask` names, and
    /// gives the states it left and came to; they are equal if the mask has no
    /// [`AttrMask::STATE`]. A QP that comes to RESET has the attributes it was created with.
    ///
    /// # Errors
    /// Any [`AttrError`]; then nothing has changed.
    pub fn modify(
        &mut self,
        kind: QpKind,
        new: &Self,
        mask: AttrMask,
        limits: &Limits,
    ) -> Result<(QpState, QpState), AttrError> {
        let from = self.qp_state;
        let to = if mask.contains(AttrMask::STATE) { new.qp_state } else { from };
        check(kind, from, to, mask)?;
        if mask.contains(AttrMask::CUR_STATE) && new.cur_qp_state != from {
            return Err(AttrError::CurState { got: new.cur_qp_state, actual: from });
        }
        new.check_values(kind, mask, limits)?;
        self.apply(new, mask);
        Ok((from, to))
    }

    /// Checks that the attributes that `mask` names are in range.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check_values(
        &self,
        kind: QpKind,
        mask: AttrMask,
        limits: &Limits,
    ) -> Result<(), AttrError> {
        let has = |attr| mask.contains(attr);
        if has(AttrMask::ALT_PATH) {
            return Err(AttrError::PathMigration(AttrMask::ALT_PATH));
        }
        if has(AttrMask::PATH_MIG_STATE) && self.path_mig_state != MigState::Migrated {
            return Err(AttrError::PathMigration(AttrMask::PATH_MIG_STATE));
        }
        if has(AttrMask::PORT) {
            range("port_num", self.port_num.into(), 1, limits.ports.into())?;
        }
        if has(AttrMask::PKEY_INDEX) {
            index("pkey_index", self.pkey_index, limits.pkeys)?;
        }
        if has(AttrMask::AV) {
            self.ah.check(kind, limits)?;
        }
        if has(AttrMask::PATH_MTU) {
            let (got, most) = (self.path_mtu.bytes(), limits.active_mtu.bytes());
            range("path_mtu", got, Mtu::B256.bytes(), most)?;
        }
        if has(AttrMask::DEST_QPN) && self.dest_qp == Qpn::MULTICAST {
            return Err(AttrError::MulticastPeer { kind });
        }
        if has(AttrMask::RETRY_CNT) {
            range("retry_cnt", self.retry_cnt.into(), 0, 7)?;
        }
        if has(AttrMask::RNR_RETRY) {
            range("rnr_retry", self.rnr_retry.into(), 0, 7)?;
        }
        if has(AttrMask::MAX_QP_RD_ATOMIC) {
            let (got, most) = (self.max_rd_atomic, limits.max_rd_atomic);
            range("max_rd_atomic", got.into(), 0, most.into())?;
        }
        if has(AttrMask::MAX_DEST_RD_ATOMIC) {
            let (got, most) = (self.max_dest_rd_atomic, limits.max_dest_rd_atomic);
            range("max_dest_rd_atomic", got.into(), 0, most.into())?;
        }
        Ok(())
    }

    /// Takes over from `new` what `mask` names, unchecked; see [`QpAttr::modify`].
    pub fn apply(&mut self, new: &Self, mask: AttrMask) {
        if mask.contains(AttrMask::STATE) {
            if new.qp_state == QpState::Reset {
                *self = Self { caps: self.caps, ..Self::default() };
            }
            self.qp_state = new.qp_state;
            self.cur_qp_state = new.qp_state;
        }
        macro_rules! take {
            ($($attr:ident => $field:ident,)*) => {$(
                if mask.contains(AttrMask::$attr) {
                    self.$field = new.$field;
                }
            )*};
        }
        take! {
            EN_SQD_ASYNC_NOTIFY => en_sqd_async_notify,
            ACCESS_FLAGS => access,
            PKEY_INDEX => pkey_index,
            PORT => port_num,
            QKEY => qkey,
            AV => ah,
            PATH_MTU => path_mtu,
            TIMEOUT => timeout,
            RETRY_CNT => retry_cnt,
            RNR_RETRY => rnr_retry,
            RQ_PSN => rq_psn,
            MAX_QP_RD_ATOMIC => max_rd_atomic,
            MIN_RNR_TIMER => min_rnr_timer,
            SQ_PSN => sq_psn,
            MAX_DEST_RD_ATOMIC => max_dest_rd_atomic,
            DEST_QPN => dest_qp,
            RATE_LIMIT => rate_limit,
        }
    }
}
