//! `urxe pingpong`: two processes that play, and peers that do not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Output, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;

use crate::program::{err, one_line, out, refused, urxe};

/// A server that waits, and says where. It is ended if its test fails.
struct Server {
    child: Option<Child>,
    /// Reads on, for a server whose errors nobody reads would stop at a full pipe.
    errors: Option<JoinHandle<Vec<u8>>>,
    port: String,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let mut command = urxe(&["pingpong", "--tcp-port", "0"]);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let errors = std::thread::spawn(move || {
            let mut rest = Vec::new();
            stderr.read_to_end(&mut rest).unwrap();
            rest
        });
        let port = line.strip_prefix("waiting on TCP port ").unwrap_or_else(|| panic!("{line}"));
        Self { child: Some(child), errors: Some(errors), port: port.trim().to_owned() }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port.parse().unwrap())).unwrap()
    }

    /// What it ended with; its standard error without the first line.
    fn end(mut self) -> Output {
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        Output { stderr: self.errors.take().unwrap().join().unwrap(), ..output }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Both sides of a game, server first.
fn play(transport: &str, args: &[&str]) -> [Output; 2] {
    let args = [&[transport, "--json"], args].concat();
    let server = Server::start(&args);
    let mut client = urxe(&["pingpong", "--tcp-port", &server.port]);
    let client = client.args(&args).arg("127.0.0.1").output().unwrap();
    [server.end(), client]
}

/// Plays, and both sides end well with a report of as many bytes as were to be sent.
fn plays(transport: &str, size: u64, iters: u64, more: &[&str]) {
    let (size_arg, iters_arg) = (size.to_string(), iters.to_string());
    let args = [&["--size", &size_arg, "--iters", &iters_arg], more].concat();
    for output in play(transport, &args) {
        let errors = err(&output);
        assert_eq!(output.status.code(), Some(0), "{transport} {args:?}: {errors}");
        let report: Value = serde_json::from_str(&out(&output)).unwrap();
        assert_eq!(report["bytes"], size * iters * 2, "{transport} {args:?}");
        assert_eq!(report["iters"], iters);
        assert!(report["micros_per_iter"].as_f64().unwrap() > 0.0, "{report}");
    }
}

#[test]
fn rc_plays_with_messages_of_any_size() {
    for size in [1, 1000, 4096, 65536] {
        plays("rc", size, 30, &[]);
        plays("rc", size, 30, &["--events"]);
    }
    plays("rc", 65536, 10, &["--mtu", "256"]);
}

#[test]
fn uc_and_ud_play() {
    for transport in ["uc", "ud"] {
        plays(transport, 1000, 30, &[]);
        plays(transport, 1000, 30, &["--events"]);
    }
    plays("uc", 65536, 10, &[]);
}

/// More exchanges than receives are posted at a time.
#[test]
fn receives_are_posted_anew() {
    plays("rc", 64, 40, &["--rx-depth", "2"]);
    plays("rc", 64, 10, &["--rx-depth", "1", "--events"]);
}

/// Where the answer to a side's last message is lost, that message comes again: had the other side
/// left, it would have no answer any more. Games are played until that has happened three times.
#[test]
fn nobody_leaves_while_the_other_side_needs_an_answer() {
    let mut needed = 0;
    for seed in (21..121).map(|seed: u32| seed.to_string()) {
        let args = ["-s", "64", "-n", "3", "--loss", "12%", "--trace", "--seed", &seed];
        let sides = play("rc", &args);
        for output in &sides {
            assert_eq!(output.status.code(), Some(0), "seed {seed}: {}", err(output));
        }
        needed += sides.iter().filter(|output| its_last_message_came_again(&err(output))).count();
        if needed >= 3 {
            return;
        }
    }
    panic!("of 100 games only {needed} lost the answer to a last message");
}

/// Whether a trace has the last message that came to its side more than once.
fn its_last_message_came_again(trace: &str) -> bool {
    let came =
        trace.lines().filter(|line| line.starts_with("in ") && line.contains("RC_SEND_ONLY"));
    let psns: Vec<_> =
        came.filter_map(|line| line.split("psn ").nth(1)?.split(' ').next()).collect();
    let mut new = psns.iter().enumerate().filter(|(nth, psn)| !psns[..*nth].contains(psn));
    let last = new.next_back().map(|(_, psn)| psn);
    psns.iter().filter(|psn| Some(*psn) == last).count() > 1
}

/// What is lost is sent again.
#[test]
fn rc_plays_over_a_link_that_loses_packets() {
    let args = ["--size", "4096", "--iters", "40", "--loss", "5%", "--seed", "7", "--trace"];
    let [server, client] = play("rc", &args);
    assert_eq!(server.status.code(), Some(0), "{}", err(&server));
    assert_eq!(client.status.code(), Some(0), "{}", err(&client));
    let traces = err(&server) + &err(&client);
    assert!(traces.contains("sent again: "), "{traces}");
}

#[test]
fn text_says_who_and_how_fast() {
    let server = Server::start(&["rc", "-n", "5"]);
    let mut client = urxe(&["pingpong", "rc", "127.0.0.1", "-n", "5"]);
    let client = client.args(["--tcp-port", &server.port]).output().unwrap();
    for output in [server.end(), client] {
        let text = out(&output);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}{}", err(&output));
        assert!(lines[0].starts_with("   local address:  QPN 0x000002, PSN 0x"), "{text}");
        assert!(lines[1].starts_with("  remote address:  QPN 0x000002, PSN 0x"), "{text}");
        assert!(
            lines[2].starts_with("40960 bytes in ") && lines[2].ends_with(" Mbit/sec"),
            "{text}"
        );
        assert!(lines[3].starts_with("5 iters in ") && lines[3].ends_with(" usec/iter"), "{text}");
    }
}

