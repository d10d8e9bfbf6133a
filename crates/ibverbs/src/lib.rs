//! `libibverbs.so.1` on an emulated RoCEv2 NIC, so that C programs run on it as they are:
//!
//! ```text
//! LD_LIBRARY_PATH=target/debug/verbs ibv_devinfo -v
//! ```
//!
//! The settings are those of [`urxe::Config`], from `URXE_*` variables; all devices that a process
//! opens are one NIC and have one address. `URXE_LOG=debug` tells on the standard error why a call
//! was refused, which C learns as an errno only.
//!
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | `symbols` | the table of exported symbols and their versions |
//! | [`layout`] | the C structs, with their sizes and offsets asserted, and their constants |
//! | `call`, `errno` | the boundary: errno, null pointers, panics |
//! | `object`, `handle` | pools that C's pointers are looked up in; `handle` fields |
//! | `nic` | the process's one NIC: opened with the first device, closed with the last |
//! | `report` | what it counted, and what failed and why |
//! | `device`, `context`, `query` | the device list; opening, closing, importing; what they say |
//! | `ops` | the function tables of a context, where inline calls go |
//! | `pd`, `domain` | PDs; thread and parent domains |
//! | `mr`, `maps`, `mw`, `dm` | memory: regions, what is mapped, windows, device memory |
//! | `cq`, `cq_ex`, `wc` | completion queues, both ways to read them, completions |
//! | `turn` | from `start_poll` to `end_poll`, from `wr_start` to `wr_complete` |
//! | `channel`, `async_event`, `acks` | events on descriptors, acknowledged |
//! | `qp`, `qp_ex` | queue pairs: making, modifying, posting; `ibv_wr_*` |
//! | `srq`, `recv`, `ah`, `xrcd`, `mcast` | the other objects; lists of receives; ways to peers |
//! | `strings`, `rates`, `sysfs`, `marshal` | small things |
//! | `cma` | what librdmacm.so.1 hands its calls on to |
//! | `cmd` | what providers of other devices link to, which answers EOPNOTSUPP |
//!
//! A call looks its objects up (`object`), hands what C passed to `urxe`, and turns
//! the error into an errno. No rule of the protocol is here.
#![expect(unsafe_code, reason = "C's pointers are read and written; see `call` and `object`")]

pub mod layout;

mod acks;
mod ah;
mod async_event;
mod call;
mod channel;
mod clock;
mod cma;
mod cmd;
mod context;
mod cq;
mod cq_ex;
mod device;
mod dm;
mod domain;
mod errno;
mod fork;
mod handle;
mod idle;
mod maps;
mod marshal;
mod mcast;
mod mr;
mod mw;
mod nic;
mod object;
mod ops;
mod pd;
mod qp;
mod qp_ex;
mod query;
mod rates;
mod recv;
mod report;
mod srq;
mod strings;
mod symbols;
mod sysfs;
mod turn;
mod wc;
mod xrcd;
