//! Bytes become messages of a hostile peer, decisions of an owner and steps of time. Whatever they
//! are, the connection manager does not fall, keeps no more than its limits, and a connection that
//! the hostile peer has no part in stays as it is.

mod hostile;
mod world;

use super::choices::Choices;
use world::World;

/// Steps of one run at most.
const MOST: usize = 400;

/// Runs `data` as a program against a connection manager.
///
/// # Panics
/// Where the manager breaks a promise.
pub fn cm(data: &[u8]) {
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
