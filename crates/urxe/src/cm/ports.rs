//! Port numbers of a device's ids.

use std::collections::HashMap;

use urxe_wire::cm::PortSpace;

/// Ports for those who do not ask for one (RFC 6335, section 6: the dynamic ones).
const FIRST: u16 = 49152;
const COUNT: u32 = 65536 - 49152;

/// Which ports have been bound, and how often.
#[derive(Debug)]
pub(super) struct Ports {
    bound: HashMap<(PortSpace, u16), usize>,
    next: u32,
}

impl Ports {
    pub(super) fn new(seed: u64) -> Self {
        let next = u32::try_from(seed % u64::from(COUNT)).unwrap_or(0);
        Self { bound: HashMap::new(), next }
    }

    /// Binds a port; says whether that is done, for without `again` nobody else may have it.
    pub(super) fn bind(&mut self, space: PortSpace, port: u16, again: bool) -> bool {
        let users = self.bound.entry((space, port)).or_insert(0);
        let free = *users == 0 || again;
        *users += usize::from(free);
        free
    }

    /// Binds one that nobody has, if there is any.
    pub(super) fn any(&mut self, space: PortSpace) -> Option<u16> {
        for _ in 0..COUNT {
            let port = FIRST + u16::try_from(self.next).unwrap_or(0);
            self.next = (self.next + 1) % COUNT;
            if self.bind(space, port, false) {
                return Some(port);
            }
        }
        None
    }

    pub(super) fn free(&mut self, space: PortSpace, port: u16) {
        if let Some(users) = self.bound.get_mut(&(space, port)) {
            *users -= 1;
            if *users == 0 {
                self.bound.remove(&(space, port));
            }
        }
    }
}
