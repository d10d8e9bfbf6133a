//! Multicast groups of a device: the port is in one as long as a QP is.

use std::collections::BTreeMap;
use std::net::IpAddr;

use parking_lot::Mutex;
use urxe_wire::Qpn;

use crate::Error;
use crate::device::Device;

/// How many QPs are in each group that the port has joined.
#[derive(Debug, Default)]
pub(crate) struct Groups(Mutex<BTreeMap<IpAddr, usize>>);

impl Device {
    /// Puts a QP that is not in the group in it; the first one takes the port along.
    pub(crate) fn join(&self, qpn: Qpn, group: IpAddr) -> Result<(), Error> {
        let joined = &mut *self.groups.0.lock();
        self.nic.attach_mcast(qpn, group)?;
        let members = joined.entry(group).or_default();
        if *members == 0
            && let Err(error) = self.port.join(group)
        {
            joined.remove(&group);
            self.nic.detach_mcast(qpn, group)?;
            return Err(error.into());
        }
        *members += 1;
        Ok(())
    }

    /// Takes a QP out of the group; the last one takes the port along.
    pub(crate) fn leave(&self, qpn: Qpn, group: IpAddr) -> Result<(), Error> {
        let joined = &mut *self.groups.0.lock();
        self.nic.detach_mcast(qpn, group)?;
        let members = joined.get_mut(&group).map_or(0, |n| {
            *n = n.saturating_sub(1);
            *n
        });
        if members == 0 && joined.remove(&group).is_some() {
            self.port.leave(group)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
