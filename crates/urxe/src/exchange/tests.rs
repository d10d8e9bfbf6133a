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
