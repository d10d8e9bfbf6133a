use std::fmt::Write;

use urxe_memory::Access;
use urxe_wire::{AckTimeout, Mtu, Psn, QKey, Qpn, RnrTimer};

use super::*;

mod linux;

const LIMITS: Limits = Limits {
    ports: 2,
    pkeys: 4,
    gids: 16,
    active_mtu: Mtu::B1024,
    max_rd_atomic: 16,
    max_dest_rd_atomic: 32,
};

/// Good values for all attributes, none of them a default.
fn full() -> QpAttr {
    QpAttr {
        qp_state: QpState::Init,
        cur_qp_state: QpState::Rts,
        path_mtu: Mtu::B1024,
        path_mig_state: MigState::Migrated,
        qkey: QKey(0x1111_1111),
        rq_psn: Psn::new(0xabc),
        sq_psn: Psn::new(0xdef),
        dest_qp: Qpn::new(0x11),
        access: Access::REMOTE_WRITE,
        caps: QpCaps { max_send_wr: 99, ..QpCaps::default() },
        ah: AhAttr {
            dst: "fd00::2".parse().unwrap(),
            sgid_index: 15,
            hop_limit: 3,
            traffic_class: 0x62,
            flow_label: 0xf_ffff,
            sl: 15,
            port_num: 2,
        },
        pkey_index: 3,
        en_sqd_async_notify: true,
        sq_draining: true,
        max_rd_atomic: 16,
        max_dest_rd_atomic: 32,
        min_rnr_timer: RnrTimer::new(12).unwrap(),
        port_num: 2,
        timeout: AckTimeout::new(14).unwrap(),
        retry_cnt: 7,
        rnr_retry: 7,
        rate_limit: 1_000_000,
    }
}

fn transitions() -> impl Iterator<Item = (QpKind, QpState, QpState, Option<Needs>)> {
    QpKind::ALL.into_iter().flat_map(|kind| {
        QpState::ALL.into_iter().flat_map(move |from| {
            QpState::ALL.into_iter().map(move |to| (kind, from, to, Needs::of(kind, from, to)))
        })
    })
}

fn bits() -> impl Iterator<Item = AttrMask> {
    (0..32).map(|bit| AttrMask::from_bits_retain(1 << bit))
}

#[test]
fn the_whole_matrix() {
    let mut table = String::new();
    for (kind, from, to, needs) in transitions() {
        let Some(Needs { required, optional }) = needs else { continue };
        let mut line = format!("{kind:<8} {from:<5} → {to:<5}");
        if !required.is_empty() {
            write!(line, "  needs {required}").unwrap();
        }
        if !optional.is_empty() {
            write!(line, "  takes {optional}").unwrap();
        }
        table.push_str(line.trim_end());
        table.push('\n');
    }
    insta::assert_snapshot!(table);
}

// IBA 10.3.1: any state may go to RESET and to error.
#[test]
fn reset_and_err_are_reached_from_anywhere_with_nothing_else() {
    for (kind, from, to, needs) in transitions() {
        if matches!(to, QpState::Reset | QpState::Err) {
            assert_eq!(needs, Some(Needs::default()), "{kind} {from} {to}");
        }
    }
}

#[test]
fn sqe_is_left_for_rts_by_unreliable_kinds_only() {
    for kind in QpKind::ALL {
        let way = Needs::of(kind, QpState::Sqe, QpState::Rts);
        assert_eq!(way.is_some(), !kind.is_reliable(), "{kind}");
    }
}

#[test]
fn each_missing_required_attribute_is_named() {
    for (kind, from, to, needs) in transitions() {
        let Some(needs) = needs else { continue };
        assert!(needs.required.intersection(needs.optional).is_empty(), "{kind} {from} {to}");
        for (_, missing) in needs.required.iter_names() {
            let mask = AttrMask::STATE | needs.required.difference(missing) | needs.optional;
            let forbidden = AttrMask::empty();
            assert_eq!(
                check(kind, from, to, mask),
                Err(AttrError::Mask { kind, from, to, needs, missing, forbidden })
            );
        }
    }
}

