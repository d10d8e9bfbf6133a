use super::*;

#[test]
fn what_the_host_refuses_says_what_to_do_next() {
    let text = |errno| {
        let address = [10, 0, 0, 1].into();
        PortError::socket("socket", address)(io::Error::from_raw_os_error(errno)).to_string()
    };
    for (errno, wanted) in [
        (libc::EMFILE, "ulimit -n"),
        (libc::ENFILE, "fs.file-max"),
        (libc::ENOBUFS, "free some"),
        (libc::EPERM, "seccomp"),
        (libc::ENOSYS, "kernel"),
        (libc::EIO, "urxe doctor"),
    ] {
        let text = text(errno);
        assert!(text.starts_with("socket of 10.0.0.1: ") && text.contains(wanted), "{text}");
    }
}

#[test]
fn a_path_that_is_too_narrow_says_what_fits() {
    let to = [10, 0, 0, 2].into();
    let text = |carries| PortError::check_path(to, Mtu::B1024, carries).unwrap_err().to_string();
    assert!(PortError::check_path(to, Mtu::B1024, 1112).is_ok());
    assert!(text(1111).contains("packets of 1111 bytes; at most 512 does: give --mtu 512"));
    assert!(text(343).contains("smallest RoCE path MTU needs 344"));
}
