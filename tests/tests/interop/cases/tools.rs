//! The stock tools of the guest with `urxe pingpong`.

use std::process::Command;

use crate::bench::{Bench, Role};

const ITERS: &str = "100";

/// Whether someone listens on TCP port 18515, by the kernel's tables.
fn listens(tables: &str) -> bool {
    tables.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().unwrap_or_default();
        local.ends_with(":4853") && fields.nth(1) == Some("0A")
    })
}

/// Plays `kind`, of messages of `size` bytes. Who requests is the client.
fn play(bench: &mut Bench, kind: &str, size: u32) {
    let (host, guest) = (bench.column.second_host().to_string(), bench.column.guest().to_string());
    // rxe's GIDs: the link-local one, the IPv4 one, the IPv6 one.
    let gid = if bench.column.v6 { 2 } else { 1 };
    let port = "18515";
    let tool =
        format!("timeout 100 ibv_{kind}_pingpong -p {port} -g {gid} -s {size} -n {ITERS} -r 100");
    let mut ours = Command::new(std::env::current_exe().unwrap());
    ours.env(crate::BE_URXE, "1").args(["pingpong", kind, "--addr", &host, "--tcp-port", port]);
    ours.args(["-s", &size.to_string(), "-n", ITERS, "-r", "100", "--timeout", "60"]);
    if bench.column.raw {
        ours.args(["--port", &format!("raw:{}", rxe_lab::BRIDGE)]);
    }
    let (status, theirs, output) = if bench.column.role == Role::Urxe {
        bench.guest.begin(&format!("exec {tool}")).unwrap();
        // It listens once it has made its QP.
        bench.eventually("the tool to listen", |_| {
            let mut other = rxe_lab::Lab::session(1).unwrap();
            listens(&other.exec("cat /proc/net/tcp /proc/net/tcp6").unwrap().1)
        });
        let output = ours.arg(guest).output().unwrap();
        let (status, theirs) = bench.guest.executed(&tool).unwrap();
        (status, theirs, output)
    } else {
        let child = ours.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let child = child.spawn().unwrap();
        bench.eventually("urxe to listen", |_| {
            let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
            listens(&tables.map(|table| std::fs::read_to_string(table).unwrap()).concat())
        });
        let (status, theirs) = bench.guest.exec(&format!("{tool} {host}")).unwrap();
        (status, theirs, child.wait_with_output().unwrap())
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert_eq!(status, 0, "{tool}: {theirs}; urxe: {text}");
    assert!(theirs.contains(&format!("{ITERS} iters")), "{tool}: {theirs}");
    assert!(output.status.success(), "urxe pingpong: {text}; {tool}: {theirs}");
}

pub fn rc(bench: &mut Bench) {
    play(bench, "rc", 4096);
}

pub fn uc(bench: &mut Bench) {
    play(bench, "uc", 4096);
}

pub fn ud(bench: &mut Bench) {
    play(bench, "ud", 1024);
}
