//! Running programs.

use std::io;
use std::process::{Command, Output};

use crate::LabError;

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn failed(command: &Command, output: &Output) -> LabError {
    let text = [&output.stderr[..], &output.stdout[..]].concat();
    let output = format!("{}: {}", output.status, String::from_utf8_lossy(&text).trim());
    LabError::Command { command: shown(command), output }
}

/// What `command` writes to its standard output; an error if it fails.
pub(crate) fn bytes(command: &mut Command) -> Result<Vec<u8>, LabError> {
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let program = command.get_program().to_string_lossy();
            LabError::CannotRun(format!("there is no `{program}`; {}", package_of(&program)))
        }
        _ => LabError::Command { command: shown(command), output: error.to_string() },
    })?;
    if output.status.success() { Ok(output.stdout) } else { Err(failed(command, &output)) }
}

/// The same as text.
pub(crate) fn text(command: &mut Command) -> Result<String, LabError> {
    Ok(String::from_utf8_lossy(&bytes(command)?).into_owned())
}

/// Runs `ip` with these words, in this namespace.
pub(crate) fn ip(words: &str) -> Result<(), LabError> {
    text(Command::new("ip").args(words.split_whitespace())).map(drop)
}

/// How to come by a program.
fn package_of(program: &str) -> String {
    let package = match program {
        "qemu-system-x86_64" => "qemu-system-x86",
        "ip" => "iproute2",
        "gcc" => "gcc",
        "readelf" => "binutils",
        "xz" => "xz-utils",
        "unshare" | "nsenter" | "setpriv" => "util-linux",
        "apt-get" | "apt-cache" | "dpkg" => {
            return "the lab takes its kernel and tools from Debian's packages".to_owned();
        }
        _ => return "install it".to_owned(),
    };
    format!("install {package}, as with `apt-get install {package}`")
}
