use super::*;

fn error(text: &str) -> String {
    text.parse::<Share>().unwrap_err().to_string()
}

#[test]
fn percentages_and_fractions_are_the_same_shares() {
    for (text, billionths) in [
        ("0", 0),
        ("5%", 50_000_000),
        ("0.05", 50_000_000),
        ("0.5%", 5_000_000),
        ("100%", 1_000_000_000),
        ("1", 1_000_000_000),
        ("1.0", 1_000_000_000),
        (" 0.0000001% ", 1),
        ("0.000000001", 1),
        ("0.250", 250_000_000),
        ("12.5 %", 125_000_000),
    ] {
        assert_eq!(text.parse::<Share>().map(Share::billionths), Ok(billionths), "{text}");
    }
}

#[test]
fn what_is_shown_parses_to_the_same() {
    for billionths in [0, 1, 5_000_000, 50_000_000, 123_456_789, 1_000_000_000] {
        let share = Share(billionths);
        assert_eq!(share.to_string().parse(), Ok(share));
    }
}

#[test]
fn errors_say_what_to_write() {
    let syntax = "is no share: write a percentage such as 5% or a fraction such as 0.05";
    for text in ["", "%", "five", "-5%", "+1%", ".5", "5.%", "0x5", "1e-3", "5%%", "1 0%", "1.2.3"]
    {
        assert_eq!(error(text), format!("`{text}` {syntax}"));
    }
    assert_eq!(error("5"), "`5` is more than the whole: did you mean 5%? fractions go from 0 to 1");
    assert_eq!(error("101%"), "`101%` is more than the whole: percentages go from 0% to 100%");
    assert_eq!(
        error("0.00000001%"),
        "`0.00000001%` is finer than a billionth, the least that counts"
    );
    assert!(error("99999999999999999999").contains("more than the whole"));
}
