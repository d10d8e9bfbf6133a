use super::*;

#[test]
fn the_line_is_the_stock_tools() {
    let end = Endpoint {
        address: "10.77.0.1".parse().unwrap(),
        qpn: Qpn::new(0x11),
        psn: Psn::new(0xabcdef),
    };
    let text = b"0000:000011:abcdef:00000000000000000000ffff0a4d0001\0";
    assert_eq!(&line(&end), text);
    assert_eq!(parse(text).unwrap(), end);
}

#[test]
fn what_is_no_line_says_so() {
    for text in [
        "",
        "0000:000011:abcdef",
        "0000:000011:abcdef:00ff",
        "0000:1000011:abcdef:00000000000000000000ffff0a4d0001",
        "zzzz:000011:abcdef:00000000000000000000ffff0a4d0001",
        "0000:000011:abcdef:00000000000000000000ffff0a4d0001:1",
    ] {
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(matches!(&error, ExchangeError::Line(t) if t == text), "{error}");
    }
    assert!(matches!(parse(&[0xff; 52]), Err(ExchangeError::Line(_))));
    let none = b"0000:000011:abcdef:00000000000000000000000000000000\0";
    assert!(matches!(parse(none), Err(ExchangeError::NoGid)));
}
