//! Where the demo's devices are: four are open at a time, two on each kind of link.

use std::net::{IpAddr, Ipv4Addr};

use urxe::{Address, Config, Context, Error, PortError, PortKind};

use super::Failure;

/// Addresses for devices, one after the other.
#[derive(Debug)]
pub(super) enum Places {
    /// What the configuration asks for is good for all of them.
    AsAsked,
    /// An address of loopback for each, from this last octet on.
    Loopback(u8),
}

impl Places {
    /// What `config` has room for; where that is less than four devices, what to give instead.
    pub(super) fn of(config: &mut Config) -> Result<Self, Failure> {
        match (&config.port, config.address) {
            (PortKind::Udp, Address::Loopback) => Ok(Self::AsAsked),
            (PortKind::Udp, Address::Of(address)) => match config.shared {
                Some(false) => Err(format!(
                    "the demo opens four devices, and an address that is not shared has room for \
                     one: leave out --shared off, or --addr {address}"
                )
                .into()),
                None | Some(true) => {
                    config.shared = Some(true);
                    Ok(Self::AsAsked)
                }
            },
            (PortKind::Raw(interface), address) => Self::raw(interface, address),
        }
    }

    fn raw(interface: &str, address: Address) -> Result<Self, Failure> {
        let all = urxe::interfaces().map_err(|e| format!("listing the interfaces: {e}"))?;
        let mut on_it = all.iter().filter(|i| i.name == interface).peekable();
        // That there is none the device says itself.
        if on_it.peek().is_some() && !on_it.any(|i| i.address.is_loopback()) {
            return Err(format!(
                "all NICs of the demo are on this host, and what one sends through {interface} \
                 does not come back to another: give --port raw:lo, or leave --port out"
            )
            .into());
        }
        match address {
            Address::Loopback => Ok(Self::Loopback(1)),
            Address::Of(address) => Err(format!(
                "the demo opens four devices, and each needs an address of its own on \
                 raw:{interface}: leave out --addr {address}"
            )
            .into()),
        }
    }

    /// Opens a device on the next of them.
    pub(super) fn open(&mut self, config: &Config) -> Result<Context, Error> {
        let Self::Loopback(next) = self else { return Context::open(config) };
        loop {
            let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, *next));
            let config = Config { address: Address::Of(address), ..config.clone() };
            match Context::open(&config) {
                Err(Error::Port(PortError::Taken(_) | PortError::OtherUser { .. }))
                    if *next < u8::MAX =>
                {
                    *next += 1;
                }
                ended => {
                    *next = next.saturating_add(1);
                    return ended;
                }
            }
        }
    }
}
