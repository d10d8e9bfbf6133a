//! The engine from outside: a NIC, a peer, and what goes between them at what time.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![allow(dead_code, reason = "the lab is for all tests, each uses a part")]

mod ask;
mod atomics;
mod completer;
mod congestion;
mod cq;
mod credits;
mod duplicates;
mod held;
mod hostile;
mod inline;
mod lab;
mod lengths;
mod lossy;
mod multicast;
mod objects;
mod order;
mod packet_checks;
mod post;
mod profiles;
mod qp_states;
mod read_replies;
mod receives;
mod requester;
mod responder_checks;
mod responses;
mod retry;
mod rnr;
mod rnr_responder;
mod script;
mod slowdown;
mod smoke;
mod sq_errors;
mod srq;
mod states;
mod storm;
mod uc;
mod ud;
mod whys;
mod window;
mod windows;
mod xrc;
mod xrc_requests;
