mod captures;
mod codes;
mod golden;
mod message;
mod random;

/// A body of 232 bytes with `parts` at their offsets, as the tables of IBA chapter 12 give them.
fn body(parts: &[(usize, &[u8])]) -> [u8; 232] {
    let mut bytes = [0; 232];
    for &(at, part) in parts {
        let place = &mut bytes[at..at + part.len()];
        assert!(place.iter().all(|&b| b == 0), "offset {at} is written twice");
        place.copy_from_slice(part);
    }
    bytes
}
