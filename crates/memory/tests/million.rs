//! A million regions: each key leads to its own region and no other, and each costs little memory.

use std::sync::Arc;

use urxe_memory::{Access, Backing, Buffer, Config, KeyError, Memory};

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("the second field is the resident pages") * 4096
}

#[test]
fn a_million_regions_work() {
    const REGIONS: usize = 1_000_000;
    let memory = Memory::new(Config { key_seed: 1, ..Config::default() });
    let pd = memory.alloc_pd().unwrap();
    let buffer = Buffer::zeroed(4096).unwrap();
    let need = Access::REMOTE_READ;
    let before = resident();
    let regions: Vec<_> = (0..REGIONS)
        .map(|i| {
            let part = Backing::part(Arc::clone(&buffer), i % 4096, 1).unwrap();
            let mr = memory.reg_mr(pd, part, i as u64, need).unwrap();
            (mr.id, mr.rkey)
        })
        .collect();
    let each = (resident() - before) / REGIONS;
    assert!(each < 256, "{each} bytes per region");

    assert_eq!(memory.mr_count() as usize, REGIONS);
    for (i, &(_, rkey)) in regions.iter().enumerate() {
        let addr = i as u64;
        assert!(memory.remote(pd, 1, rkey, addr, 1, need).is_ok());
        // The address is the region's alone: no other region answers under this key.
        assert!(memory.remote(pd, 1, rkey, addr + 1, 1, need).is_err());
    }
    for &(id, key) in regions.iter().step_by(7) {
        memory.dereg_mr(id).unwrap();
        let gone = memory.remote(pd, 1, key, 0, 1, need).map(drop);
        assert_eq!(gone, Err(KeyError::UnknownKey { key }));
    }
    let left = regions.iter().enumerate().filter(|(i, _)| i % 7 != 0);
    for (i, &(id, rkey)) in left {
        assert!(memory.remote(pd, 1, rkey, i as u64, 1, need).is_ok());
        memory.dereg_mr(id).unwrap();
    }
    assert_eq!(memory.mr_count(), 0);
    assert_eq!(memory.dealloc_pd(pd), Ok(()));
}
