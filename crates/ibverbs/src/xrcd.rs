//! XRC domains.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::call::{Fail, code, input, pointer};
use crate::context::{self, Opening, Owned};
use crate::layout::{IbvContext, IbvXrcd, IbvXrcdInitAttr};
use crate::object::{Kind, get, kind};

/// An XRC domain.
#[derive(Debug)]
pub(crate) struct Xrcd {
    pub(crate) xrcd: urxe::Xrcd,
    opening: Arc<Opening>,
}

kind!(Xrcd, "XRC domain", IbvXrcd);

impl Owned for Xrcd {
    fn opening(&self) -> &Arc<Opening> {
        &self.opening
    }
}

/// `IBV_XRCD_INIT_ATTR_FD`, `_OFLAGS`.
const MASK: u32 = 3;

/// Domains that a file names: whoever opens one of the same file gets the same. The NIC is this
/// process's alone, so others cannot.
static NAMED: Mutex<Option<Named>> = Mutex::new(None);

/// By device and inode.
type Named = HashMap<(u64, u64), Vec<usize>>;

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn open_xrcd(
    context: *mut IbvContext,
    attr: *mut IbvXrcdInitAttr,
) -> *mut IbvXrcd {
    pointer("ibv_open_xrcd", || {
        let opening = Arc::clone(&context::of(context)?.own().opening);
        // SAFETY: the caller's.
        let attr = unsafe { input(attr, "xrcd_init_attr") }?;
        if attr.comp_mask & MASK != MASK {
            return Err(Fail::invalid(format!(
                "comp_mask {:#x}; FD and OFLAGS are wanted",
                attr.comp_mask
            )));
        }
        let make = |xrcd| {
            let own = Xrcd { xrcd, opening: Arc::clone(&opening) };
            let made = Xrcd::pool().make(|_| Ok((IbvXrcd { context }, own)))?;
            Ok::<_, Fail>(made.public())
        };
        if attr.fd == -1 {
            if attr.oflags & libc::O_CREAT == 0 {
                return Err(Fail::invalid("without a file a domain can only be made: O_CREAT"));
            }
            return make(opening.nic.alloc_xrcd()?);
        }
        let file = context::file(attr.fd)?;
        let mut named = NAMED.lock();
        let same = named.get_or_insert_default().entry(file).or_default();
        same.retain(|at| get::<Xrcd>(std::ptr::with_exposed_provenance(*at)).is_ok());
        let there = same.first().map(|at| get::<Xrcd>(std::ptr::with_exposed_provenance(*at)));
        let xrcd = match there {
            Some(_) if attr.oflags & libc::O_EXCL != 0 => {
                return Err(Fail::invalid("the file has a domain, and O_EXCL wants a new one"));
            }
            Some(domain) => domain?.own().xrcd.clone(),
            None if attr.oflags & libc::O_CREAT == 0 => {
                return Err(Fail::invalid("the file has no domain; O_CREAT makes one"));
            }
            None => opening.nic.alloc_xrcd()?,
        };
        let made = make(xrcd)?;
        same.push(made.expose_provenance());
        Ok(made)
    })
}

pub(crate) extern "C" fn close_xrcd(xrcd: *mut IbvXrcd) -> c_int {
    code("ibv_close_xrcd", || Xrcd::pool().destroy(get::<Xrcd>(xrcd)?))
}
