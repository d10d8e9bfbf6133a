//! An input as a row of decisions.

/// Reads choices off the front of the input; zeros once it is used up.
pub(super) struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub(super) const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    pub(super) fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(super) fn number(&mut self) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&[self.byte(), self.byte(), self.byte(), self.byte()]);
        u32::from_be_bytes(word)
    }
}
