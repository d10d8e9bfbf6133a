//! Open devices: `ibv_context`, and the functions that inline calls find in it.

use std::collections::HashMap;
use std::ffi::c_int;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use urxe::{CqId, Qpn};

use crate::ah::Ah;
use crate::call::{Fail, code, pointer};
use crate::channel::Channel;
use crate::clock::Epoch;
use crate::cq::Cq;
use crate::device::Device;
use crate::dm::Dm;
use crate::domain::Td;
use crate::layout::{IbvContext, IbvContextOps, IbvDevice, VerbsContext, Zero};
use crate::mr::{self, Mr};
use crate::mw::Mw;
use crate::nic::{self, Nic};
use crate::object::{Kind, Object, get, kind};
use crate::ops;
use crate::pd::Pd;
use crate::qp::Qp;
use crate::srq::Srq;
use crate::xrcd::Xrcd;

/// An open device.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) opening: Arc<Opening>,
}

kind!(Context, "context", IbvContext, VerbsContext, std::mem::offset_of!(VerbsContext, context));

/// What an open device and its imports share.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) nic: urxe::Context,
    _shared: Arc<Nic>,
    /// What programs hand to `ibv_import_device`: a file of its own, so that its duplicates can be
    /// known.
    cmd: OwnedFd,
    /// The service level that datagrams' completions tell of (`URXE_WC_SL`, 0 to 15). UCX reads
    /// the kind of their IP header from it, as mlx5 has it: 10 is IPv4 and UDP.
    pub(crate) wc_sl: u8,
    /// For completions' timestamps.
    pub(crate) epoch: Epoch,
    pub(crate) books: Mutex<Books>,
}

impl Opening {
    /// Whether this process opened the device.
    pub(crate) fn is_ours(&self) -> bool {
        self.nic.is_ours()
    }

    /// # Errors
    /// EIO, where it did not.
    pub(crate) fn check_ours(&self) -> Result<(), Fail> {
        if self.is_ours() { Ok(()) } else { Err(urxe::Error::Forked.into()) }
    }

    /// The books, to strike out an object that is being destroyed. In a child of the process that
    /// opened the device they are of no use, and perhaps locked.
    pub(crate) fn strike(&self, out: impl FnOnce(&mut Books)) {
        if self.is_ours() {
            out(&mut self.books.lock());
        }
    }
}

/// Which objects events are of. Locked while an event is handed out, so that an object that is
/// being destroyed gets no more.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) cqs: HashMap<CqId, &'static Object<Cq>>,
    /// With the number that its events come with; see [`urxe::QpShare`].
    pub(crate) qps: HashMap<(Qpn, u32), &'static Object<Qp>>,
    pub(crate) srqs: HashMap<u32, &'static Object<Srq>>,
}

/// Where the program's part of the context is that all calls are made through.
pub(crate) fn of(context: *const IbvContext) -> Result<&'static Object<Context>, Fail> {
    get::<Context>(context)
}

/// `abi_compat` of a context that has a `verbs_context` around it.
const EXTENDED: *mut std::ffi::c_void = std::ptr::without_provenance_mut(usize::MAX);

fn make(device: *mut IbvDevice, opening: Arc<Opening>) -> Result<*mut IbvContext, Fail> {
    let context = IbvContext {
        device,
        ops: IbvContextOps { ..ops::basic() },
        cmd_fd: opening.cmd.as_raw_fd(),
        async_fd: opening.nic.async_fd().as_raw_fd(),
        num_comp_vectors: 1,
        abi_compat: EXTENDED,
        ..IbvContext::zero()
    };
    let whole = VerbsContext { context, sz: size_of::<VerbsContext>(), ..ops::extended() };
    let made = Context::pool().make(|_| Ok((whole, Context { opening })))?;
    Ok(made.public())
}

