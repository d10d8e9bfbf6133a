use super::*;

fn lines(files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files)).iter().map(ToString::to_string).collect()
}

#[test]
fn a_page_without_a_link_to_it_is_found() {
    let found = lines(&[
        ("README.md", "[a](docs/a.md#part)"),
        ("docs/a.md", "[b](b.md) [web](https://example.org/x.md)"),
        ("docs/b.md", ""),
        ("docs/c.md", "[self](c.md)"),
    ]);
    let what = "nothing links here; link it from README.md, CONTRIBUTING.md or another page, or \
                delete it";
    assert_eq!(found, [format!("docs/c.md:1: {what}")]);
}

#[test]
fn a_link_to_nothing_is_found() {
    let found = lines(&[("a/b.md", "x\n[c](../c.md) [folder](../a) [top](#x)")]);
    let what = "link to `../c.md`, which does not exist; correct or remove it";
    assert_eq!(found, [format!("a/b.md:2: {what}")]);
}

#[test]
fn code_blocks_hold_no_links() {
    assert_eq!(lines(&[("a.md", "```\nx[1](2)\n```")]), Vec::<String>::new());
}
