//! The device list: one device, `urxe0`.

use std::ffi::{c_char, c_int};
use std::net::IpAddr;
use std::ptr;

use parking_lot::Mutex;

use crate::call::{Fail, code, number, or, pointer};
use crate::layout::consts::{NODE_CA, TRANSPORT_IB};
use crate::layout::{IbvDevice, Zero};
use crate::object::{Kind, get, kind};
use crate::{fork, nic};

/// What libmlx5 and libefa take a device for: they read the word behind `ibv_device` to see
/// whether it is theirs (`verbs_device` has 712 bytes).
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct VerbsDevice {
    device: IbvDevice,
    _rest: [u64; 6],
}

const _: () = assert!(size_of::<VerbsDevice>() == 712);

/// A device in the list.
#[derive(Debug)]
pub(crate) struct Device;

kind!(Device, "device", IbvDevice, VerbsDevice, 0);

/// Text in a field of so many bytes, cut if need be; zeros follow.
pub(crate) fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes[..N - 1].iter_mut().zip(text.bytes()) {
        *to = from;
    }
    bytes
}

/// The device, made when it is first asked for and there from then on.
pub(crate) fn the_device() -> Result<*mut IbvDevice, Fail> {
    static ONE: Mutex<Option<usize>> = Mutex::new(None);
    let one = &mut *ONE.lock();
    if let Some(address) = *one {
        return Ok(ptr::with_exposed_provenance_mut(address));
    }
    fork::watch();
    let made = Device::pool().make(|_| {
        let device = IbvDevice {
            node_type: NODE_CA,
            transport_type: TRANSPORT_IB,
            name: text("urxe0"),
            dev_name: text("uverbs0"),
            dev_path: text("/sys/class/infiniband_verbs/uverbs0"),
            ibdev_path: text("/sys/class/infiniband/urxe0"),
            ..IbvDevice::zero()
        };
        Ok((VerbsDevice { device, _rest: [0; 6] }, Device))
    })?;
    *one = Some(made.public().expose_provenance());
    Ok(made.public())
}

/// Its GUID, made of its address; without one of its own, it is on the loopback network.
pub(crate) fn guid() -> [u8; 8] {
    let bytes = match nic::address() {
        Some(IpAddr::V4(address)) => address.octets(),
        Some(IpAddr::V6(address)) => {
            let o = address.octets();
            [o[12], o[13], o[14], o[15]]
        }
        None => [127, 0, 0, 0],
    };
    let [a, b, c, d] = bytes;
    // An EUI-64 with the bit that says that nobody assigned it.
    [0x02, 0x00, a, 0xff, 0xfe, b, c, d]
}

/// # Safety
/// As for `ibv_get_device_list`: `count` is null or points to an int.
pub(crate) unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut IbvDevice {
    pointer("ibv_get_device_list", || {
        let device = the_device()?;
        // SAFETY: plain allocation of two pointers, zeroed.
        let list = unsafe { libc::calloc(2, size_of::<*mut IbvDevice>()) };
        let list = list.cast::<*mut IbvDevice>();
        if list.is_null() {
            return Err(Fail::host("calloc"));
        }
        // SAFETY: it has room for two.
        unsafe { list.write(device) };
        if !count.is_null() {
            // SAFETY: the caller's int.
            unsafe { count.write(1) };
        }
        Ok(list)
    })
}

/// # Safety
/// `list` is null or was given by [`get_device_list`] and not freed.
pub(crate) unsafe extern "C" fn free_device_list(list: *mut *mut IbvDevice) {
    // SAFETY: it was allocated with calloc; null is nothing to free.
    unsafe { libc::free(list.cast()) };
}

pub(crate) extern "C" fn get_device_name(device: *mut IbvDevice) -> *const c_char {
    or("ibv_get_device_name", ptr::null(), || {
        let name = get::<Device>(device)?.public().cast::<u8>();
        Ok(name.wrapping_add(std::mem::offset_of!(IbvDevice, name)).cast::<c_char>().cast_const())
    })
}

pub(crate) extern "C" fn get_device_index(device: *mut IbvDevice) -> c_int {
    number("ibv_get_device_index", || get::<Device>(device).map(|_| 0))
}

/// In network byte order, as it stands in memory.
pub(crate) extern "C" fn get_device_guid(device: *mut IbvDevice) -> u64 {
    or("ibv_get_device_guid", 0, || {
        get::<Device>(device)?;
        Ok(u64::from_ne_bytes(guid()))
    })
}

pub(crate) extern "C" fn fork_init() -> c_int {
    // Memory is neither pinned nor mapped by a card: a child's copy is no trouble.
    code("ibv_fork_init", || Ok(()))
}

pub(crate) extern "C" fn is_fork_initialized() -> c_int {
    crate::layout::consts::FORK_UNNEEDED
}

pub(crate) extern "C" fn fork_range(_base: *mut std::ffi::c_void, _size: usize) -> c_int {
    0
}
