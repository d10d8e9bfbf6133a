//! What the fuzz targets run: each function takes any bytes and panics where a promise is broken.

mod mad;
mod pcap;

pub use mad::mad;
pub use pcap::pcap;

#[cfg(test)]
mod tests;
