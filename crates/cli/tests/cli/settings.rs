//! docs/settings.md has every setting that there is.

use clap::CommandFactory;
use urxe::Config;
use urxe_cli::cli::Cli;

const PAGE: &str = include_str!("../../../../docs/settings.md");

/// The rows of the page's tables that begin with this cell.
fn rows(first: &str) -> usize {
    PAGE.lines().filter(|line| line.starts_with(&format!("| `{first}` |"))).count()
}

/// `devinfo` has nothing but the common flags.
#[test]
fn every_common_flag_has_its_row_and_its_variable() {
    let command = Cli::command();
    let devinfo = command.find_subcommand("devinfo").unwrap();
    let mut flags = 0;
    for flag in devinfo.get_arguments().filter(|arg| !arg.is_global_set()) {
        let long = flag.get_long().unwrap();
        let help = flag.get_help().unwrap().to_string();
        assert_eq!(rows(&format!("--{long}")), 1, "--{long} in docs/settings.md");
        if long == "json" {
            continue;
        }
        let variable = format!("URXE_{}", long.replace('-', "_").to_uppercase());
        assert!(help.contains(&format!("[env: {variable}]")), "--{long}: {help}");
        let row = format!("| `--{long}` | `{variable}` |");
        assert!(PAGE.contains(&row), "{row} in docs/settings.md");
        flags += 1;
    }
    // Each of them is a device's setting.
    assert_eq!(flags, Config::NAMES.len());
}

#[test]
fn every_setting_of_a_device_is_on_the_page() {
    for name in Config::NAMES {
        let variable = format!("`URXE_{}`", name.to_uppercase());
        assert!(PAGE.contains(&variable), "{variable} in docs/settings.md");
    }
    assert!(PAGE.contains("`URXE_LOG`"));
}

/// What only `urxe run` has is on its own page.
#[test]
fn every_flag_of_run_is_on_its_page() {
    let page = include_str!("../../../../docs/run.md");
    let command = Cli::command();
    let common = command.find_subcommand("devinfo").unwrap();
    let common: Vec<_> = common.get_arguments().map(clap::Arg::get_id).collect();
    let run = command.find_subcommand("run").unwrap();
    let own = run.get_arguments().filter(|arg| !common.contains(&arg.get_id()));
    let flags: Vec<_> = own.filter_map(|arg| arg.get_long()).collect();
    assert_eq!(flags.len(), 3);
    for flag in flags {
        assert!(page.contains(&format!("| `--{flag}` |")), "--{flag} in docs/run.md");
    }
    for name in ["URXE_LIBRARY", "URXE_REPORT", "URXE_WC_SL"] {
        assert!(page.contains(&format!("`{name}`")), "{name} in docs/run.md");
    }
}