#[test]
fn each_attribute_that_has_no_place_is_named() {
    for (kind, from, to, needs) in transitions() {
        let Some(needs) = needs else {
            let error = AttrError::Transition { kind, from, to };
            assert_eq!(check(kind, from, to, AttrMask::all()), Err(error));
            continue;
        };
        let required = needs.required | AttrMask::STATE;
        assert_eq!(check(kind, from, to, needs.required), Ok(()));
        for bit in bits() {
            let got = check(kind, from, to, required | bit);
            if (required | needs.optional).contains(bit) {
                assert_eq!(got, Ok(()), "{kind} {from} {to} {bit}");
            } else {
                let missing = AttrMask::empty();
                let error = AttrError::Mask { kind, from, to, needs, missing, forbidden: bit };
                assert_eq!(got, Err(error));
            }
        }
    }
}

#[test]
fn textbook_chains() {
    use QpState::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
    let chain = [Init, Init, Rtr, Rts, Rts, Sqd, Sqd, Rts, Err, Reset];
    for kind in QpKind::ALL {
        let mut qp = QpAttr::default();
        let mut log = vec![Reset];
        for to in chain {
            let required = Needs::of(kind, qp.qp_state, to).unwrap().required;
            let new = QpAttr { qp_state: to, ..full() };
            let mask = AttrMask::STATE | required;
            let from = qp.qp_state;
            assert_eq!(qp.modify(kind, &new, mask, &LIMITS), Ok((from, to)));
            assert_eq!((qp.qp_state, qp.cur_qp_state), (to, to));
            log.push(to);
        }
        assert_eq!(log[1..], chain);
        assert_eq!(qp, QpAttr::default());
        qp.qp_state = Sqe;
        let new = QpAttr { qp_state: Rts, ..full() };
        assert_eq!(qp.modify(kind, &new, AttrMask::STATE, &LIMITS).is_ok(), !kind.is_reliable());
    }
}

#[test]
fn a_change_without_state_stays_where_it_is() {
    let mut qp = QpAttr { qp_state: QpState::Rts, ..QpAttr::default() };
    let new = QpAttr { qp_state: QpState::Err, qkey: QKey(7), ..QpAttr::default() };
    let done = qp.modify(QpKind::Ud, &new, AttrMask::QKEY, &LIMITS);
    assert_eq!(done, Ok((QpState::Rts, QpState::Rts)));
    assert_eq!((qp.qp_state, qp.qkey), (QpState::Rts, QKey(7)));
}

#[test]
fn cur_state_must_be_the_state_it_is_in() {
    let mut qp = QpAttr { qp_state: QpState::Rtr, ..QpAttr::default() };
    let mask = AttrMask::STATE | AttrMask::CUR_STATE | AttrMask::SQ_PSN;
    let new = QpAttr { qp_state: QpState::Rts, cur_qp_state: QpState::Sqd, ..full() };
    let error = AttrError::CurState { got: QpState::Sqd, actual: QpState::Rtr };
    let before = qp;
    assert_eq!(qp.modify(QpKind::Ud, &new, mask, &LIMITS), Err(error));
    assert_eq!(qp, before);
    let new = QpAttr { cur_qp_state: QpState::Rtr, ..new };
    assert!(qp.modify(QpKind::Ud, &new, mask, &LIMITS).is_ok());
}

/// Applies `edit` to good values; gives what is said of them.
fn said(kind: QpKind, mask: AttrMask, edit: impl FnOnce(&mut QpAttr)) -> String {
    let mut attr = full();
    edit(&mut attr);
    let of_all = attr.check_values(kind, AttrMask::all() - AttrMask::ALT_PATH, &LIMITS);
    let others = AttrMask::all() - AttrMask::ALT_PATH - mask;
    assert_eq!(attr.check_values(kind, others, &LIMITS), Ok(()), "only {mask} is looked at");
    of_all.unwrap_err().to_string()
}

