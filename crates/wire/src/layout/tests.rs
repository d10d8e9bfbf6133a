use super::Span;

#[test]
fn a_span_reads_and_writes_just_its_bits() {
    let mut message = [0xff; 12];
    for first in 0..32 {
        for bits in 1..=64 {
            let at = Span { first, bits };
            message.fill(0);
            at.put(&mut message, u64::MAX);
            let ones: u32 = message.iter().map(|b| b.count_ones()).sum();
            assert_eq!(ones as usize, bits, "only the field's bits are set");
            assert_eq!(message[first / 8].leading_zeros() as usize, first % 8);
            assert_eq!(at.get(&message), u64::MAX >> (64 - bits));

            message.fill(0);
            let value = 0x0123_4567_89ab_cdef & (u64::MAX >> (64 - bits));
            at.put(&mut message, value);
            assert_eq!(at.get(&message), value);
        }
    }
}

#[test]
fn a_number_too_great_for_its_field_loses_high_bits_and_spares_its_neighbours() {
    let mut message = [0; 2];
    Span::at(0, 5, 3).put(&mut message, 0xff);
    assert_eq!(message, [0x07, 0]);
    Span::at(0, 0, 5).put(&mut message, 0x14);
    assert_eq!(message, [0xa7, 0]);
}

#[test]
fn holes_overlaps_and_a_wrong_end_are_found() {
    let whole = [Span::at(0, 0, 4), Span::at(0, 4, 12)];
    assert!(Span::tile(&whole, 2));
    assert!(!Span::tile(&whole, 3), "the last byte is forgotten");
    assert!(!Span::tile(&[Span::at(0, 0, 4), Span::at(0, 5, 11)], 2), "a hole");
    assert!(!Span::tile(&[Span::at(0, 0, 5), Span::at(0, 4, 12)], 2), "an overlap");
}
