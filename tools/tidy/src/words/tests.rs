use super::*;

fn lines(path: &str, text: &str) -> Vec<String> {
    check(&Tree::of(&[(path, text)])).iter().map(ToString::to_string).collect()
}

fn count(path: &str, text: &str) -> usize {
    lines(path, text).len()
}

#[test]
fn paths_of_one_machine_are_found_in_every_file() {
    for place in PLACES {
        let text = format!("a\nsee {place}x");
        for path in ["a.rs", "b.md", "c.toml", "d", "e.snap"] {
            let found = lines(path, &text);
            assert_eq!(found.len(), 1, "{place} in {path}");
            assert!(found[0].starts_with(&format!("{path}:2: `{place}`")), "{}", found[0]);
        }
        assert_eq!(count("a.md", &format!("docs{place}x https://e.org{place}x")), 0);
    }
}

#[test]
fn notes_for_later_are_found_in_comments() {
    let what = "a.rs:2: `TODO` in a comment; do it now, or say in docs/ what is missing";
    assert_eq!(lines("a.rs", "fn a() {}\n// TODO: b"), [what]);
    assert_eq!(count("a.rs", "/// FIXME\nfn a() {}"), 1);
    assert_eq!(count("a.toml", "a = 1 # XXX"), 1);
    assert_eq!(count("run", "#!/bin/sh\n# TODO"), 1);
    assert_eq!(count("a.md", "TODO write"), 1);
}

#[test]
fn such_words_elsewhere_are_no_notes() {
    assert_eq!(count("a.rs", "const TODO: &str = \"TODO\"; // TODOS"), 0);
    assert_eq!(count("a.md", "no `TODO` comments\n```\nTODO\n```"), 0);
    assert_eq!(count("a.toml", "todo = \"TODO\""), 0);
}

#[test]
fn ignored_tests_are_found() {
    let what = "a.rs:2: an ignored test proves nothing; make it run everywhere or delete it";
    assert_eq!(lines("a.rs", "#[test]\n#[ignore]\nfn a() {}"), [what]);
    assert_eq!(count("a.rs", "#[ignore = \"slow\"]\nfn a() {}"), 1);
    assert_eq!(count("a.rs", "#[cfg_attr(miri, ignore)]\nfn a() {}"), 1);
    assert_eq!(count("a.rs", "/// ```ignore\nfn a() {}"), 1);
    assert_eq!(count("a.rs", "fn ignore() {} // #[ignore]"), 0);
}

#[test]
fn sleeping_tests_are_found() {
    let sleep = "std::thread::sleep(x);";
    let what = "a test that sleeps is slow or flaky; wait for the event, or pass time in";
    let file = format!("fn a() {{\n{sleep}\n}}");
    assert_eq!(lines("src/tests.rs", &file), [format!("src/tests.rs:2: {what}")]);
    assert_eq!(count("tests/tests/a.rs", "use std::thread::sleep;"), 1);
    assert_eq!(count("src/a.rs", &format!("#[test] fn a() {{ {sleep} }}")), 1);
    assert_eq!(count("src/a.rs", &format!("#[cfg(test)] mod a {{ fn b() {{ {sleep} }} }}")), 1);
    assert_eq!(count("src/a.rs", &file), 0);
}
