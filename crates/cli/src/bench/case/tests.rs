use std::collections::BTreeSet;

use super::{Op, Stream, Work, all, chosen};

#[test]
fn names_are_unique() {
    let cases = all();
    let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len());
}

#[test]
fn a_part_of_a_name_chooses_and_an_unknown_one_is_refused() {
    let names = |parts: &[&str], quick| -> Vec<String> {
        let parts: Vec<_> = parts.iter().map(|p| (*p).to_owned()).collect();
        chosen(&parts, quick).unwrap().into_iter().map(|case| case.name).collect()
    };
    assert_eq!(names(&["read.64K"], false), ["read.64K.mtu4096", "read.64K.mtu1024"]);
    let all_of_both = ["rate.write.64", "rate.write.64.list", "idle.cpu", "idle.memory"];
    assert_eq!(names(&["idle", "rate"], false), all_of_both);
    assert_eq!(names(&[], false).len(), all().len());
    assert!(names(&[], true).len() < all().len());
    assert_eq!(names(&["write.8M"], true).len(), 2, "what is named runs, quick or not");
    let unknown = chosen(&["idle".into(), "wirte".into()], false).unwrap_err();
    assert_eq!(unknown, "no case has `wirte` in its name; --list names them");
}

/// The baseline moves datagrams of the very lengths that the packets have.
#[test]
fn datagrams_are_as_long_as_the_packets() {
    let bytes = |op, size, mtu| Stream::of(op, size, mtu).datagrams(true).bytes;
    // BTH, payload, ICRC; the few first packets with a RETH are no longer than that.
    assert_eq!(bytes(Op::Write, 65536, 4096), 12 + 4096 + 4);
    assert_eq!(bytes(Op::Write, 65536, 1024), 12 + 1024 + 4);
    assert_eq!(bytes(Op::Write, 64, 4096), 12 + 16 + 64 + 4);
    assert_eq!(bytes(Op::Send, 64, 4096), 12 + 64 + 4);
    let payload = Stream::of(Op::Send, 64, 1024).datagrams(false).payload;
    assert_eq!(payload, 64);
}

#[test]
fn each_case_has_something_to_compare_with() {
    for case in all() {
        assert!(!case.rivals.is_empty(), "{}", case.name);
        if let Work::Stream(stream) = case.work {
            assert_eq!(stream.depth % stream.signaled(), 0, "{}", case.name);
        }
    }
}
