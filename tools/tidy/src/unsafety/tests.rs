use super::*;

fn lines(name: &str, root: &str, text: &str) -> Vec<String> {
    let manifest = format!("[package]\nname = \"{name}\"");
    let tree = Tree::of(&[("c/Cargo.toml", manifest.as_str()), (root, text)]);
    check(&tree).iter().map(ToString::to_string).collect()
}

#[test]
fn a_root_that_does_not_forbid_unsafe_code_is_found() {
    for root in ["c/src/lib.rs", "c/src/main.rs", "c/src/bin/x.rs"] {
        let found = lines("urxe-wire", root, "// #![forbid(unsafe_code)]");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with(&format!("{root}:1: no `#![forbid(unsafe_code)]`; add it")));
    }
    assert!(lines("urxe-wire", "c/src/lib.rs", "#![forbid(unsafe_code)]").is_empty());
}

#[test]
fn crates_of_raw_memory_are_exempt() {
    for name in MAY_BE_UNSAFE {
        assert!(lines(name, "c/src/lib.rs", "").is_empty(), "{name}");
    }
}

#[test]
fn only_the_tests_may_declare_a_reason() {
    let text = "#![expect(unsafe_code, reason = \"an allocator that counts\")]";
    assert!(lines(MAY_DECLARE, "c/src/lib.rs", text).is_empty());
    assert_eq!(lines(MAY_DECLARE, "c/src/lib.rs", "#![allow(unsafe_code)]").len(), 1);
    assert_eq!(lines("urxe-wire", "c/src/lib.rs", text).len(), 1);
}
