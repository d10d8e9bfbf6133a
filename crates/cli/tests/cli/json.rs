//! `--json`: of every command that has it, each line is an object and nothing else is written.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use clap::CommandFactory;
use serde_json::Value;
use urxe_cli::cli::Cli;

use crate::program::{Running, err, out, urxe};
use crate::programs::library;

const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/captures/loss_send.pcap");

/// Runs these commands to their good end.
fn outputs() -> BTreeMap<String, String> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("json");
    let (dir, library) = (directory.to_str().unwrap(), library());
    let library = library.to_str().unwrap();
    let leaves = "echo '{\"process\":1}' > $(echo $URXE_REPORT | sed s/%p/1/)";
    let mut all = BTreeMap::new();
    for args in [
        &["demo", "--out", dir][..],
        &["devinfo"],
        &["ports"],
        &["doctor"],
        &["bench", "write.4K.mtu1024", "--rounds", "1", "--time", "5ms"],
        &["sim", "--seeds", "3", "--loss", "5%"],
        &["dissect", CAPTURE],
        &["lint", CAPTURE],
        &["env", "--library", library, "--loss", "1%"],
        &["run", "--library", library, "--report", "--", "sh", "-c", leaves],
    ] {
        let mut args = args.to_vec();
        args.insert(1, "--json");
        let output = urxe(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", err(&output));
        // What a program says is its own: what is said of it is apart.
        let of_errors = args[0] == "run";
        all.insert(args[0].to_owned(), if of_errors { err(&output) } else { out(&output) });
    }
    all.insert("pingpong".to_owned(), game());
    all
}

/// What both sides of a game say.
fn game() -> String {
    let args = ["pingpong", "rc", "--json", "-n", "3", "--tcp-port"];
    let server = Running::start(urxe(&args).arg("0"));
    let port = crate::ending::listening(&server);
    let client = urxe(&args).args([&port, "127.0.0.1"]).output().unwrap();
    let (code, text, errors) = server.end();
    assert_eq!((code, client.status.code()), (Some(0), Some(0)), "{errors}{}", err(&client));
    text + &out(&client)
}

#[test]
fn every_command_that_has_it_writes_objects() {
    let all = outputs();
    let command = Cli::command();
    let having =
        command.get_subcommands().filter(|c| c.get_arguments().any(|a| a.get_id() == "json"));
    let mut names: Vec<_> = having.map(clap::Command::get_name).collect();
    names.sort_unstable();
    assert_eq!(all.keys().collect::<Vec<_>>(), names, "each command with --json is tried");
    for (command, text) in all {
        assert!(!text.is_empty(), "{command}");
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|e| {
                panic!("{command}: {e}: {line}");
            });
            assert!(value.is_object(), "{command}: {line}");
        }
    }
}

/// What only lists what there is does so in objects, too.
#[test]
fn lists_are_objects() {
    for (args, key) in [(&["lint", "--rules"][..], "rule"), (&["bench", "--list"], "case")] {
        let text = out(&urxe(args).output().unwrap());
        let output = urxe(&[args, &["--json"]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let json = out(&output);
        assert_eq!(json.lines().count(), text.lines().count(), "{json}");
        assert!(!json.is_empty(), "{args:?}");
        for (json, text) in json.lines().zip(text.lines()) {
            let object: Value = serde_json::from_str(json).unwrap();
            assert_eq!(object[key].as_str(), text.split(' ').next(), "{json}");
        }
    }
}

/// Of a program that opened no device there is nothing to say, and no empty line is said.
#[test]
fn a_report_of_nothing() {
    let library = library();
    let args = ["run", "--json", "--library", library.to_str().unwrap(), "--report", "--", "true"];
    let output: Output = urxe(&args).output().unwrap();
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
}