#[test]
fn nobody_there() {
    // Longer than a name may be, so that nobody is asked for it.
    let name = "x".repeat(300);
    let line = refused(&["pingpong", "rc", &name]);
    assert!(
        line.contains("give a name or an address of the host where the server waits"),
        "{line}"
    );
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = gone.local_addr().unwrap().port().to_string();
    drop(gone);
    let line = refused(&["pingpong", "rc", "127.0.0.1", "--tcp-port", &port]);
    let wanted = format!("127.0.0.1, TCP port {port}: Connection refused; is a pingpong server");
    assert!(line.contains(&wanted), "{line}");
}

#[test]
fn a_tcp_port_that_is_taken() {
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let line = refused(&["pingpong", "ud", "--size", "100", "--tcp-port", &port]);
    assert!(
        line.contains(&format!("cannot wait on TCP port {port}: Address already in use")),
        "{line}"
    );
    assert!(line.contains("give another by --tcp-port"), "{line}");
}

/// What a client that was told this by its server ends with; the server stays or goes.
fn client_told(by_server: &'static [u8], stays: bool, transport: &str, more: &[&str]) -> Output {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = [0; 52];
        if stream.read_exact(&mut line).is_err() {
            return (None, line);
        }
        stream.write_all(by_server).unwrap();
        (stays.then_some(stream), line)
    });
    let port = address.port().to_string();
    let mut command = urxe(&["pingpong", transport, "127.0.0.1", "--json", "--tcp-port", &port]);
    let output = command.args(more).output().unwrap();
    // Where the client never came, this is whom the server waits for.
    drop(TcpStream::connect(address));
    let (_stream, line) = server.join().unwrap();
    assert!(line.starts_with(b"0000:000002:"), "{}: {}", line.escape_ascii(), err(&output));
    output
}

/// What a server that was told this by its client ends with; the client stays or goes.
fn server_told(by_client: &[u8], stays: bool, more: &[&str]) -> Output {
    let server = Server::start(more);
    let mut stream = server.connect();
    stream.write_all(by_client).unwrap();
    let stays = stays.then_some(stream);
    let output = server.end();
    drop(stays);
    output
}

const GARBAGE: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
/// A peer at an address where nobody is.
const NOBODY: &[u8] = b"0000:000011:abcdef:00000000000000000000ffff7f3e0063\0";
const NO_GID: &[u8] = b"0000:000011:abcdef:00000000000000000000000000000000\0";

