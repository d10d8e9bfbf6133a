use super::*;

fn lines(files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files)).iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_of_601_lines_is_found() {
    assert_eq!(lines(&[("a.rs", &"\n".repeat(600))]), Vec::<String>::new());
    let found = lines(&[("a.rs", &"\n".repeat(601))]);
    assert_eq!(found, ["a.rs:601: 601 lines, 600 allowed; split the file by purpose"]);
}

#[test]
fn a_line_of_101_columns_is_found() {
    let line = "é".repeat(101);
    let script = format!("#!/usr/bin/env bash\n{line}");
    let found = lines(&[
        ("a.rs", &line),
        ("b.toml", &line),
        ("c.sh", &line),
        ("d/run", &script),
        ("ok.rs", &line[2..]),
        ("ok.md", &line),
        ("ok.snap", &line),
    ]);
    let starts: Vec<&str> = found.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(starts, ["a.rs", "b.toml", "c.sh", "d/run"]);
    assert_eq!(found[3], "d/run:2: 101 columns, 100 allowed; break the line");
}

#[test]
fn data_in_a_string_over_lines_is_exempt() {
    let text = format!("let a = r\"\n{}\n\";\n", "x".repeat(200));
    assert_eq!(lines(&[("a.rs", &text)]), Vec::<String>::new());
}
