//! The matrix against what Linux accepts (drivers/infiniband/core/verbs.c, `qp_state_table`),
//! taken down kind by kind and not, as the rules are, by reason.

use super::*;

/// Kinds, from, to: what must be there; what may. Of RESET and ERR as goals nothing is said: each
/// has no attributes.
const LINUX: &str = "
UD                       RESET INIT: PKEY_INDEX PORT QKEY;
GSI                      RESET INIT: PKEY_INDEX QKEY;
RC UC XRC_SEND XRC_RECV  RESET INIT: PKEY_INDEX PORT ACCESS_FLAGS;
UD                       INIT INIT:; PKEY_INDEX PORT QKEY
GSI                      INIT INIT:; PKEY_INDEX QKEY
RC UC XRC_SEND XRC_RECV  INIT INIT:; PKEY_INDEX PORT ACCESS_FLAGS
UD GSI                   INIT RTR:; PKEY_INDEX QKEY
UC XRC_SEND              INIT RTR: AV PATH_MTU DEST_QPN RQ_PSN; ALT_PATH ACCESS_FLAGS PKEY_INDEX
RC XRC_RECV              INIT RTR: AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER; \
                                   ALT_PATH ACCESS_FLAGS PKEY_INDEX
UD GSI                   RTR RTS: SQ_PSN; CUR_STATE QKEY
UC                       RTR RTS: SQ_PSN; CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE
RC                       RTR RTS: SQ_PSN TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC; \
                                   CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE
XRC_SEND                 RTR RTS: SQ_PSN TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC; \
                                   CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE
XRC_RECV                 RTR RTS: SQ_PSN TIMEOUT; \
                                   CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE
UD GSI                   RTS RTS:; CUR_STATE QKEY
UC XRC_SEND              RTS RTS:; CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE
RC XRC_RECV              RTS RTS:; CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE MIN_RNR_TIMER
RC UC UD GSI XRC_SEND XRC_RECV  RTS SQD:; EN_SQD_ASYNC_NOTIFY
UD GSI                   SQD RTS:; CUR_STATE QKEY
UC XRC_SEND              SQD RTS:; CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE
RC XRC_RECV              SQD RTS:; CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE
UD GSI                   SQD SQD:; PKEY_INDEX QKEY
UC                       SQD SQD:; AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE
RC                       SQD SQD:; PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC \
                                   MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX \
                                   MIN_RNR_TIMER PATH_MIG_STATE
XRC_SEND                 SQD SQD:; PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC \
                                   ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE
XRC_RECV                 SQD SQD:; PORT AV TIMEOUT MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS \
                                   PKEY_INDEX MIN_RNR_TIMER PATH_MIG_STATE
UD GSI                   SQE RTS:; CUR_STATE QKEY
UC                       SQE RTS:; CUR_STATE ACCESS_FLAGS
RC XRC_SEND XRC_RECV     SQE RTS:;
";

fn mask(names: &str) -> AttrMask {
    let of_name = |name| AttrMask::from_name(name).unwrap_or_else(|| panic!("no {name}"));
    names.split_whitespace().map(of_name).collect()
}

/// What Linux has for a way. RESET and ERR have no attributes; from RESET it knows no way to ERR.
fn of_linux(kind: QpKind, from: QpState, to: QpState) -> Option<Needs> {
    if to == QpState::Reset || to == QpState::Err && from != QpState::Reset {
        return Some(Needs::default());
    }
    LINUX.lines().filter(|line| !line.is_empty()).find_map(|line| {
        let (way, attributes) = line.split_once(':').unwrap();
        let (required, optional) = attributes.split_once(';').unwrap();
        let mut words: Vec<_> = way.split_whitespace().map(str::to_owned).collect();
        let its = words.pop() == Some(to.to_string()) && words.pop() == Some(from.to_string());
        let found = its && words.contains(&kind.to_string());
        found.then(|| Needs { required: mask(required), optional: mask(optional) })
    })
}

#[test]
fn each_way_takes_what_linux_takes() {
    for (kind, from, to, needs) in transitions() {
        let mut wanted = of_linux(kind, from, to);
        match (from, to) {
            // IBA 10.3.1: any state may go to error.
            (QpState::Reset, QpState::Err) => {
                assert_eq!(wanted, None);
                wanted = Some(Needs::default());
            }
            // Linux paces raw packet QPs only.
            (QpState::Rtr | QpState::Rts, QpState::Rts)
                if matches!(kind, QpKind::Rc | QpKind::Uc | QpKind::XrcInit) =>
            {
                wanted.as_mut().unwrap().optional |= AttrMask::RATE_LIMIT;
            }
            // Linux leaves SQE for RTS by any kind; a reliable one is never there.
            (QpState::Sqe, QpState::Rts) if kind.is_reliable() => {
                assert_eq!(wanted.take(), Some(Needs::default()));
            }
            _ => {}
        }
        assert_eq!(needs, wanted, "{kind} {from} → {to}");
    }
}
