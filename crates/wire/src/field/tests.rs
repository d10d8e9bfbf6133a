use core::ops::Range;

use super::{FieldValue, Fields};

struct Pair;

impl Fields for Pair {
    fn for_each_field(&self, f: &mut dyn FnMut(&'static str, Range<usize>, FieldValue<'_>)) {
        f("port", 0..16, FieldValue::Number(4791));
        f("on", 16..17, FieldValue::Flag(true));
    }
}

#[test]
fn each_kind_of_value_is_written_on_one_line() {
    let cases = [
        (FieldValue::Number(7), "7"),
        (FieldValue::Hex { value: 0x14, bits: 24 }, "0x000014"),
        (FieldValue::Hex { value: 0xb3fa8, bits: 20 }, "0xb3fa8"),
        (FieldValue::Flag(false), "no"),
        (FieldValue::Coded { code: 28, meaning: "consumer defined" }, "28 (consumer defined)"),
        (FieldValue::Shown(&"10.0.0.1"), "10.0.0.1"),
        (FieldValue::Group(&Pair), "{ port: 4791, on: yes }"),
    ];
    for (value, text) in cases {
        assert_eq!(value.to_string(), text);
    }
}

#[test]
fn a_long_tail_of_zero_bytes_is_counted() {
    assert_eq!(FieldValue::Bytes(&[1, 0, 2, 0, 0]).to_string(), "0100020000");
    assert_eq!(FieldValue::Bytes(&[0; 92]).to_string(), "92 zero bytes");
    let mut data = [0; 20];
    data[2] = 0xab;
    assert_eq!(FieldValue::Bytes(&data).to_string(), "0000ab and 17 zero bytes");
    assert_eq!(FieldValue::Bytes(&[]).to_string(), "");

    let bytes = [[1; 9], [0; 9]].concat();
    assert_eq!(FieldValue::Bytes(&bytes[..17]).to_string().len(), 34, "eight are written");
    let nine = FieldValue::Bytes(&bytes).to_string();
    assert!(nine.ends_with("01 and 9 zero bytes"), "{nine}");
}