#[test]
fn values_at_their_bounds_are_taken() {
    let mask = AttrMask::all() - AttrMask::ALT_PATH;
    assert_eq!(full().check_values(QpKind::Rc, mask, &LIMITS), Ok(()));
    let mut least = QpAttr { qp_state: QpState::Init, ..QpAttr::default() };
    least.ah.dst = "10.0.0.1".parse().unwrap();
    assert_eq!(least.check_values(QpKind::Rc, mask, &LIMITS), Ok(()));
    let mut group = full();
    group.ah.dst = "239.1.2.3".parse().unwrap();
    assert_eq!(group.check_values(QpKind::Ud, mask, &LIMITS), Ok(()));
}

#[test]
fn values_out_of_range_are_named_with_what_is_wanted() {
    use AttrMask as A;
    let rc = |mask, edit: fn(&mut QpAttr)| said(QpKind::Rc, mask, edit);
    let mut all = vec![
        rc(A::PORT, |a| a.port_num = 0),
        rc(A::PORT, |a| a.port_num = 3),
        rc(A::PKEY_INDEX, |a| a.pkey_index = 4),
        rc(A::AV, |a| a.ah.port_num = 0),
        rc(A::AV, |a| a.ah.port_num = 3),
        rc(A::AV, |a| a.ah.sgid_index = 16),
        rc(A::AV, |a| a.ah.flow_label = 0x10_0000),
        rc(A::AV, |a| a.ah.sl = 16),
        rc(A::AV, |a| a.ah.dst = "0.0.0.0".parse().unwrap()),
        rc(A::AV, |a| a.ah.dst = "ff02::1".parse().unwrap()),
        said(QpKind::Ud, A::AV, |a| a.ah.dst = "::".parse().unwrap()),
        rc(A::PATH_MTU, |a| a.path_mtu = Mtu::B2048),
        rc(A::DEST_QPN, |a| a.dest_qp = Qpn::MULTICAST),
        rc(A::RETRY_CNT, |a| a.retry_cnt = 8),
        rc(A::RNR_RETRY, |a| a.rnr_retry = 8),
        rc(A::MAX_QP_RD_ATOMIC, |a| a.max_rd_atomic = 17),
        rc(A::MAX_DEST_RD_ATOMIC, |a| a.max_dest_rd_atomic = 33),
        rc(A::PATH_MIG_STATE, |a| a.path_mig_state = MigState::Armed),
    ];
    all.push(full().check_values(QpKind::Rc, A::ALT_PATH, &LIMITS).unwrap_err().to_string());
    let none = Limits { pkeys: 0, ..LIMITS };
    all.push(full().check_values(QpKind::Rc, A::PKEY_INDEX, &none).unwrap_err().to_string());
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn errors_say_the_transition_and_what_to_do() {
    let say = |kind, from, to, mask| check(kind, from, to, mask).unwrap_err().to_string();
    let peer = AttrMask::AV | AttrMask::PATH_MTU | AttrMask::DEST_QPN;
    let lines = [
        say(QpKind::Uc, QpState::Init, QpState::Rtr, AttrMask::STATE | peer),
        say(QpKind::Uc, QpState::Init, QpState::Rtr, peer | AttrMask::RQ_PSN | AttrMask::SQ_PSN),
        say(QpKind::Rc, QpState::Init, QpState::Rtr, AttrMask::QKEY),
        say(QpKind::Rc, QpState::Reset, QpState::Rts, AttrMask::STATE),
        say(QpKind::Ud, QpState::Rts, QpState::Err, AttrMask::from_bits_retain(1 << 30)),
        AttrError::CurState { got: QpState::Rtr, actual: QpState::Rts }.to_string(),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn each_bit_takes_over_its_field_alone() {
    type Take = fn(&mut QpAttr, &QpAttr);
    use AttrMask as A;
    let takes: &[(AttrMask, Take)] = &[
        (A::STATE, |q, n| (q.qp_state, q.cur_qp_state) = (n.qp_state, n.qp_state)),
        (A::CUR_STATE, |_, _| {}),
        (A::EN_SQD_ASYNC_NOTIFY, |q, n| q.en_sqd_async_notify = n.en_sqd_async_notify),
        (A::ACCESS_FLAGS, |q, n| q.access = n.access),
        (A::PKEY_INDEX, |q, n| q.pkey_index = n.pkey_index),
        (A::PORT, |q, n| q.port_num = n.port_num),
        (A::QKEY, |q, n| q.qkey = n.qkey),
        (A::AV, |q, n| q.ah = n.ah),
        (A::PATH_MTU, |q, n| q.path_mtu = n.path_mtu),
        (A::TIMEOUT, |q, n| q.timeout = n.timeout),
        (A::RETRY_CNT, |q, n| q.retry_cnt = n.retry_cnt),
        (A::RNR_RETRY, |q, n| q.rnr_retry = n.rnr_retry),
        (A::RQ_PSN, |q, n| q.rq_psn = n.rq_psn),
        (A::MAX_QP_RD_ATOMIC, |q, n| q.max_rd_atomic = n.max_rd_atomic),
        (A::ALT_PATH, |_, _| {}),
        (A::MIN_RNR_TIMER, |q, n| q.min_rnr_timer = n.min_rnr_timer),
        (A::SQ_PSN, |q, n| q.sq_psn = n.sq_psn),
        (A::MAX_DEST_RD_ATOMIC, |q, n| q.max_dest_rd_atomic = n.max_dest_rd_atomic),
        (A::PATH_MIG_STATE, |_, _| {}),
        (A::CAP, |_, _| {}),
        (A::DEST_QPN, |q, n| q.dest_qp = n.dest_qp),
        (A::RATE_LIMIT, |q, n| q.rate_limit = n.rate_limit),
    ];
    assert_eq!(takes.iter().fold(A::empty(), |all, (bit, _)| all | *bit), A::all());
    let new = full();
    for (bit, take) in takes {
        let mut wanted = QpAttr::default();
        take(&mut wanted, &new);
        let mut got = QpAttr::default();
        got.apply(&new, *bit);
        assert_eq!(got, wanted, "{bit}");
    }
}

#[test]
fn reset_forgets_all_but_the_sizes() {
    let mut qp = QpAttr { qp_state: QpState::Rts, ..full() };
    let new = QpAttr { qp_state: QpState::Reset, ..QpAttr::default() };
    assert!(qp.modify(QpKind::Rc, &new, AttrMask::STATE, &LIMITS).is_ok());
    assert_eq!(qp, QpAttr { caps: full().caps, ..QpAttr::default() });
}

#[test]
fn values_of_the_verbs_header() {
    let bits = [0, 1, 2, 3, 4, 5, 6].map(QpState::from_verbs);
    assert_eq!(bits, QpState::ALL.map(Some));
    assert_eq!(QpState::ALL.map(|s| s as u8), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(QpState::from_verbs(7), None);
    for kind in QpKind::ALL {
        let programs = (kind != QpKind::Gsi).then_some(kind);
        assert_eq!(QpKind::from_verbs(kind as u32), programs);
    }
    assert_eq!(QpKind::ALL.map(|k| k as u8), [1, 2, 3, 4, 9, 10]);
    assert_eq!(QpKind::from_verbs(8), None, "raw packet");
    assert_eq!(AttrMask::DEST_QPN.bits(), 0x10_0000);
    assert_eq!(AttrMask::all().bits(), 0x021f_ffff);
    assert_eq!(AttrMask::empty().to_string(), "nothing");
}

#[test]
fn what_each_state_allows() {
    let allows = [
        ("receives", QpState::takes_receives as fn(QpState) -> bool),
        ("sends", QpState::takes_sends),
        ("responds", QpState::responds),
        ("begins", QpState::begins_sends),
    ];
    let rows = QpState::ALL.map(|state| {
        let names = allows.iter().filter(|(_, allowed)| allowed(state)).map(|(name, _)| *name);
        format!("{state} {}", names.collect::<Vec<_>>().join(" "))
    });
    assert_eq!(
        rows,
        [
            "RESET ",
            "INIT receives",
            "RTR receives responds",
            "RTS receives sends responds begins",
            "SQD receives sends responds",
            "SQE receives sends responds",
            "ERR receives sends",
        ]
    );
}
