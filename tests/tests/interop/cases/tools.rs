//! The stock tools of the guest with `urxe pingpong`.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;

use crate::bench::{Bench, LOOK, Role};

const ITERS: &str = "100";

/// Whether someone listens on TCP port 18515, by the kernel's tables.
fn listens(tables: &str) -> bool {
    tables.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().unwrap_or_default();
        local.ends_with(":4853") && fields.nth(1) == Some("0A")
    })
}

/// A program that ends with the case.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Its status and all that it wrote.
    fn output(&mut self, bench: &mut Bench) -> (ExitStatus, String) {
        let (mut out, mut err) = (self.0.stdout.take().unwrap(), self.0.stderr.take().unwrap());
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            let read = out.read_to_string(&mut text).and_then(|_| err.read_to_string(&mut text));
            // Nobody listens once the case has failed.
            let _ = tell.send(read.map(|_| text));
        });
        let mut text = None;
        bench.eventually("urxe pingpong to end", |_| {
            text = told.recv_timeout(LOOK).ok();
            text.is_some()
        });
        (self.0.wait().unwrap(), text.unwrap().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, unless the case failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Plays `kind`, of messages of `size` bytes. Who requests is the client.
fn play(bench: &mut Bench, kind: &str, size: u32) {
    let host = bench.column.second_host().to_string();
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
        bench.eventually("the tool to listen", |bench| {
            let mut other = bench.watch.session().unwrap();
            listens(&other.exec("cat /proc/net/tcp /proc/net/tcp6").unwrap().1)
        });
        // The tool's server listens on IPv4 only, whatever its device speaks.
        let mut child = Running::start(ours.arg(rxe_lab::guest_v4(1).to_string()));
        let output = child.output(bench);
        let (status, theirs) = bench.guest.executed(&tool).unwrap();
        (status, theirs, output)
    } else {
        let mut child = Running::start(&mut ours);
        bench.eventually("urxe to listen", |_| {
            let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
            listens(&tables.map(|table| std::fs::read_to_string(table).unwrap()).concat())
        });
        let (status, theirs) = bench.guest.exec(&format!("{tool} {host}")).unwrap();
        (status, theirs, child.output(bench))
    };
    let (ended, text) = output;
    assert_eq!(status, 0, "{tool}: {theirs}; urxe: {text}");
    assert!(theirs.contains(&format!("{ITERS} iters")), "{tool}: {theirs}");
    assert!(ended.success(), "urxe pingpong: {text}; {tool}: {theirs}");
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
