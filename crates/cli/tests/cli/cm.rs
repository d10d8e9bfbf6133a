//! `urxe cm`: two processes that connect, and attempts that come to nothing.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use crate::program::{err, out, refused, run, urxe};

/// A listener, and the lines that it says.
struct Listener {
    child: Child,
    lines: BufReader<ChildStdout>,
    at: String,
}

impl Listener {
    fn start(args: &[&str]) -> Self {
        let mut command = urxe(&["cm", "listen", "0", "--json"]);
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let first: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(first["event"], "listening");
        let at = first["text"].as_str().unwrap().strip_prefix("at ").unwrap().to_owned();
        Self { child, lines, at }
    }

    /// What else it said until it ended well.
    fn end(mut self) -> Vec<Value> {
        let lines = self.lines.by_ref().lines();
        let said = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        said
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The messages, each with whether it was sent; doubles left out.
fn messages(said: &[Value]) -> Vec<(String, bool)> {
    let of = |line: &Value| {
        let name = line["cm"]["message_name"].as_str()?.to_owned();
        (line["again"] == false).then(|| (name, line["sent"].as_bool().unwrap()))
    };
    said.iter().filter_map(of).collect()
}

fn events(said: &[Value]) -> Vec<&str> {
    said.iter().filter_map(|line| line["event"].as_str()).collect()
}

#[test]
fn both_sides_see_every_message_of_a_connection() {
    let listener = Listener::start(&["-n", "1", "--say", "welcome"]);
    let args = ["cm", "connect", &listener.at, "--json", "--say", "hello", "--message", "a word"];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let near = json(&out(&output));
    let far = listener.end();
    let life = ["REQ", "REP", "RTU", "DREQ", "DREP"];
    let ours = [true, false, true, true, false];
    let wanted: Vec<_> = life.iter().map(|&name| name.to_owned()).zip(ours).collect();
    assert_eq!(messages(&near), wanted);
    let wanted: Vec<_> = wanted.into_iter().map(|(name, sent)| (name, !sent)).collect();
    assert_eq!(messages(&far), wanted);
    assert_eq!(events(&near), ["device", "established", "sent", "closed"]);
    let mut heard = events(&far);
    heard.sort_unstable();
    assert_eq!(heard, ["closed", "established", "message", "request"]);
    let word = far.iter().find(|line| line["event"] == "message").unwrap();
    assert_eq!(word["text"], "of 6 bytes: “a word”");
    let said = |of: &[Value], what: &str| {
        of.iter().any(|line| line["text"].as_str().unwrap().contains(what))
    };
    assert!(said(&near, "private data: “welcome”") && said(&far, "private data: “hello”"));
}

#[test]
fn lines_explain_each_message() {
    let listener = Listener::start(&["-n", "1"]);
    let output = run(&["cm", "connect", &listener.at]);
    let text = out(&output);
    listener.end();
    for part in [
        "CM REQ  local 0x",
        "We ask for RC between its QP 0x",
        "The peer accepts with QP 0x",
        "We say that the QP is ready: the connection stands.",
        "established QP 0x",
        "We end the connection of QP 0x",
        "The peer agrees, and has ended it, too.",
        "closed by us",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_refusal_is_shown_with_its_reason_and_is_status_1() {
    let listener = Listener::start(&["-n", "1", "--reject", "--say", "not today"]);
    let output = run(&["cm", "connect", &listener.at]);
    assert_eq!(output.status.code(), Some(1));
    let text = out(&output);
    assert!(text.contains("The peer refuses: ") && text.contains("“not today”"), "{text}");
    let far = listener.end();
    assert_eq!(messages(&far), [("REQ".to_owned(), false), ("REJ".to_owned(), true)]);
}

#[test]
fn a_listener_that_thinks_asks_for_patience() {
    let listener = Listener::start(&["-n", "1", "--think", "50ms"]);
    let output = run(&["cm", "connect", &listener.at, "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let mut seen = messages(&json(&out(&output)));
    seen.truncate(3);
    let names: Vec<_> = seen.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["REQ", "MRA", "REP"]);
    listener.end();
}

#[test]
fn a_datagram_service_tells_its_qp() {
    let listener = Listener::start(&["-n", "1", "--transport", "ud"]);
    let output = run(&["cm", "connect", &listener.at, "--transport", "ud", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let near = json(&out(&output));
    let wanted = [("SIDR_REQ".to_owned(), true), ("SIDR_REP".to_owned(), false)];
    assert_eq!(messages(&near), wanted);
    let told = near.last().unwrap();
    assert!(told["text"].as_str().unwrap().contains("Q_Key 0x1234567"), "{told}");
    listener.end();
}

/// The other device has no connection manager: nobody answers, as often as was asked.
#[test]
fn who_does_not_answer_is_told_of_after_the_retries_that_were_asked_for() {
    let mut args = vec!["cm", "connect", "127.0.0.254:9", "--json"];
    args.extend(["--answer-in", "1ms", "--retries", "2"]);
    let output = run(&args);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let near = json(&out(&output));
    let reqs = near.iter().filter(|line| line["cm"]["message_name"] == "REQ");
    let again: Vec<_> = reqs.map(|line| line["again"].as_bool().unwrap()).collect();
    assert_eq!(again, [false, true, true]);
    assert_eq!(events(&near), ["device", "unreachable"]);
}

#[test]
fn what_cannot_be_is_one_line() {
    let long = "x".repeat(57);
    let text = refused(&["cm", "connect", "127.0.0.1:9", "--say", &long]);
    assert!(text.contains("57 bytes") && text.contains("56"), "{text}");
    let text = refused(&["cm", "connect", "[::1]:9"]);
    assert!(text.contains("::1"), "{text}");
    for (args, part) in [
        (&["cm", "connect", "somewhere"][..], "somewhere"),
        (&["cm", "connect", "127.0.0.1:9", "--answer-in", "9000s"], "8796s"),
        (&["cm", "connect", "127.0.0.1:9", "--retries", "16"], "16"),
        (&["cm", "listen", "--count", "0"], "0"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2));
        assert!(err(&output).contains(part), "{}", err(&output));
    }
}
