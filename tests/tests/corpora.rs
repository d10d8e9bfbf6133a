//! Replays every input that fuzzing has kept: seeds, and what once broke a promise.

use std::{fs, path::Path};

use urxe_tests::fuzz::TARGETS;

#[test]
fn every_kept_input_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    for entry in fs::read_dir(&corpus).unwrap() {
        let folder = entry.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let (_, target) = TARGETS
            .iter()
            .find(|(target, _)| *target == name)
            .unwrap_or_else(|| panic!("fuzz/corpus/{name} has no entry in TARGETS"));
        let mut inputs = 0;
        for input in fs::read_dir(folder.path()).unwrap() {
            target(&fs::read(input.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "fuzz/corpus/{name} is empty");
    }
}
