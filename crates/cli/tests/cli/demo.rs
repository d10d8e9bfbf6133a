//! `urxe demo` as a program: its steps pass, and its files hold what happened.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use serde_json::Value;

use crate::program::tool;

/// A demo that has run.
pub(crate) struct Demo {
    pub(crate) dir: PathBuf,
    output: Output,
    /// What the page holds.
    data: Value,
}

/// One run for all tests: it has no settings that they would differ in.
pub(crate) static DEMO: LazyLock<Demo> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo");
    let output = run(&dir, &[]);
    let data = data(&fs::read_to_string(dir.join("demo.html")).unwrap());
    Demo { dir, output, data }
});

fn run(dir: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urxe"));
    command.args(["demo", "--out"]).arg(dir).args(more);
    command.env_remove("CLICOLOR_FORCE").output().unwrap()
}

/// `urxe demo | head -1` has shown what was wanted.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for more in [&[][..], &["--json"]] {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo-unread");
        let mut command = Command::new(env!("CARGO_BIN_EXE_urxe"));
        command.args(["demo", "--out"]).arg(dir).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    }
}

/// The JSON in a page.
pub(crate) fn data(page: &str) -> Value {
    let (_, rest) = page.split_once(r#"id="data">"#).unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

fn list(key: &str) -> &'static Vec<Value> {
    DEMO.data[key].as_array().unwrap()
}

fn of_step(key: &str, step: u64) -> Vec<&'static Value> {
    list(key).iter().filter(|v| v["step"] == step).collect()
}

#[test]
fn all_steps_pass() {
    let text = String::from_utf8(DEMO.output.stdout.clone()).unwrap();
    let last = text.lines().last().unwrap();
    assert_eq!(last, format!("{} passed, 0 failed", list("steps").len()), "{text}");
    assert_eq!(DEMO.output.status.code(), Some(0));
    for step in list("steps") {
        let title = step["title"].as_str().unwrap();
        assert!(text.contains(title) && step["passed"] == true, "{title}\n{text}");
    }
    let lossy = list("steps").iter().find(|s| s["title"].as_str().unwrap().contains("lost"));
    assert!(lossy.unwrap()["lost"].as_u64().unwrap() > 0);
}

/// Our own dissector finds each packet in the capture, whole and with a right ICRC.
#[test]
fn the_capture_holds_each_packet_of_the_page() {
    let file = DEMO.dir.join("demo.pcapng");
    let mut dissect = Command::new(env!("CARGO_BIN_EXE_urxe"));
    let output = dissect.args(["dissect", "--json", "--strict"]).arg(file).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let all: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(all.len(), list("packets").len());
    for (seen, shown) in all.iter().zip(list("packets")) {
        assert_eq!(seen["icrc"], "ok");
        let key = |v: &Value, qp: &str| (v["opcode"].clone(), v["psn"].clone(), v[qp].clone());
        assert_eq!(key(seen, "dest_qp"), key(shown, "qp"));
    }
}

#[test]
fn the_page_needs_nothing_else() {
    let page = fs::read_to_string(DEMO.dir.join("demo.html")).unwrap();
    for outside in ["http://", "https://", "//cdn", "@import", "url(", " src=", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("</script").count(), 2);
}

/// Every byte of a packet is in a header's field, so that the page can say what it is.
#[test]
fn each_packet_is_explained_to_its_last_byte() {
    for packet in list("packets") {
        assert!(packet["sentence"].as_str().unwrap().ends_with('.'), "{packet}");
        let bytes = packet["hex"].as_str().unwrap().len() / 2;
        let mut named = vec![false; bytes];
        for header in packet["headers"].as_array().unwrap() {
            for field in header[3].as_array().unwrap() {
                let number = |n: usize| usize::try_from(field[n].as_u64().unwrap()).unwrap();
                named[number(1)..number(1) + number(2)].fill(true);
            }
        }
        assert!(named.iter().all(|named| *named), "{packet}");
    }
}

/// What caused another thing stands before it.
#[test]
fn an_answer_leaves_after_the_question_arrived() {
    for step in [0, 1, 3, 8, 9] {
        let all = of_step("packets", step);
        let request = all.iter().rfind(|p| p["from"] == "alice").unwrap();
        let answer = all.iter().rfind(|p| p["from"] == "bob").unwrap();
        let time = |p: &Value, key: &str| p[key].as_f64().unwrap();
        assert!(time(request, "left") <= time(request, "arrived"), "{step}");
        assert!(time(request, "arrived") <= time(answer, "left"), "{step}");
    }
}

/// Step 2 is a WRITE of 1000 bytes to offset 256: bob's memory changes there and his program is
/// told nothing; alice's memory stays as it is and she is told.
#[test]
fn memory_and_completions_are_recorded() {
    let events = of_step("events", 1);
    let of = |who: &str, kind: &str| -> Vec<&Value> {
        events.iter().copied().filter(|e| e["who"] == who && e["kind"] == kind).collect()
    };
    let changed = &of("bob", "memory")[0]["changes"];
    assert_eq!((&changed[0]["at"], &changed[0]["len"]), (&256.into(), &1000.into()));
    assert!(changed[0]["after"].as_str().unwrap().starts_with("01020304"));
    assert_eq!(&of("bob", "sum")[0]["changes"], changed);
    assert_eq!(of("bob", "cqe").len() + of("bob", "recv").len() + of("alice", "memory").len(), 0);
    assert_eq!(of("alice", "sum")[0]["changes"], Value::Array(Vec::new()));
    let told = of("alice", "cqe");
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["wr_id"], &told[0]["ok"]), (&1.into(), &true.into()));
}

