use std::net::IpAddr;

use urxe::{Config, Context, Error, PortCaps, PortKind, PortStatsSnapshot};

use super::checks::{self, Holders};
use super::report::{Check, Report};
use super::trial::{self, Seen};
use crate::command::Done;
use crate::dissect::Palette;
use crate::host::{Holder, Owners, RdmaDevice};

/// What the checks look like, and how the whole ends.
fn shown(json: bool, checks: Vec<Check>) -> (String, Done) {
    let mut out = Vec::new();
    let mut report = Report::new(json, Palette::PLAIN, &mut out);
    for check in checks {
        report.add(check).unwrap();
    }
    let done = report.end().unwrap();
    (String::from_utf8(out).unwrap(), done)
}

fn text(checks: Vec<Check>) -> String {
    shown(false, checks).0
}

#[test]
fn settings_are_read_and_misspelt_ones_named() {
    let set = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|&(name, value)| (name.into(), value.into())).collect()
    };
    let wrong = Config::default().set("MTU", "5").unwrap_err();
    insta::assert_snapshot!(text(vec![
        checks::settings_of(&[], None),
        checks::settings_of(&set(&[("URXE_MTU", "512"), ("URXE_LOG", "info")]), None),
        checks::settings_of(&set(&[("URXE_ADRR", "1"), ("URXE_TRACE", "on")]), None),
        checks::settings_of(&set(&[("URXE_MTU", "5")]), Some(wrong)),
    ]));
}

fn holders(addresses: &[&str], hidden: bool) -> Holders {
    let holder =
        |(inode, address): (u64, &&str)| Holder { address: address.parse().unwrap(), inode };
    let sockets = (1..).zip(addresses).map(holder).collect();
    let of = [(1, ("ping".to_owned(), 77))].into();
    Holders { sockets, owners: Owners { of, hidden }, shared: Vec::new() }
}

#[test]
fn who_has_the_port_is_named_and_what_hides_it() {
    insta::assert_snapshot!(text(vec![
        checks::port_4791(&Holders::default(), false),
        checks::port_4791(&holders(&["127.0.0.1", "fd00::2"], false), false),
        checks::port_4791(&holders(&["127.0.0.1"], false), true),
        checks::port_4791(&holders(&["127.0.0.1", "0.0.0.0"], true), true),
    ]));
}

#[test]
fn rdma_in_the_way_is_told_of() {
    let of = |name: &str, interface: Option<&str>, software| RdmaDevice {
        name: name.into(),
        interface: interface.map(Into::into),
        software,
    };
    let none = checks::rdma_of(false, &[]);
    let idle = checks::rdma_of(true, &[]);
    let devices = [of("mlx5_0", Some("eth7"), false), of("rxe0", Some("eth1"), true)];
    let both = checks::rdma_of(true, &devices);
    insta::assert_snapshot!(text([none, idle, both].concat()));
}

#[test]
fn limits_of_the_host_are_held_against_what_is_needed() {
    let raw = PortKind::Raw("eth0".into());
    let rmem = "net.core.rmem_max";
    insta::assert_snapshot!(text(vec![
        checks::mtu("lo", 65536),
        checks::mtu("eth0", 1112),
        checks::mtu("eth0", 1111),
        checks::buffers_of(rmem, Some(212_992), false),
        checks::buffers_of(rmem, Some(4 << 20), false),
        checks::buffers_of(rmem, Some(1), true),
        checks::buffers_of(rmem, None, false),
        checks::raw_rights_of(false, &PortKind::Udp),
        checks::raw_rights_of(true, &raw),
        checks::raw_rights_of(false, &raw),
        checks::descriptors_of(None, Some((5, 13))),
        checks::descriptors_of(Some(1024), None),
        checks::descriptors_of(Some(37), Some((5, 13))),
        checks::descriptors_of(Some(36), Some((5, 13))),
    ]));
}

#[test]
fn an_address_that_cannot_be_had_is_a_problem() {
    let [.., c, d] = std::process::id().to_be_bytes();
    let own = format!("127.{}.{}.61", c.clamp(1, 254), d.clamp(1, 254));
    let open = |addr: &str| {
        let mut config = Config::default();
        config.set("addr", addr).unwrap();
        checks::address(&Context::open(&config))
    };
    let down: Result<Context, Error> =
        Err(urxe::PortError::NotOurs(IpAddr::from([127, 0, 0, 1])).into());
    let told = text(vec![open(&own), open("192.0.2.77"), checks::address(&down)]);
    insta::assert_snapshot!(told.replace(&own, "OWN"));
}

fn caps(gso: bool, gro: bool) -> PortCaps {
    let config = Config { gso: Some(gso), ..Config::default() };
    let context = Context::open(&config).unwrap();
    PortCaps { gso, gro, ..context.port_caps().clone() }
}

#[test]
fn offloads_are_judged_by_what_was_seen() {
    let seen = |packets, calls, runs| Seen {
        sent: PortStatsSnapshot { tx_packets: packets, tx_calls: calls, ..Default::default() },
        came: PortStatsSnapshot { rx_packets: packets, rx_runs: runs, ..Default::default() },
        ..Seen::default()
    };
    let both = caps(true, true);
    let all = [
        checks::offload(&both, &seen(16, 2, 2)),
        checks::offload(&both, &seen(16, 16, 16)),
        checks::offload(&both, &seen(16, 2, 16)),
        checks::offload(&caps(false, false), &seen(16, 16, 16)),
    ];
    insta::assert_snapshot!(text(all.concat()));
}

#[test]
fn a_problem_is_found_and_a_warning_is_none() {
    let warning = || Check::warning("b", "so so", "do that");
    let problem = || Check::problem("c", "bad", "do this");
    assert_eq!(shown(false, vec![Check::ok("a", "good"), warning()]).1, Done::Well);
    let (text, done) = shown(true, vec![Check::ok("a", "good"), warning(), problem()]);
    assert_eq!(done, Done::Found);
    insta::assert_snapshot!(text);
}

#[test]
fn the_trial_sends_between_devices_and_within_one() {
    for addr in ["auto", "::1"] {
        let mut config = Config::default();
        config.set("addr", addr).unwrap();
        let Ok(context) = Context::open(&config) else {
            assert_eq!(addr, "::1", "a host may have no IPv6, and others may have its ::1");
            continue;
        };
        let seen = trial::run(&config, &context).unwrap();
        let from = context.address();
        assert!(seen.to_string().starts_with(&format!("RC SEND of 65536 bytes, {from} to ")));
        assert_eq!(seen.from == seen.to, addr == "::1", "{seen}");
        assert!(seen.sent.tx_packets >= 16 && seen.came.rx_packets >= 16, "{seen:?}");
    }
}

/// Where all packets are lost the trial ends by itself, and says what the NIC counted.
#[test]
fn a_trial_that_loses_all_fails() {
    let config = Config { faults: "loss=100%".into(), ..Config::default() };
    let context = Context::open(&config).unwrap();
    let why = trial::run(&config, &context).unwrap_err();
    assert!(why.starts_with("the send: request 2 (Send) of QP "), "{why}");
}
