use super::*;

fn ids(comment: &str) -> Vec<String> {
    let at = comment.find(SPEC).unwrap() + SPEC.len();
    ids_after(comment, at).into_iter().map(|range| comment[range].to_owned()).collect()
}

#[test]
fn every_form_of_id_is_read() {
    for (comment, want) in [
        ("// IBA C9-92", &["C9-92"][..]),
        ("// IBA C9-92: a duplicate", &["C9-92"]),
        ("// IBA o9-5.2.1.", &["o9-5.2.1"]),
        ("/// (IBA 9.7.5.2.8).", &["9.7.5.2.8"]),
        ("/// see IBA annex A17).", &["A17"]),
        ("// IBA A17.9.3; more", &["A17.9.3"]),
        ("// IBA CA16-3, oA17-4", &["CA16-3", "oA17-4"]),
        ("// IBA C9-105, C9-148 and 9.7.2", &["C9-105", "C9-148", "9.7.2"]),
        ("/// the rule (IBA\n/// 9.4.1).", &["9.4.1"]),
        ("// IBA 9.2 64 bytes", &["9.2"]),
        ("// the IBA says so", &[]),
        ("// IBA 9", &[]),
        ("// IBA C9", &[]),
        ("// IBA C9-92x", &[]),
    ] {
        assert_eq!(ids(comment), want, "{comment}");
    }
}

#[test]
fn rules_sort_by_number() {
    let mut rules = ["C9-148", "C10-2", "9.10", "C9-92", "9.7.2", "o9-1"].map(Rule::new);
    rules.sort();
    let ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(ids, ["9.7.2", "9.10", "C9-92", "C9-148", "C10-2", "o9-1"]);
}

#[test]
fn code_and_tests_are_told_apart() {
    let tree = Tree::of(&[
        ("crates/a/src/lib.rs", "// IBA C9-92\nfn a() {}\n#[test]\n// IBA C9-92\nfn t() {}"),
        ("crates/a/src/b/tests.rs", "// IBA C9-92\n#[test]\nfn u() {}\nfn v() {/* IBA C9-92 */}"),
        ("tests/tests/c.rs", "//! IBA C9-92\nuse x;"),
        ("tools/d.rs", "// IBA C1-1"),
        ("crates/a/src/e.rs", "const F: &str = \"IBA C2-2\";"),
    ]);
    let rules = collect(&tree);
    assert_eq!(rules.len(), 1);
    let cited = &rules[&Rule::new("C9-92")];
    assert_eq!(cited.code, BTreeSet::from(["crates/a/src/lib.rs".to_owned()]));
    let tests: Vec<_> = cited
        .tests
        .iter()
        .map(|(file, names)| (file.as_str(), names.iter().map(String::as_str).collect::<Vec<_>>()))
        .collect();
    let want = [
        ("crates/a/src/b/tests.rs", vec!["u", "v"]),
        ("crates/a/src/lib.rs", vec!["t"]),
        ("tests/tests/c.rs", vec![]),
    ];
    assert_eq!(tests, want);
}

#[test]
fn a_citation_without_id_is_found() {
    let tree = Tree::of(&[("a.rs", "// the IBA spec\n\n// IBA nine\n// IBA C9-92")]);
    let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
    let what = "a citation with no rule id; write `// IBA C9-92` or `// IBA 9.7.2`";
    assert_eq!(found, [format!("a.rs:3: {what}")]);
}
