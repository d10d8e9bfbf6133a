//! Network namespaces: each is a thread that lives in one, and does what it is told there.

use std::io;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace of its own; gone when dropped, with all interfaces in it.
#[derive(Debug)]
pub struct Namespace {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// A file that stands for it.
    path: String,
}

impl Namespace {
    /// Makes one.
    pub fn new() -> io::Result<Self> {
        let (jobs, todo) = channel::<Job>();
        let (tell, told) = channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: takes no pointers; moves this thread alone to a new network namespace.
            let rc = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            let made = if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
            // SAFETY: takes nothing.
            let thread = unsafe { libc::gettid() };
            tell.send(made.map(|()| thread)).unwrap();
            todo.iter().for_each(|job| job());
        });
        let id = told.recv().unwrap()?;
        let path = format!("/proc/{}/task/{id}/ns/net", std::process::id());
        let space = Self { jobs: Some(jobs), thread: Some(thread), path };
        space.ip("link set lo up");
        Ok(space)
    }

    /// Does something in there.
    pub fn run<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = channel();
        let job: Job = Box::new(move || tell.send(f()).unwrap());
        self.jobs.as_ref().unwrap().send(job).unwrap();
        told.recv().expect("the job panicked")
    }

    /// Runs `ip` in there.
    pub fn ip(&self, arguments: &str) {
        let arguments: Vec<String> = arguments.split_whitespace().map(Into::into).collect();
        let done = self.run(move || {
            let out = Command::new("ip").args(&arguments).output();
            (arguments.join(" "), out)
        });
        let out = done.1.unwrap_or_else(|e| panic!("ip {}: {e}", done.0));
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "ip {}: {errors}", done.0);
    }

    /// A pair of virtual Ethernet interfaces, `veth` here and `veth` there.
    pub fn connect(&self, there: &Self) {
        self.ip("link add veth type veth peer name peer");
        self.ip(&format!("link set peer netns {}", there.path));
        there.ip("link set peer name veth");
        for (space, n) in [(self, 1), (there, 2)] {
            space.ip(&format!("addr add 10.9.0.{n}/24 dev veth"));
            space.ip(&format!("addr add fd09::{n}/64 dev veth nodad"));
            space.ip("link set veth mtu 4200");
            space.ip("link set veth up");
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.jobs.take());
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// Two connected namespaces; `None` where the host does not let us make them, unless
/// `URXE_REQUIRE_NETNS=1` says that it must.
pub fn pair() -> Option<(Namespace, Namespace)> {
    let made = Command::new("ip").arg("-V").output().and_then(|_| {
        let (a, b) = (Namespace::new()?, Namespace::new()?);
        a.connect(&b);
        Ok((a, b))
    });
    match made {
        Ok(pair) => Some(pair),
        Err(why) => {
            let required = std::env::var("URXE_REQUIRE_NETNS").is_ok_and(|v| v == "1");
            assert!(!required, "URXE_REQUIRE_NETNS=1, but: {why}");
            eprintln!("skipped: no network namespaces ({why}); run as root or under `unshare -rn`");
            None
        }
    }
}
