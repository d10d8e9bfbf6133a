//! What urxe's own connections leave in a capture breaks no rule, over a link with faults, seen
//! from either side.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use urxe::cm::{CmTimeout, Connection, Listener, Options, PathParams, Timing, resolve};
use urxe::{Access, Config, Context, Cq, Mr, Pd, Profile, Qp, QpKind, SendOp, WcStatus};
use urxe_lint::{Options as LintOptions, Profile as Manners};

use crate::golden::judged;

struct Host {
    context: Context,
    pd: Pd,
    cq: Cq,
    mr: Mr,
}

impl Host {
    /// A device that writes down what passes it.
    fn open(pcap: &Path) -> Self {
        let config = Config {
            faults: "tx.loss=10%,tx.duplicate=10%,tx.reorder=10%".into(),
            pcap: Some(pcap.to_owned()),
            profile: Profile { infinite_retry_at_7: true, ..Profile::STRICT },
            ..Config::default()
        };
        let context = Context::open(&config).unwrap();
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(64).unwrap());
        let mr = pd.register(8192, Access::LOCAL_WRITE).unwrap();
        Self { context, pd, cq, mr }
    }

    fn qp(&self, kind: QpKind) -> Qp {
        self.pd.qp(kind).cq(&self.cq).build().unwrap()
    }
}

fn code(n: u8) -> CmTimeout {
    CmTimeout::new(n).unwrap()
}

fn soon() -> Options<'static> {
    let timing =
        Timing { remote_response: code(15), local_response: code(15), ..Timing::default() };
    let path = PathParams { packet_lifetime: code(13), ..PathParams::default() };
    Options { timing, path: Some(path), ..Options::default() }
}

/// A connection of this kind, with data where that is safe to wait for.
fn connect(a: &Host, b: &Host, kind: QpKind) {
    let listener = Listener::bind(&b.context, (b.context.address(), 0).into()).unwrap();
    let xrcd = b.context.alloc_xrcd().unwrap();
    thread::scope(|scope| {
        let far = scope.spawn(|| {
            let incoming = listener.incoming().unwrap();
            let qp = match kind {
                QpKind::XrcInit => b.pd.qp(QpKind::XrcTarget).xrcd(&xrcd).build().unwrap(),
                _ => b.qp(kind),
            };
            if kind == QpKind::Rc {
                qp.init().unwrap();
                qp.post_recv(1, &[b.mr.sge(0..8192)]).unwrap();
            }
            let connection = incoming.accept(qp, &soon()).unwrap();
            connection.wait_closed().unwrap();
        });
        let to = listener.local_addr();
        let near = Connection::connect(&a.context, to, a.qp(kind), &soon()).unwrap();
        if kind == QpKind::Rc {
            let send = SendOp::Send { imm: None };
            near.qp().post_send(2, send, &[a.mr.sge(0..8192)]).unwrap();
            assert_eq!(a.cq.wait_one().unwrap().status, WcStatus::Success);
        }
        near.disconnect().unwrap();
        far.join().unwrap();
    });
}

#[test]
fn connections_of_every_kind_break_no_rule() {
    let files: [PathBuf; 2] = ["near", "far"].map(|side| {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("connections-{side}.pcapng"))
    });
    let [a, b] = [&files[0], &files[1]].map(|file| Host::open(file));
    for _ in 0..4 {
        for kind in [QpKind::Rc, QpKind::Uc, QpKind::XrcInit] {
            connect(&a, &b, kind);
        }
    }
    let service = Listener::bind_datagrams(&b.context, (b.context.address(), 0).into()).unwrap();
    let qp = b.qp(QpKind::Ud);
    qp.ready(urxe::QKey(0x1234)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| service.incoming().unwrap().answer(&qp, b"").unwrap());
        resolve(&a.context, service.local_addr(), &soon()).unwrap();
    });
    drop((qp, service, a, b));
    for file in files {
        let manners = LintOptions { profile: Manners::ConnectX, ..LintOptions::default() };
        let (text, summary) = judged(&fs::read(&file).unwrap(), manners);
        assert_eq!(summary.totals.violations(), 0, "{}: {text}", file.display());
        assert!(summary.totals.packets > 60, "{}", file.display());
    }
}
