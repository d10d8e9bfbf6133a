//! What most tests start from: two devices, and QPs between them.

use std::time::{Duration, Instant};

use urxe::{
    Access, AckTimeout, CompChannel, Completion, Config, Context, Cq, Mr, Mtu, Pd, Profile, QKey,
    Qp, QpAttr, QpKind, RnrTimer, WcStatus,
};

/// Longer than anything takes that is going to happen, on any machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
pub const SIZE: usize = 64 << 10;
pub const QKEY: QKey = QKey(0x1234);
pub const ALL: Access = Access::LOCAL_WRITE
    .union(Access::REMOTE_READ)
    .union(Access::REMOTE_WRITE)
    .union(Access::REMOTE_ATOMIC)
    .union(Access::MW_BIND);

/// Settings under which a QP with seven retries makes as many as it takes: on a busy machine a peer
/// may not run for longer than seven timeouts last.
pub fn patient() -> Config {
    let profile = Profile { infinite_retry_at_7: true, ..Profile::STRICT };
    Config { profile, ..Config::default() }
}

/// A device on a free loopback address, with patience.
pub fn open() -> Context {
    Context::open(&patient()).unwrap()
}

/// One side of a connection.
#[derive(Debug)]
pub struct Side {
    /// The first to go: a datagram that comes twice must not find its receive's memory gone.
    pub qp: Qp,
    pub cq: Cq,
    pub mr: Mr,
    pub pd: Pd,
}

/// Retries soon, so that tests with losses are quick.
pub fn quick(attr: &mut QpAttr) {
    attr.path_mtu = Mtu::B1024;
    // 4.096 µs · 2^12 = 17 ms.
    attr.timeout = AckTimeout::new(12).unwrap();
    attr.min_rnr_timer = RnrTimer::new(8).unwrap();
}

impl Side {
    pub fn new(context: &Context, kind: QpKind) -> Self {
        Self::with(context, kind, None, quick)
    }

    pub fn with(
        context: &Context,
        kind: QpKind,
        channel: Option<&CompChannel>,
        edit: fn(&mut QpAttr),
    ) -> Self {
        let pd = context.alloc_pd().unwrap();
        let mr = pd.register(SIZE, ALL).unwrap();
        let cq = match channel {
            Some(channel) => context.create_cq_on(512, channel).unwrap(),
            None => context.create_cq(512).unwrap(),
        };
        let qp = pd.qp(kind).cq(&cq).access(ALL).attr(edit).build().unwrap();
        Self { pd, mr, cq, qp }
    }

    /// The next completion, which must be a good one.
    pub fn done(&self) -> Completion {
        let done = self.cq.wait_for(PATIENCE).unwrap();
        assert_eq!(done.status, WcStatus::Success, "{}", done.explain());
        done
    }
}

/// Both sides of a connection.
pub fn connected(a: &Context, b: &Context, kind: QpKind) -> (Side, Side) {
    let (a, b) = (Side::new(a, kind), Side::new(b, kind));
    connect(&a, &b);
    (a, b)
}

pub fn connect(a: &Side, b: &Side) {
    a.qp.connect(&b.qp.endpoint()).unwrap();
    b.qp.connect(&a.qp.endpoint()).unwrap();
}

/// Bytes that tell their place and whose they are.
pub fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| u8::try_from((i * 7 + seed * 13) % 251).unwrap()).collect()
}

/// What `look` gives when it gives something, which it must in time.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
        std::thread::yield_now();
    }
}

/// Whether the test called `name` is alone in its process. If not, it is started once more, in a
/// process of its own, and must succeed there: for tests that look at the process as a whole, or
/// whose forks would hold the sockets of others.
pub fn alone(name: &str) -> bool {
    const MARK: &str = "URXE_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", name, "--nocapture", "--test-threads=1"];
    let out = std::process::Command::new(program).args(arguments).env(MARK, "1").output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.contains("1 passed"), "{text}\n{errors}");
    false
}
