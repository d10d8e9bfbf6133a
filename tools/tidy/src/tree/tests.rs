use super::*;

#[test]
fn paths_come_apart() {
    assert_eq!(extension("a/b.c/d.rs"), "rs");
    assert_eq!(extension("a.b/c"), "");
    assert_eq!(folder("a/b/c"), "a/b");
    assert_eq!(folder("c"), "");
}

#[test]
fn joining_takes_dots_out_and_stays_inside() {
    assert_eq!(join("a/b", "../c/./d").as_deref(), Some("a/c/d"));
    assert_eq!(join("", "x").as_deref(), Some("x"));
    assert_eq!(join("a", "../../x"), None);
}

#[test]
fn the_walk_sees_what_git_sees() {
    let root = find_root(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let walked = walk(&root).unwrap();
    assert!(walked.contains(&"tools/tidy/src/tree/tests.rs".to_owned()));
    assert!(!walked.iter().any(|path| path.starts_with(".git/") || path.starts_with("target/")));
    if let Some(listed) = list_with_git(&root) {
        assert!(listed.contains(&"tools/tidy/src/tree/tests.rs".to_owned()));
    }
}

#[test]
fn the_root_is_found_from_a_folder_below_and_missed_outside() {
    let below = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let root = find_root(&below).unwrap();
    assert!(root.join("tools/tidy/Cargo.toml").is_file());
    let error = find_root(Path::new("/")).unwrap_err();
    assert!(error.to_string().contains("run in it"), "{error}");
}

#[test]
fn bytes_that_are_not_text_have_a_name_only() {
    let tree = Tree::of(&[("a", "x\0y"), ("b/c", "z")]);
    assert!(tree.has("a") && tree.text("a").is_none());
    assert!(tree.has_folder("b") && !tree.has_folder("c"));
    assert_eq!(tree.under("b").collect::<Vec<_>>(), ["b/c"]);
}
