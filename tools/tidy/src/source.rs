//! Splits Rust text into code and comments, so that a check never mistakes one for the other.

#[cfg(test)]
mod tests;

/// A Rust file seen twice, byte for byte in the same places: what is not shown is blank.
#[derive(Debug)]
pub(crate) struct Source {
    /// Code; comments and the insides of string and character literals are blank.
    pub(crate) code: String,
    /// Comments with their slashes; code and literals are blank.
    pub(crate) comments: String,
    /// Per line: whether it begins inside a string literal (data, not layout).
    pub(crate) begins_in_string: Vec<bool>,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let mut lexer = Lexer {
            bytes: text.as_bytes(),
            at: 0,
            code: Vec::with_capacity(text.len()),
            comments: Vec::with_capacity(text.len()),
            begins_in_string: vec![false],
        };
        while lexer.at < lexer.bytes.len() {
            lexer.token();
        }
        Self {
            code: String::from_utf8_lossy(&lexer.code).into_owned(),
            comments: String::from_utf8_lossy(&lexer.comments).into_owned(),
            begins_in_string: lexer.begins_in_string,
        }
    }
}

/// The line, from 1, of a byte offset.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count()
}

/// Every place where `word` stands as a whole word.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].bytes().next_back();
        let after = text[at + word.len()..].bytes().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[derive(Clone, Copy, PartialEq)]
enum Show {
    Code,
    Comment,
    Neither,
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    code: Vec<u8>,
    comments: Vec<u8>,
    begins_in_string: Vec<bool>,
}

impl Lexer<'_> {
    fn token(&mut self) {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(b"//") {
            let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            self.take(end, Show::Comment);
        } else if rest.starts_with(b"/*") {
            self.take(block_comment_len(rest), Show::Comment);
        } else if let Some(hashes) = self.raw_string_hashes() {
            self.literal(hashes + 2, raw_string_len(rest, hashes));
        } else if rest[0] == b'"' {
            self.literal(1, quoted_len(rest, b'"'));
        } else if rest[0] == b'\'' && is_char_literal(rest) {
            self.literal(1, quoted_len(rest, b'\''));
        } else {
            self.take(1, Show::Code);
        }
    }

    /// Takes `length` bytes, showing them in one of the two views.
    fn take(&mut self, length: usize, show: Show) {
        for &byte in &self.bytes[self.at..self.at + length] {
            let blank = if byte == b'\n' { b'\n' } else { b' ' };
            self.code.push(if show == Show::Code { byte } else { blank });
            self.comments.push(if show == Show::Comment { byte } else { blank });
            if byte == b'\n' {
                self.begins_in_string.push(show == Show::Neither);
            }
        }
        self.at += length;
    }

    /// A literal of `length` bytes whose first `open` are its opening; its ends stay in the code.
    fn literal(&mut self, open: usize, length: usize) {
        let open = open.min(length);
        self.take(open, Show::Code);
        self.take(length - open, Show::Neither);
        if length > open && self.code.last() == Some(&b' ') {
            self.code.pop();
            self.code.push(self.bytes[self.at - 1]);
        }
    }

    /// How many `#` open a raw string here, if one starts here.
    fn raw_string_hashes(&self) -> Option<usize> {
        let rest = self.bytes[self.at..].strip_prefix(b"r")?;
        let before = &self.bytes[..self.at];
        let before = match before {
            [head @ .., b'b' | b'c'] => head,
            all => all,
        };
        if before.last().is_some_and(|&byte| is_word(byte)) {
            return None;
        }
        let hashes = rest.iter().take_while(|&&byte| byte == b'#').count();
        (rest.get(hashes) == Some(&b'"')).then_some(hashes)
    }
}

/// The length of a block comment, which may hold others.
fn block_comment_len(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `r##"..."##`.
fn raw_string_len(rest: &[u8], hashes: usize) -> usize {
    let open = hashes + 2;
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    rest[open..]
        .windows(close.len())
        .position(|window| window == close)
        .map_or(rest.len(), |at| open + at + close.len())
}

/// The length of a literal that ends at the first `quote` not escaped.
fn quoted_len(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Tells `'a'` from the lifetime `'a`.
fn is_char_literal(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(&first) => {
            let width = match first {
                0xf0.. => 4,
                0xe0.. => 3,
                0xc0.. => 2,
                _ => 1,
            };
            rest.get(1 + width) == Some(&b'\'')
        }
        None => false,
    }
}
