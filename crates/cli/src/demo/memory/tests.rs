use super::{Change, difference};

fn ranges(before: &[u8], after: &[u8]) -> Vec<(usize, usize)> {
    difference(before, after).iter().map(|c| (c.at, c.len)).collect()
}

#[test]
fn ranges_are_found_and_near_ones_joined() {
    let before = [0; 64];
    let mut after = before;
    assert_eq!(ranges(&before, &after), []);
    after[0] = 1;
    after[63] = 1;
    assert_eq!(ranges(&before, &after), [(0, 1), (63, 1)]);
    // Eight equal bytes do not part, nine do.
    after[9] = 1;
    assert_eq!(ranges(&before, &after), [(0, 10), (63, 1)]);
    after[19] = 1;
    assert_eq!(ranges(&before, &after), [(0, 10), (19, 1), (63, 1)]);
}

#[test]
fn the_first_bytes_are_kept() {
    let change = difference(&[0; 100], &[0xab; 100]);
    let wanted = Change { at: 0, len: 100, before: "00".repeat(32), after: "ab".repeat(32) };
    assert_eq!(change, [wanted]);
}
