use super::*;

#[test]
fn percentages_and_fractions_are_exact() {
    for (text, billionths) in [
        ("0", 0),
        ("0%", 0),
        ("1%", 10_000_000),
        ("0.5 %", 5_000_000),
        (" 0.0000001% ", 1),
        ("0.000000001", 1),
        ("100%", 1_000_000_000),
        ("1", 1_000_000_000),
        ("1.0", 1_000_000_000),
        ("0.250", 250_000_000),
    ] {
        assert_eq!(text.parse::<Share>().map(Share::billionths), Ok(billionths), "{text}");
    }
}

#[test]
fn what_is_no_share_is_told_apart() {
    for text in ["", "%", ".5", "5.", "-1%", "+1%", "1e-3", "5 percent", "0x1", "1 0%", "1.2.3"] {
        assert_eq!(text.parse::<Share>(), Err(ShareError::Syntax(text.into())), "{text}");
    }
    for text in ["2", "1.1", "101%", "100.1%", "5000000000%", "99999999999999"] {
        assert_eq!(text.parse::<Share>(), Err(ShareError::TooMuch(text.into())), "{text}");
    }
    for text in ["0.00000001%", "0.0000000001"] {
        assert_eq!(text.parse::<Share>(), Err(ShareError::TooFine(text.into())), "{text}");
    }
}

#[test]
fn what_is_shown_parses_to_the_same() {
    for billionths in [0, 1, 10_000_000, 12_345_678, 999_999_999, 1_000_000_000] {
        assert_eq!(Share(billionths).to_string().parse(), Ok(Share(billionths)));
    }
    assert_eq!(Share::percent(5).to_string(), "5%");
    assert_eq!(Share(1_250_000).to_string(), "0.125%");
}
