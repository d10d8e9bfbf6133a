//! Bytes become verbs calls, packets of a hostile peer and steps of time. Whatever they are, the
//! engine does not fall, touches no memory it was not lent, completes nothing twice, and a QP that
//! the hostile peer has no part in goes on working.

mod hostile;
mod world;

use super::choices::Choices;
use world::World;

/// Operations of one run at most: enough to reach any state, few enough to be quick.
const MOST: usize = 400;

/// Runs `data` as a program against the engine.
///
/// # Panics
/// Where the engine breaks a promise.
pub fn engine(data: &[u8]) {
    let mut choices = Choices::new(data);
    let mut world = World::new(choices.byte());
    for _ in 0..MOST {
        if choices.is_empty() {
            break;
        }
        world.step(&mut choices);
    }
    world.judge();
}