#[test]
fn json_is_an_object_a_line() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo-json");
    let output = run(&dir, &["--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let all: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let (end, steps) = all.split_last().unwrap();
    assert_eq!((&end["passed"], &end["failed"]), (&steps.len().into(), &0.into()));
    assert!(Path::new(end["html"].as_str().unwrap()).is_file());
    for (nth, step) in steps.iter().enumerate() {
        assert_eq!((&step["step"], &step["passed"]), (&nth.into(), &true.into()), "{step}");
        assert!(step["packets"].as_u64().unwrap() > 0, "{step}");
    }
}

/// Wireshark's dissector agrees that each packet is well-formed RoCEv2.
#[test]
fn tshark_reads_the_capture() {
    let Some(mut tshark) = tool("tshark", "URXE_REQUIRE_TSHARK") else { return };
    tshark.arg("-r").arg(DEMO.dir.join("demo.pcapng")).args(["-T", "fields", "-E", "separator=;"]);
    for field in ["infiniband.bth.psn", "infiniband.bth.destqp", "_ws.malformed"] {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), list("packets").len());
    for (line, packet) in text.lines().zip(list("packets")) {
        let wanted = format!("{};0x{:06x};", packet["psn"], packet["qp"].as_u64().unwrap());
        assert_eq!(line, wanted);
    }
}

/// A page of the demo's directory as a browser builds it.
fn built(page: &str, fragment: &str) -> Option<String> {
    let mut chromium = tool("chromium", "URXE_REQUIRE_CHROMIUM")?;
    let profile = DEMO.dir.join(format!("profile-{page}-{fragment}"));
    let path = fs::canonicalize(DEMO.dir.join(page)).unwrap();
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]);
    chromium.args(["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"]);
    chromium.arg(format!("--user-data-dir={}", profile.display()));
    chromium.args(["--window-size=1600,1000", "--dump-dom"]);
    let output = chromium.arg(format!("file://{}#{fragment}", path.display())).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("</html>"), "{}", String::from_utf8_lossy(&output.stderr));
    Some(text)
}

/// The picture and the panel, without the scripts behind them, which hold the same words.
fn dom(fragment: &str) -> Option<String> {
    let text = built("demo.html", fragment)?;
    Some(text.split_once(r#"id="data""#).unwrap().0.to_owned())
}

#[test]
fn a_browser_draws_an_arrow_a_packet() {
    for step in [0, 8] {
        let Some(dom) = dom(&format!("step={}", step + 1)) else { return };
        let packets = of_step("packets", step);
        assert_eq!(dom.matches(r#"class="pkt "#).count(), packets.len(), "step {step}");
        assert!(dom.contains("What the programs did and saw"));
    }
}

/// Of hundreds of packets only those in sight are drawn.
#[test]
fn a_browser_draws_what_is_in_sight_of_a_long_step() {
    let Some(dom) = dom("step=8&packet=100") else { return };
    let drawn = dom.matches(r#"class="pkt "#).count();
    let all = of_step("packets", 7).len();
    assert!(drawn > 10 && drawn < all, "{drawn} of {all}");
    let picked = dom.matches(" on\"").count();
    assert_eq!(picked, 1);
    assert!(dom.contains("packet 100 of"));
}

/// Plays a reader: what is said after each deed is where the page then is.
const READER: &str = r##"<pre id="log"></pre><script>
  const bubbles = true;
  const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles }));
  const mouse = (query, name) => {
    document.querySelector(query).dispatchEvent(new MouseEvent(name, { bubbles }));
  };
  const log = document.getElementById("log");
  const say = (...words) => { log.textContent += words.join(" ") + "\n"; };
  const keys = "ArrowDown ArrowDown ArrowUp ArrowRight ArrowUp Escape ArrowLeft t + 0 t";
  for (const key of keys.split(" ")) {
    press(key);
    say(key, location.hash);
  }
  mouse(".pkt[data-packet='3'] .shaft", "click");
  say("click", location.hash, document.querySelector("#panel h2").textContent.trim());
  mouse("tr[data-w=psn]", "mouseover");
  say("field", [...document.querySelectorAll("b.lit")].map((b) => b.dataset.i).join(","));
  mouse("b[data-i='28']", "mouseover");
  say("byte", document.querySelector("tr.lit").dataset.w);
  mouse(".chip", "click");
  say("chip", location.hash);
  press("?");
  say("help", document.getElementById("help").open);
</script></body>"##;

#[test]
fn keys_and_pointer_do_what_the_help_says() {
    let page = fs::read_to_string(DEMO.dir.join("demo.html")).unwrap();
    fs::write(DEMO.dir.join("reader.html"), page.replacen("</body>", READER, 1)).unwrap();
    let Some(text) = built("reader.html", "step=1") else { return };
    let (_, rest) = text.split_once(r#"<pre id="log">"#).unwrap();
    let log = rest.split_once("</pre>").unwrap().0.replace("&amp;", "&");
    let wanted = "ArrowDown #step=1&packet=1\nArrowDown #step=1&packet=2\n\
        ArrowUp #step=1&packet=1\nArrowRight #step=2\nArrowUp #step=2&packet=2\n\
        Escape #step=2\nArrowLeft #step=1\nt #step=1&time=true\n\
        + #step=1&time=true&zoom=1.40\n0 #step=1&time=true\nt #step=1\n\
        click #step=1&packet=3 SEND LAST\nfield 37,38,39\nbyte opcode\n\
        chip #step=1&event=1\nhelp true\n";
    assert_eq!(log, wanted);
}
