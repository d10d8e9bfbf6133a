//! Both sides of connection management, message by message, on good wires and on bad ones.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod attrs;
mod captures;
mod close;
mod connect;
mod fabric;
mod flood;
mod hostile;
mod lossy;
mod refuse;
mod retry;
mod sidr;
mod stale;
mod world;
