use super::*;

fn filter(text: &str) -> Filter {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

fn refused(text: &str) -> String {
    text.parse::<Filter>().unwrap_err().to_string()
}

fn packet(opcode: &str, qp: u32, psn: u32) -> Subject {
    let (opcode, dest_qp) = (Opcode::from_name(opcode).unwrap(), Qpn::new(qp));
    Subject { opcode, dest_qp, src_qp: None, psn: Psn::new(psn) }
}

#[test]
fn one_key_is_any_of_its_values_and_keys_must_all_match() {
    let f = filter("qp=0x11,qp=18, opcode=*SEND*");
    assert!(f.matches(&packet("RC_SEND_FIRST", 0x11, 0)));
    assert!(f.matches(&packet("UC_SEND_ONLY", 0x12, 0)));
    assert!(!f.matches(&packet("RC_SEND_FIRST", 0x13, 0)));
    assert!(!f.matches(&packet("RC_ACKNOWLEDGE", 0x11, 0)));
}

#[test]
fn a_datagrams_source_counts_as_its_qp() {
    let mut p = packet("UD_SEND_ONLY", 0xff_ffff, 0);
    assert!(!filter("qp=5").matches(&p));
    p.src_qp = Some(Qpn::new(5));
    assert!(filter("qp=5").matches(&p));
}

#[test]
fn both_ends_of_a_psn_range_count_and_it_may_wrap() {
    let f = filter("psn=100..200");
    let shown = |f: &Filter, psn| f.matches(&packet("RC_SEND_ONLY", 1, psn));
    assert_eq!([99, 100, 200, 201].map(|p| shown(&f, p)), [false, true, true, false]);
    let f = filter("psn=0xfffffe..=1");
    let around = [0xff_fffd, 0xff_fffe, 0, 1, 2].map(|p| shown(&f, p));
    assert_eq!(around, [false, true, true, true, false]);
    assert!(shown(&filter("psn=7"), 7) && !shown(&filter("psn=7"), 8));
}

#[test]
fn opcodes_by_name_pattern_and_code() {
    let shown = |text: &str, name| filter(text).matches(&packet(name, 1, 1));
    assert!(shown("opcode=rc_send_first", "RC_SEND_FIRST"));
    assert!(!shown("opcode=RC_SEND_FIRST", "RC_SEND_LAST"));
    assert!(shown("opcode=*READ*", "XRC_RDMA_READ_RESPONSE_MIDDLE"));
    assert!(shown("opcode=RC_*_ONLY", "RC_RDMA_WRITE_ONLY"));
    assert!(!shown("opcode=RC_*_ONLY", "RC_SEND_ONLY_WITH_IMMEDIATE"));
    assert!(shown("opcode=?C_SEND_ONLY", "UC_SEND_ONLY"));
    for code in ["0x81", "0X81", "129"] {
        assert!(shown(&format!("opcode={code}"), "CNP"));
    }
}

#[test]
fn filters_add_up() {
    let mut f = filter("qp=1");
    f.add(filter("qp=2,opcode=CNP"));
    assert!(f.matches(&packet("CNP", 1, 0)) && f.matches(&packet("CNP", 2, 0)));
    assert!(!f.matches(&packet("RC_SEND_ONLY", 1, 0)));
    assert!(Filter::default().is_empty() && !f.is_empty());
}

#[test]
fn what_is_wrong_is_said_with_the_right_forms() {
    assert!(refused("0x11").starts_with("`0x11` has no `=`"));
    assert!(refused("qpn=1").starts_with("`qpn` is no key, wanted qp, psn or opcode"));
    assert!(refused("qp=0x1000000").contains("wanted a number from 0 to 16777215"));
    assert!(refused("qp=+17").starts_with("qp is `+17`"));
    assert!(refused("psn=0x+1").starts_with("psn is `0x+1`"));
    assert!(refused("opcode=+129").starts_with("no opcode is called `+129`"));
    assert!(refused("psn=5..x").starts_with("psn is `x`"));
    assert!(refused("opcode=RC_SEND_FRIST").contains("the nearest is RC_SEND_FIRST"));
    assert!(refused("opcode=*WIRTE*").contains("no opcode is called `*WIRTE*`"));
    assert!(refused("").ends_with(&format!("forms: {FORMS}; join terms with `,`")));
}
