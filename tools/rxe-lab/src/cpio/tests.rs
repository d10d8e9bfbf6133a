use super::Archive;

/// Reads an archive back: name, mode, content.
fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
    let mut entries = Vec::new();
    loop {
        assert_eq!(&bytes[..6], b"070701");
        let field = |n: usize| {
            let hex = std::str::from_utf8(&bytes[6 + 8 * n..14 + 8 * n]).unwrap();
            u32::from_str_radix(hex, 16).unwrap()
        };
        let (mode, length, name) = (field(1), field(6) as usize, field(11) as usize);
        let text = String::from_utf8(bytes[110..110 + name - 1].to_vec()).unwrap();
        assert_eq!(bytes[110 + name - 1], 0);
        let content = (110 + name).next_multiple_of(4);
        let end = (content + length).next_multiple_of(4);
        if text == "TRAILER!!!" {
            assert_eq!(bytes.len(), end);
            return entries;
        }
        entries.push((text, mode, bytes[content..content + length].to_vec()));
        bytes = &bytes[end..];
    }
}

#[test]
fn what_was_put_in_comes_out() {
    let mut archive = Archive::default();
    archive.folder("bin");
    for length in 0..5 {
        archive.file(&format!("bin/{}", "x".repeat(length)), &vec![7; length]);
    }
    archive.link("bin/sh", "busybox");
    let got = read(&archive.finish());
    assert_eq!(got.len(), 7);
    assert_eq!(got[0], ("bin".to_owned(), 0o40755, vec![]));
    for length in 0..5 {
        let wanted = (format!("bin/{}", "x".repeat(length)), 0o100_755, vec![7; length]);
        assert_eq!(got[1 + length], wanted);
    }
    assert_eq!(got[6], ("bin/sh".to_owned(), 0o120_777, b"busybox".to_vec()));
}
