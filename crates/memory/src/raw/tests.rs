//! Which bytes go into the last word.

use super::*;

#[test]
fn tail_is_the_largest_aligned_word_at_the_end() {
    for (end, len, want) in
        [(16, 16, 8), (16, 8, 8), (16, 7, 4), (12, 9, 4), (10, 9, 2), (9, 9, 1), (16, 1, 1)]
    {
        assert_eq!(tail_len(end, len), want, "end {end}, len {len}");
    }
    assert_eq!(tail_len(16, 0), 0);
}
