use super::*;

fn views(text: &str) -> (String, String) {
    let source = Source::new(text);
    assert_eq!(source.code.len(), text.len());
    assert_eq!(source.comments.len(), text.len());
    (source.code, source.comments)
}

#[test]
fn a_comment_is_in_one_view_only() {
    let (code, comments) = views("let a = 1; // one\nlet b = 2;");
    assert_eq!(code, "let a = 1;       \nlet b = 2;");
    assert_eq!(comments, "           // one\n          ");
}

#[test]
fn slashes_in_strings_are_no_comment() {
    for text in [r#"f("// no")"#, r##"f(r#"" // no"#)"##, r#"f(b"\" // no")"#, "f(c\"// no\")"] {
        let (code, comments) = views(text);
        assert_eq!(comments.trim(), "", "{text}");
        assert!(!code.contains("no"), "{text}: {code}");
    }
}

#[test]
fn quotes_in_comments_open_no_string() {
    let (code, comments) = views("// it's \"half\nlet a = 'b';");
    assert_eq!(code.trim(), "let a = ' ';");
    assert_eq!(comments.trim(), "// it's \"half");
}

#[test]
fn lifetimes_are_no_characters() {
    let (code, _) = views("fn f<'a>(x: &'a str, y: char) { y == '\\'' || y == '\u{e9}' }");
    assert!(code.contains("<'a>(x: &'a str"), "{code}");
    assert!(code.ends_with('}'), "{code}");
}

#[test]
fn block_comments_nest() {
    let (code, comments) = views("a /* b /* c */ d */ e");
    assert_eq!(code, "a                   e");
    assert_eq!(comments.trim(), "/* b /* c */ d */");
}

#[test]
fn an_open_end_does_not_hang_or_panic() {
    for text in ["\"abc", "r#\"abc", "/* abc", "'\\", "b'", "r#abc", "\"\\"] {
        views(text);
    }
}

#[test]
fn lines_inside_a_string_are_marked() {
    let source = Source::new("a\nb(\"c\nd\ne\")\nf");
    assert_eq!(source.begins_in_string, [false, false, true, true, false]);
}

#[test]
fn lines_count_from_one() {
    assert_eq!(line_of("a\nb\nc", 0), 1);
    assert_eq!(line_of("a\nb\nc", 4), 3);
}

#[test]
fn words_are_whole() {
    assert_eq!(words("sub ub bub ub", "ub").collect::<Vec<_>>(), [4, 11]);
}
