//! What tshark reads in the files that taps write.

use std::process::Command;
use std::time::Duration;

use urxe_net::raw::{IpId, RawConfig, RawPort, VlanTag};
use urxe_net::tap::{Direction, Tap};
use urxe_net::udp::{UdpConfig, UdpPort};

use crate::namespace::pair;
use crate::pairs::address;
use crate::traffic::{collect, flow, send};

const FIELDS: [&str; 7] = [
    "infiniband.bth.psn",
    "ip.id",
    "vlan.id",
    "frame.comment",
    "frame.p2p_dir",
    "frame.time_epoch",
    "_ws.malformed",
];

/// What tshark reads: a line of fields per packet; `None` where it is not installed.
fn read(path: &std::path::Path) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    // It would guess at what an application's bytes are.
    command.args(["--disable-protocol", "rpcordma"]);
    command.args(["-n", "-T", "fields", "-o", "ip.check_checksum:TRUE"]);
    FIELDS.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let out = match command.arg("-r").arg(path).output() {
        Ok(out) => out,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: tshark is not installed");
            return None;
        }
        Err(e) => panic!("{e}"),
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    Some(text.lines().map(|l| l.split('\t').map(Into::into).collect()).collect())
}

#[test]
fn tshark_reads_taps_of_udp_and_raw_ports() {
    let Some((a, b)) = pair() else { return };
    let dir = std::env::temp_dir().join(format!("urxe-net-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let clock = || Duration::new(1_700_000_000, 123_456_789);
    for v6 in [false, true] {
        let (here, there) = (address(v6, 1), address(v6, 2));
        let udp = a.run(move || UdpPort::open(&UdpConfig::new(here)).unwrap());
        let config = RawConfig { ip_id: IpId::Fixed(0x1234), ..RawConfig::new(there) };
        let raw = b.run(move || RawPort::open(&config).unwrap());
        let paths = [dir.join("udp.pcapng"), dir.join("raw.pcapng")];
        let udp = Tap::create(udp, &paths[0], clock).unwrap();
        let raw = Tap::create(raw, &paths[1], clock).unwrap();
        send(&udp, flow(here, there), &[1024, 64, 0]);
        assert_eq!(collect(&udp, &raw, 3).len(), 3);
        send(&raw, flow(there, here), &[512]);
        assert_eq!(collect(&raw, &udp, 1).len(), 1);
        raw.handle().comment_last(Direction::Received, "dropped: a reason");
        drop((udp, raw));
        for (nth, path) in paths.iter().enumerate() {
            let Some(lines) = read(path) else { return };
            assert_eq!(lines.len(), 4, "{lines:?}");
            for (i, line) in lines.iter().enumerate() {
                let [psn, id, vlan, comment, _direction, time, malformed] = &line[..] else {
                    panic!("{line:?}");
                };
                assert_eq!(*psn, ["0", "1", "2", "0"][i], "{line:?}");
                // The identification of the last, seen by one side and solved for by the other.
                let ids = ["0x0000", "0x0000", "0x0000", "0x1234"];
                assert_eq!(*id, if v6 { "" } else { ids[i] }, "{line:?}");
                let commented = (nth, i) == (1, 2);
                assert_eq!(*comment, if commented { "dropped: a reason" } else { "" }, "{line:?}");
                assert_eq!((vlan.as_str(), malformed.as_str()), ("", ""), "{line:?}");
                assert_eq!(time, "1700000000.123456789");
            }
        }
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn tshark_reads_the_vlan_of_what_a_raw_port_sends_and_gets() {
    let Some((a, b)) = pair() else { return };
    let dir = std::env::temp_dir().join(format!("urxe-net-vlan-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (here, there) = (address(false, 1), address(false, 2));
    let open = |address| {
        let vlan = Some(VlanTag { id: 300, priority: 6 });
        move || RawPort::open(&RawConfig { vlan, ..RawConfig::new(address) }).unwrap()
    };
    let paths = [dir.join("out.pcapng"), dir.join("in.pcapng")];
    let clock = || Duration::from_secs(1);
    let tx = Tap::create(a.run(open(here)), &paths[0], clock).unwrap();
    let rx = Tap::create(b.run(open(there)), &paths[1], clock).unwrap();
    // The first waits for the neighbour, the second leaves at once.
    for _ in 0..2 {
        send(&tx, flow(here, there), &[256]);
        collect(&tx, &rx, 1);
    }
    drop((tx, rx));
    for path in &paths {
        let Some(lines) = read(path) else { return };
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|l| l[2] == "300" && l[6].is_empty()), "{lines:?}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}
