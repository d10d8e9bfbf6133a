//! Debian's programs as they are, as two processes (packages rdmacm-utils, perftest); with
//! `URXE_REQUIRE_PROGRAMS=1` they must be there.

use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::library::directory;

/// Longer than any of these takes, by far: who is not done then hangs.
const HANGS: Duration = Duration::from_secs(120);

/// What is common to both sides: addresses of loopback that no other test has.
struct Sides {
    net: [u8; 2],
}

impl Sides {
    fn of(test: u8) -> Self {
        let [low, high, ..] = std::process::id().to_le_bytes();
        Self { net: [low.wrapping_add(test.wrapping_mul(31)), high | 0x40] }
    }

    fn server(&self) -> String {
        format!("127.{}.{}.1", self.net[1], self.net[0])
    }

    /// The program on the libraries, with an address of its own.
    fn command(&self, words: &str, last: u8) -> Command {
        let mut words = words.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words.filter(|word| !word.is_empty()));
        let address = format!("127.{}.{}.{last}", self.net[1], self.net[0]);
        command.env("LD_LIBRARY_PATH", directory()).env("URXE_ADDR", address);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Starts a program; `None` where it is not installed and need not be.
fn start(command: &mut Command) -> Option<Child> {
    match command.spawn() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let required = std::env::var("URXE_REQUIRE_PROGRAMS").is_ok_and(|v| v == "1");
            assert!(!required, "URXE_REQUIRE_PROGRAMS=1, but {command:?} is not installed");
            eprintln!("skipped: {command:?} is not installed");
            None
        }
        child => Some(child.unwrap()),
    }
}

/// Its output, once it has ended.
fn ended(child: Child, what: &str) -> Output {
    let id = libc::pid_t::try_from(child.id()).unwrap();
    let (tell, told) = mpsc::channel();
    let waits = std::thread::spawn(move || tell.send(child.wait_with_output().unwrap()));
    told.recv_timeout(HANGS).unwrap_or_else(|_| {
        // SAFETY: a child of ours that nobody has waited for yet.
        unsafe { libc::kill(id, libc::SIGKILL) };
        let ended = waits.join();
        panic!("{what} hangs: {:?}", told.try_recv().map(|out| text(&out)).or(Err(ended.is_ok())));
    })
}

fn text(out: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    format!("{out}{err}")
}

/// Whether the server of a program ends by itself.
#[derive(PartialEq)]
enum Server {
    Ends,
    Stays,
}

/// Runs both sides; the client again while the server does not listen yet.
fn both(test: u8, server: &str, client: &str, kind: &Server) -> Option<[Output; 2]> {
    let sides = Sides::of(test);
    let (server, client) =
        (server.replace("SERVER", &sides.server()), client.replace("SERVER", &sides.server()));
    let mut listens = start(&mut sides.command(&server, 1))?;
    let begun = Instant::now();
    loop {
        let child = start(&mut sides.command(&client, 2))?;
        let done = ended(child, &client);
        if done.status.success() {
            if *kind == Server::Stays {
                listens.kill().unwrap();
            }
            return Some([ended(listens, &server), done]);
        }
        let over = listens.try_wait().unwrap();
        if over.is_some() || begun.elapsed() > HANGS {
            let _ = listens.kill();
            let server = listens.wait_with_output().unwrap();
            panic!("client: {}\nserver: {}", text(&done), text(&server));
        }
    }
}

/// Both must end well, and say this.
fn well(test: u8, server: &str, client: &str, says: [&str; 2]) {
    let Some(outs) = both(test, server, client, &Server::Ends) else { return };
    for (out, wanted) in outs.iter().zip(says) {
        let text = text(out);
        assert!(out.status.success() && text.contains(wanted), "no {wanted} in {text}");
        assert!(!text.contains("urxe:"), "{text}");
    }
}

#[test]
fn rping() {
    well(
        1,
        "rping -s -a SERVER -C 5 -v",
        "rping -c -a SERVER -C 5 -v",
        ["server ping data: rdma-ping-4: ", "ping data: rdma-ping-4: "],
    );
}

#[test]
fn rping_with_a_server_of_any_address() {
    well(2, "rping -s -C 2 -v", "rping -c -a SERVER -C 2 -v", ["rdma-ping-1", "rdma-ping-1"]);
}

#[test]
fn ucmatose_with_64_connections() {
    let done = ["return status 0"; 2];
    well(3, "ucmatose -c 64", "ucmatose -c 64 -s SERVER", done);
    well(4, "ucmatose -c 4 -m -t 8", "ucmatose -c 4 -m -t 8 -s SERVER", done);
}

#[test]
fn udaddy_with_several_services() {
    well(5, "udaddy -c 8 -C 20", "udaddy -c 8 -C 20 -s SERVER", ["return status 0"; 2]);
}

#[test]
fn rdma_server_and_client_without_channels() {
    well(6, "rdma_server", "rdma_client -s SERVER", ["rdma_server: end 0", "rdma_client: end 0"]);
}

#[test]
fn rdma_xserver_over_rc_and_xrc() {
    let done = ["rdma_xserver: end 0", "rdma_xclient: end 0"];
    well(7, "rdma_xserver -c r", "rdma_xclient -c r -s SERVER", done);
    well(8, "rdma_xserver -c x", "rdma_xclient -c x -s SERVER", done);
}

#[test]
fn cmtime_times_every_step() {
    let Some([_, client]) = both(9, "cmtime -c 50", "cmtime -c 50 -s SERVER", &Server::Stays)
    else {
        return;
    };
    let text = text(&client);
    for step in ["resolve addr :", "connect      :", "disconnect   :", "destroy      :"] {
        assert!(text.contains(step), "no {step} in {text}");
    }
}
