use super::*;

#[test]
fn an_endpoint_survives_its_text() {
    for address in ["127.0.0.1", "fe80::1"] {
        let address = address.parse().unwrap();
        let end = Endpoint { address, qpn: Qpn::new(0x1234), psn: Psn::MAX };
        assert_eq!(end.to_string().parse::<Endpoint>().unwrap(), end);
    }
}

#[test]
fn what_is_no_endpoint_says_why() {
    for (text, why) in [
        ("127.0.0.1 17", "fewer than three"),
        ("127.0.0.1 17 1 2", "more than three"),
        ("here 17 1", "address"),
        ("127.0.0.1 16777216 1", "QPN"),
        ("127.0.0.1 17 -1", "PSN"),
    ] {
        let error = text.parse::<Endpoint>().unwrap_err().to_string();
        assert!(error.contains(why) && error.contains(text), "{error}");
    }
}

/// A stream on which the peer has said all that it will.
struct Said(std::io::Cursor<Vec<u8>>, Vec<u8>);

impl Read for Said {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn endpoints_are_exchanged_and_what_comes_after_is_left_alone() {
    let own: Endpoint = "127.0.0.1 17 1".parse().unwrap();
    let mut stream = Said(std::io::Cursor::new(b"::1 18 2\nmore".to_vec()), Vec::new());
    assert_eq!(over(&mut stream, &own).unwrap().to_string(), "::1 18 2");
    assert_eq!(stream.1, b"127.0.0.1 17 1\n");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "more");
}

#[test]
fn a_peer_that_says_something_else_is_an_error() {
    let own: Endpoint = "127.0.0.1 17 1".parse().unwrap();
    let long = [b'x'; 10_000];
    let wrong: [(&[u8], &str); 4] = [
        (b"", "reading from the peer"),
        (b"127.0.0.1 17 1", "reading from the peer"),
        (b"HTTP/1.1 400\n", "no endpoint"),
        (&long, "a short line"),
    ];
    for (said, why) in wrong {
        let mut stream = Said(std::io::Cursor::new(said.to_vec()), Vec::new());
        let error = over(&mut stream, &own).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(error.len() < 300, "shortened");
    }
    let context = crate::Context::open(&crate::Config::default()).unwrap();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4).unwrap());
    let qp = pd.qp(urxe_engine::QpKind::Rc).cq(&cq).build().unwrap();
    let mut stream = Said(std::io::Cursor::new(b"127.0.0.1 17 1\nbye\n".to_vec()), Vec::new());
    let error = connect(&mut stream, &qp).unwrap_err().to_string();
    assert_eq!(error, "the peer said `bye`, wanted ready");
}
