//! Finds functions and modules in the code view of a Rust file, with a brace counter and no parser.

use std::ops::Range;

use crate::source::is_word;

#[cfg(test)]
mod tests;

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// From its first attribute or visibility to its closing brace; byte offsets.
    pub(crate) span: Range<usize>,
    /// Whether it or something around it is marked `#[test]` or `#[cfg(test)]`.
    pub(crate) test: bool,
}

/// `mod name;`, which names another file.
#[derive(Debug)]
pub(crate) struct ModuleFile {
    pub(crate) name: String,
    /// The inline modules around it, outermost first.
    pub(crate) within: Vec<String>,
    /// Its attributes and name; byte offsets.
    pub(crate) span: Range<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct Items {
    pub(crate) functions: Vec<Function>,
    pub(crate) modules: Vec<ModuleFile>,
    /// Inline `#[cfg(test)]` modules and test functions; byte offsets.
    pub(crate) tests: Vec<Range<usize>>,
}

impl Items {
    /// `code` is the code view of a file.
    pub(crate) fn new(code: &str) -> Self {
        let mut scanner = Scanner { code, at: 0, ..Scanner::default() };
        while scanner.at < code.len() {
            scanner.token();
        }
        scanner.items
    }

    /// The innermost function around `offset`, or the next one if only blanks stand before it.
    pub(crate) fn function_at(&self, code: &str, offset: usize) -> Option<&Function> {
        let around = self
            .functions
            .iter()
            .filter(|function| function.span.contains(&offset))
            .min_by_key(|function| function.span.len());
        around.or_else(|| {
            let next = self
                .functions
                .iter()
                .filter(|function| function.span.start >= offset)
                .min_by_key(|function| function.span.start)?;
            code[offset..next.span.start].trim().is_empty().then_some(next)
        })
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Function(String),
    Module(String),
}

/// A `fn` or `mod` whose `{` or `;` has not come yet.
struct Pending {
    kind: Kind,
    start: usize,
    depth: usize,
}

/// What a `{` opened.
struct Scope {
    kind: Option<Kind>,
    start: usize,
    test: bool,
    depth: usize,
}

#[derive(Default)]
struct Scanner<'a> {
    code: &'a str,
    at: usize,
    /// How many `(` and `[` are open since the last `{`.
    depth: usize,
    scopes: Vec<Scope>,
    pending: Option<Pending>,
    item_start: Option<usize>,
    marked_test: bool,
    items: Items,
}

impl Scanner<'_> {
    fn token(&mut self) {
        let byte = self.code.as_bytes()[self.at];
        if !byte.is_ascii_whitespace() && !matches!(byte, b'{' | b'}' | b';') {
            self.item_start.get_or_insert(self.at);
        }
        match byte {
            b'#' if self.attribute() => return,
            b'(' | b'[' => self.depth += 1,
            b')' | b']' => self.depth = self.depth.saturating_sub(1),
            b'{' => self.open(),
            b'}' => self.close(),
            b';' => self.semicolon(),
            byte if is_word(byte) => return self.word(),
            _ => {}
        }
        self.at += 1;
    }

    /// Takes a whole attribute, if one starts here.
    fn attribute(&mut self) -> bool {
        let rest = &self.code[self.at..];
        let Some(open) = rest.find('[').filter(|&at| matches!(rest[1..at].trim(), "" | "!")) else {
            return false;
        };
        let mut depth = 0_usize;
        let end = rest.bytes().skip(open).position(|byte| {
            match byte {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let Some(end) = end.map(|end| open + end) else { return false };
        self.marked_test |= marks_test(&rest[open + 1..end]);
        self.at += end + 1;
        true
    }

    fn word(&mut self) {
        let word = take_word(self.code, self.at);
        self.at += word.len();
        if !matches!(word, "fn" | "mod") {
            return;
        }
        let rest = &self.code[self.at..];
        let name = take_word(rest, rest.len() - rest.trim_start().len());
        if name.is_empty() {
            return;
        }
        let kind = match word {
            "fn" => Kind::Function(name.to_owned()),
            _ => Kind::Module(name.to_owned()),
        };
        let start = self.item_start.unwrap_or(self.at);
        self.pending = Some(Pending { kind, start, depth: self.depth });
    }

    fn open(&mut self) {
        let around = self.scopes.last().is_some_and(|scope| scope.test);
        let item = self.pending.take_if(|pending| pending.depth == self.depth);
        self.scopes.push(match item {
            Some(item) => Scope {
                kind: Some(item.kind),
                start: item.start,
                test: around || self.marked_test,
                depth: self.depth,
            },
            None => Scope { kind: None, start: self.at, test: around, depth: self.depth },
        });
        self.depth = 0;
        self.end_of_item();
    }

    fn close(&mut self) {
        if let Some(scope) = self.scopes.pop() {
            let span = scope.start..self.at + 1;
            if scope.test && scope.kind.is_some() {
                self.items.tests.push(span.clone());
            }
            if let Some(Kind::Function(name)) = scope.kind {
                self.items.functions.push(Function { name, span, test: scope.test });
            }
            self.depth = scope.depth;
        }
        self.end_of_item();
    }

    fn semicolon(&mut self) {
        if self.depth > self.pending.as_ref().map_or(0, |pending| pending.depth) {
            return; // inside `[u8; 4]`
        }
        if let Some(Pending { kind: Kind::Module(name), start, .. }) = self.pending.take() {
            let within = self.scopes.iter().filter_map(|scope| match &scope.kind {
                Some(Kind::Module(name)) => Some(name.clone()),
                _ => None,
            });
            let within = within.collect();
            self.items.modules.push(ModuleFile { name, within, span: start..self.at });
        }
        self.end_of_item();
    }

    fn end_of_item(&mut self) {
        self.item_start = None;
        self.marked_test = false;
    }
}

/// Whether an attribute's inside is `test`, `x::test`, or a `cfg` that needs `test`.
fn marks_test(attribute: &str) -> bool {
    let attribute = attribute.trim();
    let named = attribute.split(['(', '=']).next().unwrap_or("").trim();
    match named.rsplit("::").next() {
        Some("test") => true,
        Some("cfg") => {
            let whole = crate::source::words(attribute, "test").count();
            whole > attribute.matches("not(test").count()
        }
        _ => false,
    }
}

fn take_word(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    &rest[..rest.bytes().take_while(|&byte| is_word(byte)).count()]
}
