//! Reads the rule ids that comments cite: `// IBA C9-92`, `(IBA 9.7.5.2.8, C9-105)`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::finding::Finding;
use crate::items::Items;
use crate::source::{Source, line_of, words};
use crate::tree::Tree;
use crate::words::is_test_file;

#[cfg(test)]
mod tests;

/// What the InfiniBand Architecture Specification is called in a citation.
const SPEC: &str = "IBA";

/// A rule's id in the order that a reader looks it up: by kind, then by number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    key: Vec<(String, u32)>,
    pub(crate) id: String,
}

/// Where one rule is cited.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cited {
    pub(crate) code: BTreeSet<String>,
    /// File, and the functions in it; no function if the citation is the whole file's.
    pub(crate) tests: BTreeMap<String, BTreeSet<String>>,
}

/// Citations that start like one but cannot be read.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        let comments = Source::new(text).comments;
        for at in words(&comments, SPEC) {
            let line_start = comments[..at].rfind('\n').map_or(0, |newline| newline + 1);
            let leads = comments[line_start..at].trim() == "//";
            if leads && ids_after(&comments, at + SPEC.len()).is_empty() {
                let what = "a citation with no rule id; write `// IBA C9-92` or `// IBA 9.7.2`";
                findings.push(Finding::new(path, line_of(&comments, at), what));
            }
        }
    }
    findings
}

/// All rules that the crates and the tests cite.
pub(crate) fn collect(tree: &Tree) -> BTreeMap<Rule, Cited> {
    let mut rules: BTreeMap<Rule, Cited> = BTreeMap::new();
    for (path, text) in tree.rust() {
        if !path.starts_with("crates/") && !path.starts_with("tests/") {
            continue;
        }
        let source = Source::new(text);
        let items = Items::new(&source.code);
        for at in words(&source.comments, SPEC) {
            let function = items.function_at(&source.code, at);
            let in_test = is_test_file(path)
                || function.is_some_and(|function| function.test)
                || items.tests.iter().any(|test| test.contains(&at));
            for id in ids_after(&source.comments, at + SPEC.len()) {
                let cited = rules.entry(Rule::new(&source.comments[id])).or_default();
                if in_test {
                    let names = cited.tests.entry(path.to_owned()).or_default();
                    names.extend(function.map(|function| function.name.clone()));
                } else {
                    cited.code.insert(path.to_owned());
                }
            }
        }
    }
    rules
}

impl Rule {
    fn new(id: &str) -> Self {
        let mut key = Vec::new();
        let mut rest = id;
        while !rest.is_empty() {
            let text_len = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let (text, tail) = rest.split_at(text_len);
            let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
            let (number, tail) = tail.split_at(digits);
            key.push((text.to_owned(), number.parse().unwrap_or(0)));
            rest = tail;
        }
        Self { key, id: id.to_owned() }
    }
}

/// The ids that follow the spec's name: one, or several with commas or "and" between them.
fn ids_after(text: &str, mut at: usize) -> Vec<Range<usize>> {
    let mut ids = Vec::new();
    loop {
        let rest = &text[at..];
        let gap = rest.len() - skip_gap(rest).len();
        let id = id_len(&rest[gap..]);
        // Further ids need a separator: "IBA 9.2 64 bytes" cites one.
        let separated =
            ids.is_empty() || rest[..gap].contains([',', '&']) || rest[..gap].contains("and");
        if id == 0 || gap == 0 || !separated {
            return ids;
        }
        ids.push(at + gap..at + gap + id);
        at += gap + id;
    }
}

/// Skips blanks, the comment marks of a following line, and the words that may lead an id.
fn skip_gap(text: &str) -> &str {
    let mut rest = text;
    loop {
        let before = rest.len();
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || ",&/!".contains(c));
        for word in ["and ", "annex ", "section ", "sections ", "rule ", "rules "] {
            rest = rest.strip_prefix(word).unwrap_or(rest);
        }
        if rest.len() == before {
            return rest;
        }
    }
}

/// The length of a rule's id at the start of `text`; 0 if there is none.
///
/// A compliance statement is `C9-92`, `o9-5.2.1`, `CA17-3`; an annex `A17` or `A17.9.3`; a
/// section `9.7.5.2.8`.
fn id_len(text: &str) -> usize {
    let prefix = ["CA", "oA", "C", "o", "A", ""].into_iter().find(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    let Some(prefix) = prefix else { return 0 };
    let body = &text[prefix.len()..];
    let end = body.find(|c: char| !c.is_ascii_digit() && !".-".contains(c)).unwrap_or(body.len());
    let body = body[..end].trim_end_matches(['.', '-']);
    let shaped = match prefix {
        "A" => true,
        "" => body.contains('.') && !body.contains('-'),
        _ => body.contains('-'),
    };
    let goes_on = text[prefix.len() + body.len()..].starts_with(|c: char| c.is_alphanumeric());
    if shaped && !goes_on { prefix.len() + body.len() } else { 0 }
}
