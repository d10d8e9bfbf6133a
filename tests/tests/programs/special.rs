//! Cases that are more than a server and a client.

use std::path::Path;
use std::process::Command;

use crate::cases::{Case, installed};
use crate::place::{Column, Place, Side};
use crate::process::{Running, tail};
use crate::{Ended, Why};

/// ibv_asyncwatch never ends by itself. Between namespaces the link goes down and comes back.
pub fn asyncwatch(case: &Case, place: &Place, folder: &Path) -> Ended {
    let command = place.urxe(Side::Server, case.flags, &case.words())?;
    let mut running = Running::start(command, "program", folder)?;
    running.until("waited for events", |running| running.said().contains("async event FD"))?;
    if place.column == Column::Namespaces {
        let down = place.link("down").and_then(|()| {
            running.until("told of the port's error", |running| {
                running.said().contains("IBV_EVENT_PORT_ERR")
            })
        });
        // It must be up for the next case, whatever came.
        place.link("up")?;
        down?;
        running.until("told of the active port", |running| {
            running.said().contains("IBV_EVENT_PORT_ACTIVE")
        })?;
    }
    running.terminate()?;
    Ok(())
}

/// Four ranks, all at one address where there is a link, and with one each on loopback.
pub fn mpi(case: &Case, place: &Place, folder: &Path) -> Ended {
    installed("mpicc")?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/mpi.c");
    let program = folder.join("mpi");
    let mut compiler = Command::new("mpicc");
    compiler.args(["-O1", "-Wall", "-Werror", "-o"]).arg(&program).arg(source);
    let built = compiler.output().map_err(|e| format!("mpicc: {e}"))?;
    if !built.status.success() {
        return Err(Why::Wrong(format!("mpicc: {}", String::from_utf8_lossy(&built.stderr))));
    }
    let program = program.to_string_lossy();
    let words = case.command.split_whitespace();
    let words: Vec<String> = words.map(|word| word.replace("MPI.C", &program)).collect();
    let mut command = place.urxe(Side::Server, case.flags, &words)?;
    // Else it refuses to run as root, as it is in CI.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let text = Running::start(command, "program", folder)?.end()?.success()?;
    if text.contains("4 ranks: allreduce and ring are right") {
        Ok(())
    } else {
        Err(Why::Wrong(format!("the ranks say nothing of success:\n{}", tail(&text))))
    }
}

/// qperf: one server for several tests, each of which must have a result.
pub fn qperf(case: &Case, place: &Place, folder: &Path) -> Ended {
    let command = place.urxe(Side::Server, case.flags, &["qperf".to_owned()])?;
    let mut server = Running::start(command, "server", folder)?;
    server.listens(19765)?;
    let mut words = case.words();
    words.insert(1, place.server().to_owned());
    let client = |words: &[String]| {
        let command = place.urxe(Side::Client, case.flags, words)?;
        let done = Running::start(command, "client", folder)?.end()?.success();
        done.map_err(|why| format!("{why}\nserver:\n{}", tail(&server.said())))
    };
    let text = client(&words)?;
    let lines: Vec<&str> = text.lines().collect();
    for test in words.iter().filter(|word| word.contains('_')) {
        let at = lines.iter().position(|line| *line == format!("{test}:"));
        if !at.and_then(|at| lines.get(at + 1)).is_some_and(|line| line.contains(" = ")) {
            return Err(Why::Wrong(format!("{test} has no result:\n{text}")));
        }
    }
    client(&["qperf".to_owned(), place.server().to_owned(), "quit".to_owned()])?;
    server.end()?;
    Ok(())
}
