use super::*;

#[test]
fn what_was_done_is_said_if_anything_was() {
    let said = |done: &str| Ended(done.to_owned()).to_string();
    assert_eq!(said(""), "ended by a signal");
    assert_eq!(said("3 of 11 steps"), "ended by a signal after 3 of 11 steps");
}

#[test]
fn a_wait_is_over_in_time_and_when_there_is_something() {
    let (near, far) = UnixStream::pair().unwrap();
    let past = Instant::now();
    assert!(!readable(near.as_fd(), Some(past)).unwrap());
    assert!(writable(near.as_fd(), None).unwrap());
    drop(far);
    assert!(readable(near.as_fd(), None).unwrap());
}
