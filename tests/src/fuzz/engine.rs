//! Bytes become verbs calls, packets of a hostile peer and steps of time. Whatever they are, the
//! engine does not fall, touches no memory it was not lent, completes nothing twice, and a QP that
//! the hostile peer has no part in goes on working.

mod hostile;
mod world;

use world::World;

/// Operations of one run at most: enough to reach any state, few enough to be quick.
const MOST: usize = 400;

/// Reads choices off the front of the input; zeros once it is used up.
pub(super) struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn number(&mut self) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&[self.byte(), self.byte(), self.byte(), self.byte()]);
        u32::from_be_bytes(word)
    }
}

/// Runs `data` as a program against the engine.
///
/// # Panics
/// Where the engine breaks a promise.
pub fn engine(data: &[u8]) {
    let mut choices = Choices(data);
    let mut world = World::new(choices.byte());
    for _ in 0..MOST {
        if choices.is_empty() {
            break;
        }
        world.step(&mut choices);
    }
    world.judge();
}
