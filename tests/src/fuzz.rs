//! What the fuzz targets run: each function takes any bytes and panics where a promise is broken.

mod choices;
mod cm;
mod engine;
mod lint;
mod mad;
mod packet;
mod pcap;

pub use cm::cm;
pub use engine::engine;
pub use lint::lint;
pub use mad::mad;
pub use packet::packet;
pub use pcap::pcap;

#[cfg(test)]
mod tests;

/// A target: takes any bytes, panics where a promise is broken.
pub type Target = fn(&[u8]);

/// Each target by the name of its corpus, `fuzz/corpus/NAME/`.
pub const TARGETS: &[(&str, Target)] = &[
    ("cm", cm),
    ("engine", engine),
    ("lint", lint),
    ("mad", mad),
    ("packet", packet),
    ("pcap", pcap),
];
