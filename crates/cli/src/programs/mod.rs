//! `urxe run` and `urxe env`: C programs on an emulated NIC, as they are.

mod detect;
mod devfs;
mod library;
mod report;
mod supervise;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, ValueEnum};

use crate::command::{Done, Failure, tell};
use crate::common::Common;

/// Where the libraries are, if not beside the command.
pub(crate) const LIBRARY: &str = "URXE_LIBRARY";
/// What datagrams' completions tell as their service level; UCX reads the kind of IP header there.
const WC_SL: &str = "URXE_WC_SL";
/// IPv4 under UDP, as UCX reads it.
const WC_SL_OF_UCX: &str = "10";
const SEARCHED: &str = "LD_LIBRARY_PATH";
/// As shells have it: no such program; one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

/// Whether a program gets files of a device at the paths where hardware has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Devfs {
    /// If it is linked to UCX, or is an MPI launcher, and the host has no such files
    #[default]
    Auto,
    /// Always; it is an error where that cannot be done
    On,
    /// Never
    Off,
}

/// What to run, and on what NIC.
#[derive(Debug, Args)]
#[command(after_help = "\
Each process of the program gets a NIC of its own, from the first ibv_open_device to the last\n\
ibv_close_device. Set-uid programs take no library from us.\n\
Exit status: the program's, or its signal; 127 it is not there; 126 it cannot be run; \
2 bad usage, or the library is not there.")]
pub struct RunArgs {
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
    /// At the end, say on the standard error what each process's NIC counted, which calls were
    /// refused and which requests failed, and why; with --json as objects
    #[arg(long)]
    pub report: bool,
    /// Serve /dev/infiniband/uverbs0 and /sys/class/infiniband to the program, in namespaces of its
    /// own
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "on")]
    pub devfs: Devfs,
    /// The directory of libibverbs.so.1 and librdmacm.so.1; else beside this command [env:
    /// URXE_LIBRARY]
    #[arg(long, value_name = "DIR")]
    pub library: Option<PathBuf>,
    /// Settings of the device
    #[command(flatten)]
    pub common: Common,
}

/// What to export.
#[derive(Debug, Args)]
#[command(after_help = "\
Use it as: eval \"$(urxe env)\"\n\
Exit status: 0 done; 2 bad usage, or the library is not there.")]
pub struct EnvArgs {
    /// The directory of libibverbs.so.1 and librdmacm.so.1; else beside this command [env:
    /// URXE_LIBRARY]
    #[arg(long, value_name = "DIR")]
    pub library: Option<PathBuf>,
    /// Settings of the device
    #[command(flatten)]
    pub common: Common,
}

/// What `run` asks of itself.
#[derive(Debug, Args)]
pub struct TryDevfsArgs {
    /// The interface whose device it is
    pub interface: String,
}

/// Variables, in order.
pub(crate) type Variables = Vec<(String, OsString)>;

/// Runs the program. Does not return where nothing is left to do at its end.
pub(crate) fn run(args: &RunArgs) -> Result<Done, Failure> {
    let directory = library::find(args.library.as_deref())?;
    let mut variables = variables(&directory, &args.common)?;
    let Some(program) = args.command.first() else { return Err("no program is given".into()) };
    let devfs = match args.devfs {
        Devfs::On => true,
        Devfs::Off => false,
        Devfs::Auto => detect::needs_devfs(program),
    };
    if args.report {
        // The supervisor stays outside of the namespaces that the program lives in.
        let mut inner = if devfs { ourselves(args.devfs, &directory)? } else { Vec::new() };
        inner.extend(args.command.iter().cloned());
        return supervise::run(&inner, variables, args.common.json);
    }
    if devfs && enter(args)? && env::var_os(WC_SL).is_none() {
        variables.push((WC_SL.into(), WC_SL_OF_UCX.into()));
    }
    let error = command(&args.command, variables).exec();
    Ok(cannot_run(program, &error))
}

/// Goes where the files of a device are; says whether it did.
///
/// # Errors
/// Where they must be served and cannot be. This process may be in namespaces that are half made
/// then, in which nothing is to be run.
fn enter(args: &RunArgs) -> Result<bool, Failure> {
    let interface = devfs::interface(args.common.config()?.address);
    if args.devfs == Devfs::Auto
        && let Err(why) = devfs::trial(&interface)
    {
        tell(&format!("no files of a device are served: {why}"));
        return Ok(false);
    }
    let unserved = devfs::enter(&interface)?;
    unserved.iter().for_each(|what| tell(&format!("--devfs: {what}")));
    Ok(true)
}

/// Tries to go there, in a process that ends with the trial.
pub(crate) fn try_devfs(args: &TryDevfsArgs) -> Result<Done, Failure> {
    devfs::enter(&args.interface)?;
    Ok(Done::Well)
}

/// This command once more, for the program's side.
fn ourselves(devfs: Devfs, library: &Path) -> Result<Vec<OsString>, Failure> {
    let me = env::current_exe().map_err(|e| format!("where this command is: {e}"))?;
    let devfs = if devfs == Devfs::On { "--devfs=on" } else { "--devfs=auto" };
    Ok([me.as_os_str(), "run".as_ref(), devfs.as_ref(), "--library".as_ref(), library.as_ref()]
        .into_iter()
        .chain([OsStr::new("--")])
        .map(OsStr::to_owned)
        .collect())
}

fn command(words: &[OsString], variables: Variables) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(variables);
    command
}

/// The program did not start.
fn cannot_run(program: &OsStr, error: &std::io::Error) -> Done {
    let status = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE };
    tell(&format!("error: {}: {error}; give a program that can be run", program.display()));
    Done::Exit(status)
}

/// What the program's environment gets: the library, and the settings that flags give.
fn variables(directory: &Path, common: &Common) -> Result<Variables, Failure> {
    // All of them are read here, too: so mistakes are told before the program starts.
    common.config()?;
    let mut searched = directory.as_os_str().to_owned();
    if let Some(before) = env::var_os(SEARCHED).filter(|before| !before.is_empty()) {
        searched.push(":");
        searched.push(before);
    }
    let mut all: Variables = vec![(SEARCHED.into(), searched)];
    for (name, value) in common.given() {
        let value = if name == "pcap" { per_process(&value) } else { value };
        all.push((format!("URXE_{}", name.to_uppercase()), value.into()));
    }
    Ok(all)
}

/// The name with the process's id in it: `a.pcapng` is `a-%p.pcapng`.
fn per_process(name: &str) -> String {
    if name.contains("%p") {
        return name.to_owned();
    }
    let path = Path::new(name);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-%p.{}", extension.to_string_lossy()),
        None => format!("{stem}-%p"),
    };
    path.with_file_name(name).to_string_lossy().into_owned()
}

/// Prints the exports.
pub(crate) fn env(args: &EnvArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let directory = library::find(args.library.as_deref())?;
    let mut object = serde_json::Map::new();
    for (name, value) in variables(&directory, &args.common)? {
        let text = value.to_str().ok_or_else(|| {
            format!("{name}={}: it is no UTF-8; choose another directory", value.display())
        })?;
        if args.common.json {
            object.insert(name, text.into());
        } else {
            writeln!(out, "export {name}={}", quoted(text))?;
        }
    }
    if args.common.json {
        writeln!(out, "{}", serde_json::Value::from(object))?;
    }
    Ok(())
}

/// One word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
