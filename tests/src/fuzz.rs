//! What the fuzz targets run: each function takes any bytes and panics where a promise is broken.

mod mad;

pub use mad::mad;

#[cfg(test)]
mod tests;
