//! What a process leaves for `urxe run --report`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};

use ibverbs::layout::*;
use serde_json::Value;

use super::library::*;
use super::pair::*;
use super::process::*;

const SEND: i32 = 2;
const DATAGRAMS: u64 = 10;

/// Sends datagrams: nothing answers them, so it is known how many packets there are.
fn send(rig: &Rig) {
    let [one, two] = rig.pair(UD);
    let mut way = rig.way();
    let ah = ibv_create_ah(rig.pd, &raw mut way);
    let wr = WrTarget { ud: WrUd { ah, remote_qpn: read(two).qp_num, remote_qkey: 0x1234 } };
    let mut hello = [rig.sge(0, 8)];
    for id in 0..DATAGRAMS {
        assert_eq!(post_recv(two, id, &mut [rig.sge(64, 64)]), 0);
        let mut wrs = [IbvSendWr { wr, ..send_wr(id, SEND, &mut hello) }];
        assert_eq!(post_send(one, &mut wrs), (0, None));
        assert!(rig.wait(2).iter().all(|wc| wc.status == 0));
    }
    assert_eq!(ibv_destroy_ah(ah), 0);
    assert_eq!((ibv_destroy_qp(one), ibv_destroy_qp(two)), (0, 0));
}

/// A new directory, and the report of a process that ran a test in a role with it.
fn reported(test: &str, role: &str, beside: Option<&str>) -> (PathBuf, Value) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{role}"));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir(&directory).unwrap();
    if let Some(name) = beside {
        fs::write(directory.join(name), "mine").unwrap();
    }
    let report = [("URXE_REPORT", directory.join("report.%p"))];
    assert!(as_another_process_with(test, role, &report).success());
    let files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|f| !f.ends_with("report.new")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let report = serde_json::from_slice(&fs::read(&files[0]).unwrap()).unwrap();
    (directory, report)
}

#[test]
fn what_comes_after_a_dot_of_its_name_is_kept() {
    if role().is_some() {
        let rig = Rig::new();
        send(&rig);
        return rig.close();
    }
    let test = "report::what_comes_after_a_dot_of_its_name_is_kept";
    let (directory, report) = reported(test, "dot", Some("report.new"));
    assert_eq!(fs::read(directory.join("report.new")).unwrap(), b"mine", "another's file");
    assert_eq!(report["engine"]["tx_packets"], DATAGRAMS);
    assert_eq!(report["ended"], true);
}

/// What a destructor of the program closes.
static OPEN: AtomicPtr<IbvContext> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn close_late() {
    let _ = ibv_close_device(OPEN.load(Ordering::SeqCst));
}

#[test]
fn a_device_that_is_closed_while_the_process_exits_counts_once() {
    if role().is_some() {
        // Handlers run in the reverse order: this one after the library's.
        // SAFETY: the function is there until the end.
        assert_eq!(unsafe { libc::atexit(close_late) }, 0);
        let rig = Rig::new();
        send(&rig);
        OPEN.store(rig.context, Ordering::SeqCst);
        std::process::exit(0);
    }
    let test = "report::a_device_that_is_closed_while_the_process_exits_counts_once";
    let (_, report) = reported(test, "late", None);
    assert_eq!(report["engine"]["tx_packets"], DATAGRAMS);
}

#[test]
fn devices_that_were_closed_and_opened_again_count_together() {
    if role().is_some() {
        for _ in 0..2 {
            let rig = Rig::new();
            send(&rig);
            rig.close();
        }
        let rig = Rig::new();
        send(&rig);
        std::process::exit(0);
    }
    let test = "report::devices_that_were_closed_and_opened_again_count_together";
    let (_, report) = reported(test, "again", None);
    assert_eq!(report["engine"]["tx_packets"], 3 * DATAGRAMS);
}
