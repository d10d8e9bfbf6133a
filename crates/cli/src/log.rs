//! What the engine and the ports tell of what they do, on the standard error.

use std::env::{self, VarError};
use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::time::uptime;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::command::palette;
use crate::dissect::Palette;

/// Which events are shown: a level, or levels of parts, such as `urxe_engine=debug,warn`.
pub const VARIABLE: &str = "URXE_LOG";

/// Starts to show the events that [`VARIABLE`] asks for; warnings and errors if it is not set.
pub(crate) fn start() -> Result<(), String> {
    let targets = match env::var(VARIABLE) {
        Ok(text) => parse(&text)?,
        Err(VarError::NotPresent) => Targets::new().with_default(LevelFilter::WARN),
        Err(VarError::NotUnicode(_)) => return Err(wrong("(no text)", "it is not UTF-8")),
    };
    let coloured = palette(&io::stderr()).bad != Palette::PLAIN.bad;
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_timer(uptime())
        .with_ansi(coloured)
        .with_filter(targets);
    // A program that calls us may have a subscriber of its own, which then shows them.
    let _ = tracing_subscriber::registry().with(layer).try_init();
    Ok(())
}

fn parse(text: &str) -> Result<Targets, String> {
    text.parse::<Targets>().map_err(|e| wrong(text, &e.to_string()))
}

fn wrong(value: &str, problem: &str) -> String {
    format!(
        "{VARIABLE}={value}: {problem}; wanted off, error, warn, info, debug or trace, or such of \
         parts, as urxe_engine=debug,urxe_net=trace"
    )
}
