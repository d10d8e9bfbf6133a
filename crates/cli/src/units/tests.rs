use super::*;

#[test]
fn numbers_with_units_are_read() {
    for (text, nanos) in
        [("500ns", 500), ("5us", 5000), ("1.5 ms", 1_500_000), ("2s", 2_000_000_000)]
    {
        assert_eq!(duration(text), Ok(Duration::from_nanos(nanos)));
    }
    assert_eq!(rate("2.5Gbit"), Ok(2_500_000_000));
    assert_eq!(rate("100m"), Ok(100_000_000));
    // As the devices' own --rate has it.
    assert_eq!(rate("8000bit"), Ok(8000));
    assert_eq!(size("64K"), Ok(65_536));
    assert_eq!(size("0"), Ok(0));
}

#[test]
fn errors_say_what_to_write() {
    for text in ["", "5", "us", "5m", "-5us", "1.ms", "5 minutes", "99999999999999999999s"] {
        let wanted = "is no time: write a number and a unit, such as 5us (ns, us, ms, s)";
        assert_eq!(duration(text), Err(format!("`{text}` {wanted}")));
    }
    assert_eq!(
        rate("0"),
        Err("`0` is no rate: write bits a second, such as 10G or 100M, above 0".to_owned())
    );
    assert_eq!(size("1G"), Err("`1G` is no size: write bytes, such as 1500, 64K or 1M".to_owned()));
}
