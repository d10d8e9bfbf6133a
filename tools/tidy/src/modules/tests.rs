use super::*;

fn lost(files: &[(&str, &str)]) -> Vec<String> {
    let mut all = vec![("a/Cargo.toml", "[package]\nname = \"a\"")];
    all.extend(files);
    check(&Tree::of(&all)).iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_that_no_mod_names_is_found() {
    let found = lost(&[("a/src/lib.rs", "mod b;"), ("a/src/b.rs", ""), ("a/src/c.rs", "")]);
    let what = "no `mod` reaches this file; name it in its parent or delete it";
    assert_eq!(found, [format!("a/src/c.rs:1: {what}")]);
}

#[test]
fn a_mod_in_a_comment_or_a_string_names_nothing() {
    let root = "// mod b;\nconst C: &str = \"mod b;\";";
    assert_eq!(lost(&[("a/src/lib.rs", root), ("a/src/b.rs", "")]).len(), 1);
}

#[test]
fn a_file_reached_only_from_a_lost_file_is_lost() {
    let files = [("a/src/lib.rs", ""), ("a/src/b.rs", "mod c;"), ("a/src/b/c.rs", "")];
    assert_eq!(lost(&files).len(), 2);
}

#[test]
fn nested_inline_and_renamed_modules_are_reached() {
    let files = [
        ("a/src/lib.rs", "mod b; mod c { mod d; } #[path = \"e/other.rs\"] mod f;"),
        ("a/src/b.rs", "#[cfg(test)]\nmod tests;"),
        ("a/src/b/tests.rs", ""),
        ("a/src/c/d/mod.rs", "mod g;"),
        ("a/src/c/d/g.rs", ""),
        ("a/src/e/other.rs", "include!(\"part.rs\");"),
        ("a/src/e/part.rs", ""),
    ];
    assert_eq!(lost(&files), Vec::<String>::new());
}

#[test]
fn the_places_where_cargo_starts_are_roots() {
    let files = [
        ("a/src/main.rs", ""),
        ("a/src/bin/b.rs", ""),
        ("a/tests/c.rs", "mod common;"),
        ("a/tests/common/mod.rs", ""),
        ("a/benches/d/main.rs", ""),
        ("a/build.rs", ""),
        ("b/Cargo.toml", "[package]\nname = \"b\"\n[[bin]]\nname = \"x\"\npath = \"odd/x.rs\""),
        ("b/odd/x.rs", ""),
    ];
    assert_eq!(lost(&files), Vec::<String>::new());
}

#[test]
fn modules_that_name_each_other_do_not_hang() {
    let loop_back = "#[path = \"lib.rs\"] mod root;";
    assert_eq!(lost(&[("a/src/lib.rs", loop_back)]), Vec::<String>::new());
}
