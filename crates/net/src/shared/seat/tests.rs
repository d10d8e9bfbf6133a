use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::thread;

use super::*;
use crate::shared::message::REQUEST;
use crate::shared::pass;

/// Addresses of these tests, not those of ports that are not shared; `shared`'s others are before.
fn address(last: u8) -> IpAddr {
    let [.., c, d] = std::process::id().to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, c.clamp(1, 254), d.clamp(1, 254), 128 + last))
}

/// Longer than anything takes that is going to happen, on any machine.
const LONG: Duration = Duration::from_secs(60);

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LONG, "{what}: not in {LONG:?}");
        thread::yield_now();
    }
}

/// A seat that serves a service and has lost its broker, and the socket on which the test plays the
/// next one.
fn orphan(last: u8) -> (Seat, Epoll, OwnedFd) {
    let (_, seat) = Seat::take(address(last), 4096).unwrap();
    let epoll = Epoll::new().unwrap();
    seat.watch(&epoll).unwrap();
    seat.serve(5, true).unwrap();
    let broker = crate::shared::who_shares(address(last)).unwrap().unwrap().broker;
    let broker = libc::pid_t::try_from(broker).unwrap();
    // SAFETY: takes no pointers; the broker is ours.
    assert_eq!(unsafe { libc::kill(broker, libc::SIGKILL) }, 0);
    let listener = name::socket().unwrap();
    let to = name::of(address(last)).unwrap();
    eventually("the name", || rustix::net::bind(&listener, &to).ok());
    rustix::net::listen(&listener, 9).unwrap();
    (seat, epoll, listener)
}

/// Hears the next request of a connection, `None` where that ends.
fn hear(connection: &OwnedFd) -> Option<Request> {
    assert!(sys::wait_readable(connection.as_fd(), 60_000).unwrap());
    let mut bytes = [0; REQUEST];
    let n = pass::recv(connection.as_fd(), &mut bytes, false, drop).unwrap_or(0);
    Request::parse(&bytes[..n])
}

fn say(connection: &OwnedFd, answer: Answer) {
    let mut bytes = [0; crate::shared::message::ANSWER];
    let len = answer.write(&mut bytes);
    pass::send(connection.as_fd(), &bytes[..len], &[]).unwrap();
}

fn accept(listener: &OwnedFd) -> OwnedFd {
    assert!(sys::wait_readable(listener.as_fd(), 60_000).unwrap());
    rustix::net::accept(listener).unwrap()
}

/// One that ends between two answers leaves nothing behind that is readable for ever, and is no
/// reason to give up.
#[test]
fn a_broker_that_dies_while_it_is_joined_is_followed_by_another() {
    let (seat, epoll, listener) = orphan(50);
    let slot = seat.slot;
    let player = thread::spawn(move || {
        let first = accept(&listener);
        assert_eq!(hear(&first), Some(Request::Claim(slot)));
        say(&first, Answer::Slot(slot, 0));
        assert_eq!(hear(&first), Some(Request::Serve(5)));
        drop(first);
        listener
    });
    eventually("a try", || {
        seat.attend(&epoll, |_, _| true);
        player.is_finished().then_some(())
    });
    let listener = player.join().unwrap();
    // What it has not heard the end of yet, it hears of now.
    assert!(matches!(seat.line.lock().state, State::Lost { .. }), "{:?}", seat.line.lock().state);
    assert!(!sys::wait_readable(epoll.fd(), 0).unwrap(), "the thread would spin");
    assert!(seat.next_deadline().is_some());
    // The next one lives, and has given the service away.
    let player = thread::spawn(move || {
        loop {
            let connection = accept(&listener);
            if hear(&connection) != Some(Request::Claim(slot)) {
                continue;
            }
            say(&connection, Answer::Slot(slot, 0));
            if hear(&connection) == Some(Request::Serve(5)) {
                say(&connection, Answer::Refused);
                return connection;
            }
        }
    });
    eventually("a broker", || {
        seat.attend(&epoll, |_, _| true);
        (seat.line.lock().state == State::Open).then_some(())
    });
    let connection = player.join().unwrap();
    assert!(seat.line.lock().services.is_empty(), "it is another's");
    assert_eq!(seat.next_deadline(), None);
    // It is told of mixed runs though the one before was.
    seat.told.store(false, Ordering::Relaxed);
    seat.mixed();
    assert_eq!(hear(&connection), Some(Request::Mixed));
}

#[test]
fn a_shortage_passes_and_what_is_refused_stays() {
    let fail = |e: Errno| PortError::socket("x", address(1))(e.into());
    for e in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::AGAIN] {
        assert!(rejoin::passes(&fail(e)), "{e}");
    }
    for e in [Errno::PERM, Errno::BUSY, Errno::INVAL] {
        assert!(!rejoin::passes(&fail(e)), "{e}");
    }
}

#[test]
fn without_a_broker_for_good_services_are_refused() {
    let (_, seat) = Seat::take(address(52), 4096).unwrap();
    seat.line.lock().state = State::Alone;
    let error = seat.serve(7, true).unwrap_err();
    assert!(matches!(error, PortError::NoBroker(_)), "{error}");
    assert!(error.to_string().contains("open the device anew"), "{error}");
    seat.serve(7, false).unwrap();
    seat.line.lock().state = State::Open;
}
