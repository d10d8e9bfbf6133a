//! XRC domains.

use std::ffi::c_int;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::call::{Fail, code, input, pointer};
use crate::context::{self, Opening, owned};
use crate::fork;
use crate::layout::{IbvContext, IbvXrcd, IbvXrcdInitAttr};
use crate::object::{Kind, get, kind};

/// An XRC domain.
#[derive(Debug)]
pub(crate) struct Xrcd {
    pub(crate) xrcd: urxe::Xrcd,
    opening: Arc<Opening>,
    file: Option<File>,
}

/// The file that names a domain: whoever opens one of the same file gets the same. The NIC is this
/// process's alone, so others cannot.
#[derive(Debug)]
struct File {
    /// Device and inode.
    name: (libc::dev_t, libc::ino_t),
    /// Keeps the inode from becoming another file's, as the kernel does.
    _open: OwnedFd,
}

impl File {
    fn of(fd: c_int) -> Result<Self, Fail> {
        let name = context::file(fd)?;
        // SAFETY: any number may be given as a descriptor.
        let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
        if copy < 0 {
            return Err(Fail::host("fcntl"));
        }
        // SAFETY: it is open and nobody else's.
        Ok(Self { name, _open: unsafe { OwnedFd::from_raw_fd(copy) } })
    }
}

/// One domain is opened at a time, so that two of a file are not made.
static OPENS: Mutex<()> = Mutex::new(());

/// The parent's calls are not this process's.
///
/// # Safety
/// No other thread is there.
pub(crate) unsafe fn in_child() {
    // SAFETY: the caller's.
    unsafe { fork::renew(&OPENS, ()) };
}

kind!(Xrcd, "XRC domain", IbvXrcd);

owned!(Xrcd);

/// `IBV_XRCD_INIT_ATTR_FD`, `_OFLAGS`.
const MASK: u32 = 3;

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
        let make = |xrcd, file| {
            let own = Xrcd { xrcd, opening: Arc::clone(&opening), file };
            let made = Xrcd::pool().make(|_| Ok((IbvXrcd { context }, own)))?;
            Ok::<_, Fail>(made.public())
        };
        if attr.fd == -1 {
            if attr.oflags & libc::O_CREAT == 0 {
                return Err(Fail::invalid("without a file a domain can only be made: O_CREAT"));
            }
            return make(opening.nic.alloc_xrcd()?, None);
        }
        opening.check_ours()?;
        let file = File::of(attr.fd)?;
        let _one = OPENS.lock();
        let there = Xrcd::pool().first(|object| {
            let own = object.own();
            let is = own.file.as_ref().is_some_and(|named| named.name == file.name);
            (is && own.opening.is_ours()).then(|| own.xrcd.clone())
        });
        let xrcd = match there {
            Some(_) if attr.oflags & libc::O_EXCL != 0 => {
                return Err(Fail::invalid("the file has a domain, and O_EXCL wants a new one"));
            }
            Some(domain) => domain,
            None if attr.oflags & libc::O_CREAT == 0 => {
                return Err(Fail::invalid("the file has no domain; O_CREAT makes one"));
            }
            None => opening.nic.alloc_xrcd()?,
        };
        make(xrcd, Some(file))
    })
}

pub(crate) extern "C" fn close_xrcd(xrcd: *mut IbvXrcd) -> c_int {
    code("ibv_close_xrcd", || Xrcd::pool().destroy(get::<Xrcd>(xrcd)?))
}
