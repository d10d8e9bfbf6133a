//! Starting a broker: for an address that has none, or one whose broker has been killed.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::launch::{self, Parts, Tokens};
use super::message::Token;
use super::{SLOTS, group, name, pass};
use crate::PortError;

/// Starts one with new sockets, unless another process is about to: the name is one's only.
pub(super) fn anew(to: &SocketAddrUnix, address: IpAddr) -> Result<(), PortError> {
    let fail = |call| move |e: Errno| PortError::socket(call, address)(e.into());
    let Some(listener) = bind(to).map_err(fail("the broker's name"))? else {
        return Ok(());
    };
    let sockets = launch::owned(group::open(address)?);
    let tokens = launch::new_tokens();
    let vault = launch::vault(&sockets, &tokens).map_err(|e| match e {
        Errno::TOOMANYREFS => PortError::TooManyInFlight { address },
        e => fail("keeping the sockets")(e),
    })?;
    let parts = Parts { address, listener, sockets, tokens, vault };
    launch::launch(&parts).map_err(PortError::socket("starting the broker", address))?;
    tracing::debug!(%address, "broker started");
    Ok(())
}

/// Starts one with the sockets that `vault` keeps, unless another process is about to.
pub(super) fn again(
    to: &SocketAddrUnix,
    address: IpAddr,
    vault: &OwnedFd,
) -> Result<(), PortError> {
    let fail = |call| move |e: Errno| PortError::socket(call, address)(e.into());
    let Some(listener) = bind(to).map_err(fail("the broker's name"))? else {
        return Ok(());
    };
    let (sockets, tokens) = look_into(vault).map_err(fail("reading the kept sockets"))?;
    let vault = vault.try_clone().map_err(PortError::socket("dup", address))?;
    let parts = Parts { address, listener, sockets, tokens, vault };
    launch::launch(&parts).map_err(PortError::socket("starting the broker", address))?;
    tracing::info!(%address, "the broker was gone and has been started again");
    Ok(())
}

/// The sockets in their order, and the tokens; they stay where they are too.
fn look_into(vault: &OwnedFd) -> Result<([OwnedFd; SLOTS], Tokens), Errno> {
    let mut all = Vec::with_capacity(SLOTS);
    let mut bytes = [[0; size_of::<Token>()]; SLOTS];
    pass::recv(vault.as_fd(), bytes.as_flattened_mut(), true, |fd| all.push(fd))?;
    Ok((all.try_into().map_err(|_| Errno::MFILE)?, bytes.map(Token::from_ne_bytes)))
}

/// `None` where another has the name.
fn bind(to: &SocketAddrUnix) -> Result<Option<OwnedFd>, Errno> {
    let listener = name::socket()?;
    match rustix::net::bind(&listener, to) {
        Err(Errno::ADDRINUSE) => return Ok(None),
        other => other?,
    }
    rustix::net::listen(&listener, 128)?;
    Ok(Some(listener))
}
