use super::*;

const HEAD: &str = "---\nsource: a/src/tests.rs\n---\n";

fn lines(files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files)).iter().map(ToString::to_string).collect()
}

#[test]
fn a_snapshot_with_its_test_is_fine() {
    let test = ("a/src/tests.rs", "#[test] fn all_codes() {}");
    for name in ["all_codes", "all_codes-2", "all_codes@udp"] {
        let path = format!("a/src/snapshots/a__tests__{name}.snap");
        assert_eq!(lines(&[test, (&path, HEAD)]), Vec::<String>::new());
    }
}

#[test]
fn a_snapshot_whose_test_file_is_gone_is_found() {
    let what = "its test file a/src/tests.rs is gone; delete the snapshot";
    assert_eq!(lines(&[("s/a__b.snap", HEAD)]), [format!("s/a__b.snap:2: {what}")]);
}

#[test]
fn a_snapshot_whose_test_is_gone_is_found() {
    let found = lines(&[("a/src/tests.rs", "fn other() {}"), ("s/a__b.snap", HEAD)]);
    let what = "a/src/tests.rs has no `b`; delete the snapshot, or name it literally";
    assert_eq!(found, [format!("s/a__b.snap:2: {what}")]);
}

#[test]
fn a_snapshot_that_waits_or_has_no_source_is_found() {
    assert_eq!(lines(&[("s/a.snap.new", HEAD), ("s/b.snap", "---\n---\n")]).len(), 2);
}
