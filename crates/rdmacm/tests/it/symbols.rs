use std::process::Command;

use super::library::path;

/// The defined symbols, each with its type and version.
fn symbols() -> Vec<String> {
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--with-symbol-versions"]).arg(path("librdmacm.so"));
    let out = nm.output().expect("nm, of binutils, which the linker needs too");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let rows = text.lines().filter_map(|line| line.split_once(' ').map(|(_, row)| row.to_owned()));
    let mut rows: Vec<_> = rows.filter(|row| !row.starts_with("A ")).collect();
    rows.sort();
    rows
}

#[test]
fn the_symbols_are_those_of_debian_12() {
    let wanted: Vec<_> = include_str!("../symbols.txt").lines().map(str::to_owned).collect();
    assert_eq!(symbols(), wanted);
    assert_eq!(wanted.len(), 68);
}

#[test]
fn it_has_the_name_that_programs_ask_for_and_needs_libibverbs() {
    let out = Command::new("readelf").arg("-d").arg(path("librdmacm.so")).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    for wanted in ["soname: [librdmacm.so.1]", "library: [libibverbs.so.1]", "NODELETE"] {
        assert!(text.contains(wanted), "no {wanted} in {text}");
    }
}
