use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Died, LOOK, Watch, Watched, first_oops};

#[test]
fn an_oops_is_known_by_its_first_line() {
    let console = "\
[    1.000000] rdma_rxe: loaded
lab: the agent starts
[   12.345678] BUG: unable to handle page fault for address: ffff888000000000
[   12.345679] #PF: supervisor read access in kernel mode
[   12.345680] Oops: Oops: 0000 [#1] PREEMPT SMP NOPTI
[   12.345681] Kernel panic - not syncing: Fatal exception in interrupt
";
    let first = "BUG: unable to handle page fault for address: ffff888000000000";
    assert_eq!(first_oops(console), Some(first));
    for line in [
        "sysrq: Trigger a crash\n[ 9.0] Kernel panic - not syncing: sysrq triggered crash",
        "[ 9.0] Oops: general protection fault, probably for non-canonical address 0x1",
        "[ 9.0] kernel BUG at mm/slub.c:448!",
    ] {
        assert!(first_oops(line).is_some(), "{line}");
    }
}

#[test]
fn a_slow_guest_is_not_dead() {
    for line in [
        "[   40.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [kworker/0:1:9]",
        "[   40.1] BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 31s!",
        "[   40.1] WARNING: CPU: 0 PID: 9 at net/core/dev.c:1",
    ] {
        assert_eq!(first_oops(line), None);
    }
}

fn watch(command: &mut Command, console: &std::path::Path) -> Watch {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    Watch::new(1, console.to_owned(), child)
}

/// A stream with nothing to read, and its other end.
fn silent(watch: &Watch, patience: Duration) -> (Watched, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(LOOK)).unwrap();
    let watched = Watched { stream, watch: Some(watch.clone()), patience };
    (watched, listener.accept().unwrap().0)
}

#[test]
fn a_read_ends_when_the_guest_dies() {
    let console = std::env::temp_dir().join(format!("rxe-lab-watch-{}", std::process::id()));
    std::fs::write(&console, "lab: the agent starts\n").unwrap();
    let lives = watch(&mut Command::new("cat"), &console);
    assert_eq!(lives.died(), None);
    let (mut reads, mut other) = silent(&lives, Duration::from_secs(3600));
    other.write_all(b"x").unwrap();
    assert_eq!(reads.read(&mut [0]).unwrap(), 1);

    std::fs::write(&console, "[ 1.0] Kernel panic - not syncing: a test\n").unwrap();
    let error = reads.read(&mut [0]).unwrap_err();
    let died = error.get_ref().and_then(|inner| inner.downcast_ref::<Died>());
    assert_eq!(died.unwrap().0, "Kernel panic - not syncing: a test");

    // QEMU may end without a word.
    std::fs::write(&console, "").unwrap();
    assert_eq!(lives.died(), None);
    lives.kill();
    assert!(lives.died().unwrap().0.starts_with("QEMU ended"), "{:?}", lives.died());
    std::fs::remove_file(&console).unwrap();
}

#[test]
fn a_silent_guest_is_not_waited_for_without_end() {
    let lives = watch(&mut Command::new("cat"), std::path::Path::new("/nowhere"));
    let (mut reads, _other) = silent(&lives, Duration::ZERO);
    assert_eq!(reads.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::TimedOut);
    lives.kill();
}
