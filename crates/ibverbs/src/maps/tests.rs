use super::check;

#[test]
fn own_memory_is_mapped_for_writing() {
    let memory = vec![0_u8; 3 << 20];
    assert!(check(memory.as_ptr().addr(), memory.len(), true).is_ok());
}

#[test]
fn constants_are_mapped_for_reading_only() {
    static TEXT: [u8; 64] = [7; 64];
    let start = TEXT.as_ptr().addr();
    assert!(check(start, 64, false).is_ok());
    assert_eq!(check(start, 64, true).map_err(|e| e.errno), Err(libc::EFAULT));
}

#[test]
fn the_first_page_is_not_mapped() {
    assert_eq!(check(4096, 8, false).map_err(|e| e.errno), Err(libc::EFAULT));
}

#[test]
fn a_range_past_the_end_is_invalid() {
    assert_eq!(check(usize::MAX - 7, 9, false).map_err(|e| e.errno), Err(libc::EINVAL));
}
