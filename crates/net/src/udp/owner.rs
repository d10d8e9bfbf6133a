//! Whose an address is that is taken: another user's urxe processes, which share it among
//! themselves, are told apart from what else may have it.

use std::fs;
use std::net::IpAddr;

use urxe_wire::ROCE_UDP_PORT;

use crate::PortError;
use crate::shared::SLOTS;

/// The table is no picture of one moment: while other sockets are closed, lines are left out.
const TRIES: usize = 4;
/// Sockets that make a group a shared address's: some of its lines may be left out.
const GROUP: usize = SLOTS / 2;

/// Names the user who shares an address that is taken; other errors stay as they are.
pub(crate) fn named(error: PortError) -> PortError {
    let PortError::Taken(address) = error else { return error };
    match (0..TRIES).find_map(|_| group_of(&table_of(address), address)) {
        Some(user) if user != rustix::process::geteuid().as_raw() => {
            PortError::OtherUser { address, user }
        }
        _ => error,
    }
}

/// The kernel's sockets of the family of `address`; nothing where it does not tell.
fn table_of(address: IpAddr) -> String {
    let file = if address.is_ipv4() { "udp" } else { "udp6" };
    // Of the thread: it may be in a network namespace of its own.
    fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default()
}

/// The user with about as many sockets on our port of `address` as a shared address has.
fn group_of(table: &str, address: IpAddr) -> Option<u32> {
    // Words of the host's byte order, as Linux net/ipv4/udp.c and net/ipv6/datagram.c print them.
    let word = |b: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(b));
    let text: String = match address {
        IpAddr::V4(v4) => word(v4.octets()),
        IpAddr::V6(v6) => v6.octets().as_chunks().0.iter().map(|w| word(*w)).collect(),
    };
    let local = format!("{text}:{ROCE_UDP_PORT:04X}");
    let user = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let ours = fields.nth(1)? == local;
        fields.nth(5)?.parse::<u32>().ok().filter(|_| ours)
    };
    let mut users = table.lines().filter_map(user);
    let first = users.next()?;
    let as_many = 1 + users.filter(|user| *user == first).count();
    (as_many >= GROUP).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{UdpConfig, UdpPort};

    fn table(lines: usize, user: u32, local: &str) -> String {
        let line = format!(
            "77: {local}:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000 {user:5} 0 \
             26140 2 0000000000000000 0\n"
        );
        let head = "sl local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid\n";
        format!("{head}{}", line.repeat(lines))
    }

    #[test]
    fn only_a_group_of_sockets_is_a_shared_address() {
        let here = IpAddr::from([127, 0, 0, 9]);
        let v4 = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 9]));
        assert_eq!(group_of(&table(SLOTS, 1001, &v4), here), Some(1001));
        assert_eq!(group_of(&table(GROUP - 1, 1001, &v4), here), None, "some other program");
        assert_eq!(group_of(&table(SLOTS, 1001, &v4), [127, 0, 0, 8].into()), None);
        let ones = format!("{0:08X}{0:08X}{0:08X}{1:08X}", 0, u32::from_ne_bytes([0, 0, 0, 1]));
        assert_eq!(group_of(&table(SLOTS, 7, &ones), "::1".parse().unwrap()), Some(7));
        assert_eq!(group_of("", here), None);
    }

    /// The kernel's own table, of our own group; that is not another user's.
    #[test]
    fn the_kernels_table_shows_a_shared_address() {
        let [.., c, d] = std::process::id().to_be_bytes();
        let here = IpAddr::from([127, c.clamp(1, 254), d.clamp(1, 254), 141]);
        let _port = UdpPort::open(&UdpConfig { shared: true, ..UdpConfig::new(here) }).unwrap();
        // Tests beside this one open and close groups of their own; see TRIES.
        let user = (0..1000).find_map(|_| group_of(&table_of(here), here));
        assert_eq!(user, Some(rustix::process::geteuid().as_raw()));
        assert!(matches!(named(PortError::Taken(here)), PortError::Taken(_)));
    }
}
