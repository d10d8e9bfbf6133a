use super::*;

fn names(taken: &[FileName]) -> Vec<PathBuf> {
    taken.iter().map(|name| name.0.clone()).collect()
}

#[test]
fn each_device_of_a_process_has_a_capture_file_of_its_own() {
    let path = Path::new("dir/own.file.pcapng");
    let mut taken: Vec<_> = (0..3).map(|_| free_name(path)).collect();
    let wanted = ["dir/own.file.pcapng", "dir/own.file-2.pcapng", "dir/own.file-3.pcapng"];
    assert_eq!(names(&taken), wanted.map(PathBuf::from));
    let plain = [free_name(Path::new("plain")), free_name(Path::new("plain"))];
    assert_eq!(names(&plain), ["plain", "plain-2"].map(PathBuf::from));
    // A device that was closed has given its name back.
    taken.remove(1);
    assert_eq!(free_name(path).0, PathBuf::from(wanted[1]));
}

#[test]
fn a_capture_file_is_written_again_by_a_device_that_is_opened_again() {
    let dir = std::env::temp_dir().join(format!("urxe-link-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let config = Config { pcap: Some(dir.join("again.pcapng")), ..Config::default() };
    for _ in 0..3 {
        let context = crate::Context::open(&config).unwrap();
        drop(context);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_capture_file_can_have_the_process_in_its_name() {
    let id = std::process::id();
    assert_eq!(of_this_process(Path::new("a-%p.pcapng")), PathBuf::from(format!("a-{id}.pcapng")));
    assert_eq!(of_this_process(Path::new("a.pcapng")), PathBuf::from("a.pcapng"));
}

#[test]
fn a_setting_that_the_port_does_not_have_is_refused() {
    let set = |pairs: &[(&str, &str)]| {
        let mut config = Config::default();
        for (name, value) in pairs {
            config.set(name, value).unwrap();
        }
        check_settings(&config).map_err(|e| e.to_string())
    };
    for (name, value) in [("vlan", "7:3"), ("ip_id", "random"), ("udp6_checksum", "on")] {
        let text = set(&[(name, value)]).unwrap_err();
        assert!(text.contains("raw:INTERFACE"), "{text}");
        set(&[(name, value), ("port", "raw:lo")]).unwrap();
    }
    for (name, value) in [("shared", "on"), ("gso", "on")] {
        let text = set(&[("port", "raw:lo"), (name, value)]).unwrap_err();
        assert!(text.contains("--port udp"), "{text}");
        set(&[(name, value)]).unwrap();
        set(&[("port", "raw:lo"), (name, "auto")]).unwrap();
    }
}
