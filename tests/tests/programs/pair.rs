//! One program, or a server and a client.

use std::path::Path;

use crate::Why;
use crate::cases::Case;
use crate::place::{Place, Side};
use crate::process::{Done, Running, tail};

/// Runs one program, which must end well; gives what it said.
pub fn alone(case: &Case, place: &Place, folder: &Path) -> Result<String, Why> {
    let command = place.urxe(Side::Server, case.flags, &case.words())?;
    Ok(Running::start(command, "program", folder)?.end()?.success()?)
}

/// Runs a server, and a client once the server listens. Both must end well; gives what they said.
pub fn play(case: &Case, place: &Place, folder: &Path, port: u16) -> Result<[String; 2], Why> {
    let mut words = case.words();
    let command = place.urxe(Side::Server, case.flags, &words)?;
    let mut server = Running::start(command, "server", folder)?;
    server.listens(port)?;
    words.push(place.server().to_owned());
    let command = place.urxe(Side::Client, case.flags, &words)?;
    let client = Running::start(command, "client", folder)?.end().and_then(Done::success);
    // A server whose client failed may wait for it.
    let client = client.map_err(|why| format!("{why}\nserver:\n{}", tail(&server.said())))?;
    Ok([server.end()?.success()?, client])
}

/// The argument behind a flag.
pub fn value<'a>(command: &'a [String], flag: &str) -> Option<&'a str> {
    let at = command.iter().position(|word| word == flag)?;
    command.get(at + 1).map(String::as_str)
}

/// ibverbs-utils: so many exchanges, and the data as it should be.
pub fn pingpong(command: &[String], said: &[String; 2]) -> Result<(), String> {
    let exchanges = if command[0] == "ibv_xsrq_pingpong" { "" } else { " iters in " };
    for text in said {
        if text.contains("invalid data") {
            return Err("data arrived wrong".to_owned());
        }
        if !text.contains(exchanges) {
            return Err(format!("no {exchanges:?}"));
        }
    }
    Ok(())
}

/// ucx_perftest: the client's last row.
pub fn ucx(_command: &[String], said: &[String; 2]) -> Result<(), String> {
    if said[1].contains("Final:") { Ok(()) } else { Err("no line of results".to_owned()) }
}
