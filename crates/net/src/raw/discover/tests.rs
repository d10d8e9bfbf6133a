use super::*;

const A: Mac = Mac([2, 0, 0, 0, 0, 0xa]);
const B: Mac = Mac([2, 0, 0, 0, 0, 0xb]);

fn us(text: &str, mac: Mac, vlan: Option<VlanTag>) -> Us {
    Us { address: text.parse().unwrap(), mac, vlan }
}

#[test]
fn a_question_is_heard_and_its_answer_too() {
    let tag = Some(VlanTag { id: 9, priority: 3 });
    for (a, b) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
        for vlan in [None, tag] {
            let (a, b) = (us(a, A, vlan), us(b, B, vlan));
            let question = a.ask(b.address).unwrap();
            let heard = b.hear(&question).unwrap();
            assert_eq!(heard, Heard { of: a.address, mac: A, asks_us: true });
            let answer = b.answer(&heard).unwrap();
            assert_eq!(&answer[..6], &A.0, "to the asker alone");
            assert_eq!(a.hear(&answer), Some(Heard { of: b.address, mac: B, asks_us: false }));
            // For somebody else it is no question.
            let third = us(if a.address.is_ipv4() { "10.0.0.3" } else { "fd00::3" }, B, vlan);
            assert!(!third.hear(&question).unwrap().asks_us);
        }
    }
}

#[test]
fn an_arp_request_is_as_rfc_826_has_it() {
    let question = us("10.0.0.1", A, None).ask([10, 0, 0, 2].into()).unwrap();
    let wanted = [
        &[0xff; 6][..],
        &A.0,
        &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
        &A.0,
        &[10, 0, 0, 1],
        &[0; 6],
        &[10, 0, 0, 2],
    ];
    assert_eq!(question, wanted.concat());
}

#[test]
fn a_solicitation_goes_to_the_targets_group() {
    let target: IpAddr = "fd00::1:ab12:3456".parse().unwrap();
    let question = us("fd00::1", A, None).ask(target).unwrap();
    assert_eq!(question[..6], [0x33, 0x33, 0xff, 0x12, 0x34, 0x56]);
    assert_eq!(question[38..54], "ff02::1:ff12:3456".parse::<Ipv6Addr>().unwrap().octets());
    assert_eq!(question[21], 255, "hop limit");
}

#[test]
fn groups_have_hardware_addresses_of_their_own() {
    assert_eq!(group_mac([239, 129, 2, 3].into()), Mac([1, 0, 0x5e, 1, 2, 3]));
    let v6: IpAddr = "ff0e::1234:5678".parse().unwrap();
    assert_eq!(group_mac(v6), Mac([0x33, 0x33, 0x12, 0x34, 0x56, 0x78]));
}

#[test]
fn nothing_is_learned_from_a_broken_frame() {
    for (a, b) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
        let (a, b) = (us(a, A, None), us(b, B, None));
        let answer = b.answer(&Heard { of: a.address, mac: A, asks_us: true }).unwrap();
        for len in 0..answer.len() {
            assert_eq!(a.hear(&answer[..len]), None, "cut to {len}");
        }
    }
    let (a, b) = (us("fd00::1", A, None), us("fd00::2", B, None));
    let answer = b.answer(&Heard { of: a.address, mac: A, asks_us: true }).unwrap();
    // Hop limit, a byte under the checksum, the option's length.
    for at in [21, 77, 79] {
        let mut bad = answer.clone();
        bad[at] ^= 1;
        assert_eq!(a.hear(&bad), None, "byte {at}");
    }
}

#[test]
fn a_group_or_nobody_is_no_neighbours_hardware_address() {
    let a = us("10.0.0.1", A, None);
    for mac in [Mac([1, 0, 0x5e, 0, 0, 1]), Mac([0xff; 6]), Mac([0; 6])] {
        let b = us("10.0.0.2", mac, None);
        let answer = b.answer(&Heard { of: a.address, mac: A, asks_us: true }).unwrap();
        assert_eq!(a.hear(&answer), None, "{mac}");
    }
}
