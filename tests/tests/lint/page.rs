//! The page lists the rules that there are.

use std::fs;
use std::path::Path;

#[test]
fn docs_lint_md_has_the_table_of_rules() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lint.md");
    let page = fs::read_to_string(page).unwrap();
    let table = urxe_lint::table();
    let got = page.split_once("| rule | at most |").map_or("", |(_, rest)| rest);
    let wanted = table.split_once("| rule | at most |").unwrap().1;
    assert_eq!(got, wanted, "docs/lint.md must end with:\n{table}");
}