#[test]
fn a_peer_that_speaks_something_else() {
    let wanted = "the peer sent `HTTP/1.1 400 Bad Request\\r\\n";
    for output in [client_told(GARBAGE, true, "rc", &[]), server_told(GARBAGE, true, &["rc"])] {
        let line = one_line(&output, "garbage");
        assert!(line.contains(wanted) && line.contains("wanted LID:QPN:PSN:GID"), "{line}");
    }
    let line = one_line(&server_told(b"0000:00", false, &["uc"]), "a part");
    assert!(line.contains("the peer sent `0000:00`; wanted"), "{line}");
    let line = one_line(&client_told(NO_GID, true, "rc", &[]), "no GID");
    assert!(line.contains("the peer sent no GID; start it with -g"), "{line}");
}

#[test]
fn a_peer_that_hangs_up() {
    for output in [client_told(b"", false, "rc", &[]), server_told(b"", false, &["rc"])] {
        let line = one_line(&output, "hangs up");
        assert!(line.contains("the peer hung up before it said who it is"), "{line}");
    }
}

#[test]
fn a_peer_that_says_nothing() {
    for output in [
        client_told(b"0000", true, "rc", &["--timeout", "1"]),
        server_told(b"0000", true, &["rc", "--timeout", "1"]),
    ] {
        let line = one_line(&output, "says little");
        assert!(line.contains("the peer said nothing for 1 s"), "{line}");
        assert!(line.contains("--timeout waits longer"), "{line}");
    }
}

/// The peer is known, but no packet is answered: RC runs out of retries, UD of patience.
#[test]
fn a_peer_that_does_not_play() {
    let line = one_line(&client_told(NOBODY, true, "rc", &[]), "rc");
    assert!(line.contains("request 2 (Send)") && line.contains("after all retries"), "{line}");
    let line = one_line(&client_told(NOBODY, true, "ud", &["-s", "100", "--timeout", "1"]), "ud");
    assert!(line.contains("no completion within 1 s; counters: tx_packets 1"), "{line}");
    let more = ["-s", "100", "--timeout", "1", "--events"];
    let line = one_line(&client_told(NOBODY, true, "ud", &more), "ud events");
    assert!(line.contains("no completion within 1 s; counters: tx_packets 1"), "{line}");
}

/// Neither side can know the other's path MTU, but both can say what to compare.
#[test]
fn path_mtus_that_differ() {
    for (its, ours) in [("512", "2048"), ("2048", "512")] {
        let server = Server::start(&["rc", "--mtu", its]);
        let mut client = urxe(&["pingpong", "rc", "127.0.0.1", "--tcp-port", &server.port]);
        let client = client.args(["--json", "--mtu", ours]).output().unwrap();
        for (output, mtu) in [(server.end(), its), (client, ours)] {
            assert_eq!(output.status.code(), Some(2));
            let said = err(&output);
            let wanted = format!("is --mtu the same at both ends? the path MTU is {mtu} here");
            assert!(said.contains(&wanted), "{said}");
        }
    }
    let server = Server::start(&["uc", "--mtu", "512", "--timeout", "1"]);
    let mut client = urxe(&["pingpong", "uc", "127.0.0.1", "--tcp-port", &server.port]);
    client.args(["--mtu", "2048", "--timeout", "1"]).output().unwrap();
    let said = err(&server.end());
    assert!(said.contains("is --mtu the same at both ends? the path MTU is 512 here"), "{said}");
}

#[test]
fn what_cannot_be_played() {
    let line = refused(&["pingpong", "ud", "--size", "5000", "--mtu", "1024"]);
    assert!(line.contains("a datagram holds at most 1024 bytes here, not 5000"), "{line}");
    for bad in [
        &["--size=0"][..],
        &["--size=2147483649"],
        &["--iters=0"],
        &["--rx-depth=0"],
        &["--rx-depth=16384"],
        &["--timeout=0"],
        &["--tcp-port=65536"],
    ] {
        let output = urxe(&["pingpong", "rc"]).args(bad).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{bad:?}");
        assert!(err(&output).starts_with("error: invalid value"), "{bad:?}: {}", err(&output));
    }
}
