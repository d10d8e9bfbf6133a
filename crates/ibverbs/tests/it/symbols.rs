use std::process::Command;

use super::library;

/// The defined symbols, each with its type and version.
fn symbols(library: &std::path::Path) -> Vec<String> {
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--with-symbol-versions"]).arg(library);
    let out = nm.output().expect("nm, of binutils, which the linker needs too");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let rows = text.lines().filter_map(|line| line.split_once(' ').map(|(_, row)| row.to_owned()));
    let mut rows: Vec<_> = rows.filter(|row| !row.starts_with("A ")).collect();
    rows.sort();
    rows
}

#[test]
fn the_symbols_are_those_of_debian_12_and_private_ones_under_their_later_names() {
    let wanted: Vec<_> = include_str!("../symbols.txt").lines().map(str::to_owned).collect();
    assert_eq!(symbols(&library::path()), wanted);
}

#[test]
fn the_soname_is_what_programs_ask_for() {
    let out = Command::new("objdump").arg("-p").arg(library::path()).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let soname = text.lines().find(|line| line.contains("SONAME")).unwrap();
    assert!(soname.ends_with(" libibverbs.so.1"), "{soname}");
    assert!(text.contains("NODELETE") || flags_1(&library::path()), "{text}");
}

/// DF_1_NODELETE of FLAGS_1, which objdump shows as a number.
fn flags_1(library: &std::path::Path) -> bool {
    let out = Command::new("readelf").arg("-d").arg(library).output().unwrap();
    String::from_utf8(out.stdout).unwrap().contains("NODELETE")
}
