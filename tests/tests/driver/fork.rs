//! A child of a program that has a device open.

use urxe::{Address, Config, Context, Error, QpKind, SendOp};

use crate::rig::{Side, alone, connected, open};

/// What the child finds; 0 if all is as it should be.
fn child(context: Context, side: Side) -> i32 {
    let forked = |result: Result<(), Error>| matches!(result, Err(Error::Forked));
    let Side { pd, mr, cq, qp } = side;
    let checks = [
        forked(cq.poll_one().map(drop)),
        forked(cq.wait_one().map(drop)),
        forked(cq.req_notify(urxe::Arm::Next)),
        forked(qp.post_send(1, SendOp::Send { imm: None }, &[mr.sge(0..1)])),
        forked(qp.post_recv(1, &[])),
        forked(qp.query().map(drop)),
        forked(qp.fail()),
        forked(pd.register(8, urxe::Access::LOCAL_WRITE).map(drop)),
        forked(pd.qp(QpKind::Rc).cq(&cq).build().map(drop)),
        forked(context.alloc_pd().map(drop)),
        forked(context.create_comp_channel().map(drop)),
        forked(context.wait_async_event(crate::rig::PATIENCE).map(drop)),
        context.take_async_event().is_none(),
        matches!(context.query_port().state, urxe::PortState::Down { .. }),
    ];
    if let Some(wrong) = checks.iter().position(|ok| !ok) {
        return 10 + i32::try_from(wrong).unwrap_or(0);
    }
    // Dropping touches nothing that is the parent's, and waits for no thread that is not here.
    let address = context.address();
    drop((context, pd, mr, cq, qp));
    // One of its own works.
    let config = Config { address: Address::Of(address), ..Config::default() };
    if Context::open(&config).is_ok() {
        return 2;
    }
    let (near, far) = (open(), open());
    let (a, b) = connected(&near, &far, QpKind::Rc);
    b.qp.post_recv(1, &[b.mr.sge(0..8)]).unwrap();
    a.qp.post_send(1, SendOp::Send { imm: None }, &[a.mr.sge(0..8)]).unwrap();
    a.done();
    b.done();
    0
}

/// Forks in the middle of traffic by other threads, whose locks may be held then.
#[test]
fn a_child_is_told_and_the_parent_goes_on() {
    if !alone("fork::a_child_is_told_and_the_parent_goes_on") {
        return;
    }
    let (near, far) = (open(), open());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (a, b) = connected(&near, &far, QpKind::Rc);
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                let op = SendOp::Write { remote: b.mr.addr(), rkey: b.mr.rkey(), imm: None };
                a.qp.post_send(1, op, &[a.mr.sge(0..5000)]).unwrap();
                a.done();
            }
        });
        for _ in 0..20 {
            let context = open();
            let side = Side::new(&context, QpKind::Rc);
            side.qp.connect(&side.qp.endpoint()).unwrap();
            // SAFETY: the child uses the allocator, which the C library makes fit for use after a
            // fork, opens devices of its own, and leaves without running the parent's exit
            // handlers.
            let pid = unsafe { libc::fork() };
            assert!(pid >= 0);
            if pid == 0 {
                let code =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| child(context, side)));
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(code.unwrap_or(1)) }
            }
            let mut status = 0;
            // SAFETY: `status` lives through the call.
            let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
            assert_eq!(waited, pid);
            assert!(libc::WIFEXITED(status), "{status:#x}");
            assert_eq!(libc::WEXITSTATUS(status), 0, "see `child`");
            // The parent's device is untouched.
            let op = SendOp::Write { remote: side.mr.addr(), rkey: side.mr.rkey(), imm: None };
            side.qp.post_send(1, op, &[side.mr.sge(64..72)]).unwrap();
            side.done();
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
    });
}
