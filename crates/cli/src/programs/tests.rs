use super::*;

#[test]
fn capture_files_get_the_process_into_their_names() {
    assert_eq!(per_process("a.pcapng"), "a-%p.pcapng");
    assert_eq!(per_process("dir.d/a"), "dir.d/a-%p");
    assert_eq!(per_process("x%p.pcap"), "x%p.pcap");
}

#[test]
fn a_value_is_one_word_of_a_shell() {
    assert_eq!(quoted("a b"), "'a b'");
    assert_eq!(quoted("it's"), r"'it'\''s'");
}
