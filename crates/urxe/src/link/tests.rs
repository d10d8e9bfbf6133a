use super::*;

#[test]
fn each_device_of_a_process_has_a_capture_file_of_its_own() {
    let names: Vec<_> = (0..3).map(|_| free_name(Path::new("dir/own.file.pcapng"))).collect();
    let wanted = ["dir/own.file.pcapng", "dir/own.file-2.pcapng", "dir/own.file-3.pcapng"];
    assert_eq!(names, wanted.map(PathBuf::from));
    assert_eq!(free_name(Path::new("plain")), PathBuf::from("plain"));
    assert_eq!(free_name(Path::new("plain")), PathBuf::from("plain-2"));
}

#[test]
fn a_capture_file_can_have_the_process_in_its_name() {
    let id = std::process::id();
    assert_eq!(of_this_process(Path::new("a-%p.pcapng")), PathBuf::from(format!("a-{id}.pcapng")));
    assert_eq!(of_this_process(Path::new("a.pcapng")), PathBuf::from("a.pcapng"));
}
