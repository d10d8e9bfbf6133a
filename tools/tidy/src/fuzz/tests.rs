use super::*;

const ONE: &str = "[[bin]]\nname = \"parse\"\npath = \"fuzz_targets/parse.rs\"\n";

fn lines(files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files)).iter().map(ToString::to_string).collect()
}

#[test]
fn a_whole_target_is_fine() {
    let files = [(MANIFEST, ONE), ("fuzz/fuzz_targets/parse.rs", ""), ("fuzz/corpus/parse/1", "a")];
    assert_eq!(lines(&files), Vec::<String>::new());
    assert_eq!(lines(&[]), Vec::<String>::new());
}

#[test]
fn a_target_without_file_or_corpus_is_found() {
    let found = lines(&[(MANIFEST, ONE)]);
    assert_eq!(
        found,
        [
            "fuzz/Cargo.toml:1: target `parse` has no file fuzz/fuzz_targets/parse.rs; write it \
             or drop the target",
            "fuzz/Cargo.toml:1: target `parse` has no fuzz/corpus/parse/; add a first input",
        ]
    );
}

#[test]
fn a_file_or_corpus_without_target_is_found() {
    let found = lines(&[("fuzz/fuzz_targets/old.rs", ""), ("fuzz/corpus/old/1", "")]);
    assert_eq!(
        found,
        [
            "fuzz/fuzz_targets/old.rs:1: no target in fuzz/Cargo.toml names this file; add one or \
             delete it",
            "fuzz/corpus/old:1: no target in fuzz/Cargo.toml is called `old`; add it or delete \
             these",
        ]
    );
}

#[test]
fn a_broken_manifest_is_found() {
    assert_eq!(lines(&[(MANIFEST, "[[bin")]).len(), 1);
}
