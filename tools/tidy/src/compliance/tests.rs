use super::*;

const CODE: (&str, &str) = ("crates/a/src/lib.rs", "// IBA C9-92\nfn a() {}");
const TEST: (&str, &str) = ("crates/a/src/tests.rs", "// IBA C9-92\n#[test]\nfn b() {}");
const NOTE: (&str, &str) = (NOTES, "# Notes\n\n- APM\n");

#[test]
fn the_page_names_files_tests_and_notes() {
    let page = render(&Tree::of(&[CODE, TEST, NOTE]));
    assert!(page.contains("Rules cited: 1, of these by a test: 1."), "{page}");
    let row = "| C9-92 | `crates/a/src/lib.rs` | `crates/a/src/tests.rs`: `b` |\n";
    assert!(page.contains(row), "{page}");
    assert!(page.ends_with("\n\n- APM\n"), "{page}");
}

#[test]
fn a_rule_without_a_test_shows() {
    let page = render(&Tree::of(&[CODE]));
    assert!(page.contains("| C9-92 | `crates/a/src/lib.rs` | none |\n"), "{page}");
}

#[test]
fn a_stale_page_is_found() {
    let fresh = render(&Tree::of(&[CODE, NOTE]));
    assert_eq!(check(&Tree::of(&[CODE, NOTE, (PAGE, &fresh)])), []);
    let found = check(&Tree::of(&[CODE, TEST, NOTE, (PAGE, &fresh)]));
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let what = "out of date with the citations; run `cargo run -p tidy -- compliance`";
    assert_eq!(found, [format!("docs/compliance.md:1: {what}")]);
    assert_eq!(check(&Tree::of(&[])).len(), 1);
}