/// Opens a device; at `wanted` if its address is free to choose, and nobody has it open.
pub(crate) fn open(
    device: *mut IbvDevice,
    wanted: Option<IpAddr>,
) -> Result<*mut IbvContext, Fail> {
    get::<Device>(device)?;
    let (shared, nic) = Nic::open(wanted)?;
    // SAFETY: a plain call; the name is a C string.
    let fd = unsafe { libc::memfd_create(c"urxe".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(Fail::host("memfd_create"));
    }
    // SAFETY: it is open and nobody else's.
    let cmd = unsafe { OwnedFd::from_raw_fd(fd) };
    let (books, wc_sl, epoch) = (Mutex::default(), nic::wc_sl()?, Epoch::of(&nic));
    make(device, Arc::new(Opening { nic, _shared: shared, cmd, wc_sl, epoch, books }))
}

pub(crate) extern "C" fn open_device(device: *mut IbvDevice) -> *mut IbvContext {
    pointer("ibv_open_device", || open(device, None))
}

pub(crate) extern "C" fn close_device(context: *mut IbvContext) -> c_int {
    code("ibv_close_device", || {
        let object = of(context)?;
        let opening = Arc::clone(&object.own().opening);
        Context::pool().destroy(object)?;
        let same = |other: &'static Object<Context>| {
            Arc::ptr_eq(&other.own().opening, &opening).then_some(())
        };
        if Context::pool().first(same).is_none() {
            leave_nothing(&opening);
        }
        Ok(())
    })
}

/// An object that is of an open device.
pub(crate) trait Owned: Kind {
    fn opening(&self) -> &Arc<Opening>;
}

/// Says that a kind is of an open device, which it has as `opening`; and, with the place in the
/// program's part, that it has a handle.
macro_rules! owned {
    ($own:ty) => {
        impl $crate::context::Owned for $own {
            fn opening(&self) -> &std::sync::Arc<$crate::context::Opening> {
                &self.opening
            }
        }
    };
    ($own:ty, $($handle:ident).+) => {
        owned!($own);

        impl $crate::handle::Handled for $own {
            fn handle(&self) -> u32 {
                self.handle
            }

            fn shown(public: *mut <Self as $crate::object::Kind>::Public) -> u32 {
                // SAFETY: a live object's.
                unsafe { (*public).$($handle).+ }
            }
        }
    };
}
pub(crate) use owned;

/// Destroys what is left of a device as it is closed, as the kernel does: those that need others
/// first.
fn leave_nothing(opening: &Arc<Opening>) {
    opening.strike(|books| *books = Books::default());
    end_all::<Qp>(opening);
    end_all::<Srq>(opening);
    end_all::<Cq>(opening);
    end_all::<Channel>(opening);
    end_all::<Ah>(opening);
    end_all::<Mw>(opening);
    end_all::<Mr>(opening);
    end_all::<mr::Import>(opening);
    // Imported device memory holds that which it is of; parent domains hold theirs.
    for _ in 0..2 {
        end_all::<Dm>(opening);
        end_all::<Xrcd>(opening);
        end_all::<Pd>(opening);
    }
    end_all::<Td>(opening);
}

fn end_all<K: Owned>(opening: &Arc<Opening>) {
    drop(K::pool().begin_end_all(|object| Arc::ptr_eq(object.own().opening(), opening)));
}

/// Which file a descriptor is of.
pub(crate) fn file(fd: c_int) -> Result<(libc::dev_t, libc::ino_t), Fail> {
    // SAFETY: plain data, overwritten by the call.
    let mut stat = unsafe { std::mem::zeroed::<libc::stat>() };
    // SAFETY: `stat` is ours to write; any number may be given as a descriptor.
    if unsafe { libc::fstat(fd, &raw mut stat) } != 0 {
        return Err(Fail::host("fstat"));
    }
    Ok((stat.st_dev, stat.st_ino))
}

pub(crate) extern "C" fn import_device(fd: c_int) -> *mut IbvContext {
    pointer("ibv_import_device", || {
        let wanted = file(fd)?;
        let found = Context::pool().first(|object| {
            let opening = &object.own().opening;
            let there = file(opening.cmd.as_raw_fd()).ok()?;
            // SAFETY: a live context; its device never changes.
            let device = unsafe { (*object.public()).device };
            (opening.is_ours() && there == wanted).then(|| (device, Arc::clone(opening)))
        });
        let why = "the descriptor is no cmd_fd of a device that this process opened";
        let (device, opening) = found.ok_or(Fail::new(libc::EINVAL, why))?;
        make(device, opening)
    })
}
