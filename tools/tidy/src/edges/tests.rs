use super::*;

/// A page that agrees with the table.
fn page() -> String {
    ROOMS.iter().map(|room| format!("| `{}` | x | {} |\n", room.name, room.cell())).collect()
}

fn lines(manifests: &[(&str, &str)]) -> Vec<String> {
    let page = page();
    let mut files = vec![(PAGE, page.as_str())];
    files.extend(manifests);
    check(&Tree::of(&files)).iter().map(ToString::to_string).collect()
}

const WIRE: (&str, &str) = ("crates/wire/Cargo.toml", "[package]\nname = \"urxe-wire\"\n");
const ENGINE: &str = "crates/engine/Cargo.toml";

#[test]
fn an_edge_in_the_table_is_fine() {
    let engine = "[package]\nname = \"urxe-engine\"\n[dependencies]\nurxe-wire.workspace = true\n";
    assert_eq!(lines(&[WIRE, (ENGINE, engine)]), Vec::<String>::new());
}

#[test]
fn an_edge_not_in_the_table_is_found() {
    for (kind, line) in [
        ("dependencies", "urxe-engine = { path = \"../engine\" }"),
        ("dev-dependencies", "urxe-engine.workspace = true"),
        ("build-dependencies", "urxe-engine = \"1\""),
        ("target.'cfg(unix)'.dependencies", "urxe-engine.workspace = true"),
        ("dependencies", "x = { package = \"urxe-engine\", path = \"../engine\" }"),
    ] {
        let wire = format!("[package]\nname = \"urxe-wire\"\n[{kind}]\n{line}\n");
        let engine = (ENGINE, "[package]\nname = \"urxe-engine\"\n");
        let found = lines(&[(WIRE.0, &wire), engine]);
        assert_eq!(found.len(), 1, "{kind} {line}");
        let kind = kind.rsplit('.').next().unwrap();
        let start = format!("{}:4: [{kind}] has `urxe-engine`, but urxe-wire may", WIRE.0);
        assert!(found[0].starts_with(&start), "{}", found[0]);
    }
}

#[test]
fn crates_from_elsewhere_are_not_edges() {
    let wire = "[package]\nname = \"urxe-wire\"\n[dependencies]\nzerocopy.workspace = true\n";
    assert_eq!(lines(&[(WIRE.0, wire)]), Vec::<String>::new());
}

#[test]
fn a_crate_that_the_table_does_not_know_is_found() {
    let found = lines(&[("crates/new/Cargo.toml", "[package]\nname = \"urxe-new\"\n")]);
    assert_eq!(found.len(), 1);
    let start = "crates/new/Cargo.toml:2: crate `urxe-new` has no row in the table of rooms; add";
    assert!(found[0].starts_with(start), "{}", found[0]);
}

#[test]
fn the_tests_may_use_any_crate() {
    let tests = "[package]\nname = \"urxe-tests\"\n[dependencies]\nurxe-wire.workspace = true\n";
    assert_eq!(lines(&[WIRE, ("tests/Cargo.toml", tests)]), Vec::<String>::new());
}

#[test]
fn a_page_that_draws_other_arrows_is_found() {
    let wrong = page().replace("| `urxe-wire` | x | nothing |", "| `urxe-wire` | x | `urxe` |");
    let found: Vec<String> =
        check(&Tree::of(&[(PAGE, &wrong)])).iter().map(ToString::to_string).collect();
    let what = "`urxe-wire` may depend on ``urxe``, the check says `nothing`; make them agree";
    assert_eq!(found, [format!("{PAGE}:1: {what}")]);
    assert_eq!(check(&Tree::of(&[])).len(), ROOMS.len());
}

#[test]
fn a_broken_manifest_is_found() {
    assert_eq!(lines(&[(WIRE.0, "[package")]).len(), 1);
}

#[test]
fn the_table_has_no_cycle() {
    // Each row may name only rows above it, so no order of crates can loop.
    for (at, room) in ROOMS.iter().enumerate() {
        for used in room.may_use.iter().filter(|used| **used != ANY) {
            let place = ROOMS.iter().position(|other| other.name == *used);
            assert!(place.is_some_and(|place| place < at), "{} uses {used}", room.name);
        }
    }
}
