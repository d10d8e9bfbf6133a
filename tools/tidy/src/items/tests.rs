use super::*;
use crate::source::Source;

fn items(text: &str) -> Items {
    Items::new(&Source::new(text).code)
}

fn functions(text: &str) -> Vec<(String, bool)> {
    let mut functions = items(text).functions;
    functions.sort_by_key(|function| function.span.start);
    functions.into_iter().map(|function| (function.name, function.test)).collect()
}

#[test]
fn functions_know_whether_they_are_tests() {
    let text = "
        pub fn a() { if x { y } }
        #[test]
        #[should_panic]
        fn b() {}
        fn c(x: [u8; 4]) -> [u8; 2] {}
        #[cfg(test)]
        mod inside { fn d() {} }
        #[cfg(not(test))]
        fn e() {}
        #[tokio::test]
        async fn f() {}";
    let want = [("a", false), ("b", true), ("c", false), ("d", true), ("e", false), ("f", true)];
    assert_eq!(functions(text), want.map(|(name, test)| (name.to_owned(), test)));
}

#[test]
fn tests_inside_a_macro_are_found() {
    let text = "proptest! { #![proptest_config(x)] #[test] fn a(b in 0..4) { c(); } }";
    assert_eq!(functions(text), [("a".to_owned(), true)]);
}

#[test]
fn a_function_pointer_is_no_function() {
    assert_eq!(functions("const A: &[fn(u8) -> u8] = &[]; struct B { c: fn() }"), []);
}

#[test]
fn a_trait_method_without_body_takes_no_other_body() {
    let text = "trait A { fn b(&self); } impl C { fn d() {} }";
    assert_eq!(functions(text), [("d".to_owned(), false)]);
}

#[test]
fn module_files_know_what_is_around_them() {
    let found = items("mod a; #[cfg(test)] mod b { pub(crate) mod c; fn d() {} }").modules;
    let found: Vec<_> = found.into_iter().map(|module| (module.name, module.within)).collect();
    let want = [("a".to_owned(), vec![]), ("c".to_owned(), vec!["b".to_owned()])];
    assert_eq!(found, want);
}

#[test]
fn a_comment_belongs_to_the_function_around_it_or_right_below() {
    let text = "
        // above
        #[test]
        fn a() {
            // inside
        }
        // apart
        const B: u8 = 0;
        fn c() {}";
    let source = Source::new(text);
    let items = Items::new(&source.code);
    let name = |comment| {
        let at = text.find(comment).unwrap();
        items.function_at(&source.code, at).map(|function| function.name.as_str())
    };
    assert_eq!(name("above"), Some("a"));
    assert_eq!(name("inside"), Some("a"));
    assert_eq!(name("apart"), None);
}

#[test]
fn unbalanced_braces_do_not_panic() {
    for text in ["}}}", "{{{", "fn", "mod", "#[", "fn a(", "mod a"] {
        items(text);
    }
}
