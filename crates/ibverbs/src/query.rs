//! What device and port are.

use std::ffi::c_int;
use std::net::IpAddr;
use std::ptr;

use urxe::{Gid, PortState};

use crate::call::{Fail, code, input, number, output};
use crate::context;
use crate::device::{guid, text};
use crate::layout::consts as c;
use crate::layout::{
    CompatPortAttr, IbvContext, IbvDeviceAttr, IbvDeviceAttrEx, IbvGidEntry, IbvOdpCaps,
    IbvPortAttr, IbvValuesEx, RawGid, Zero,
};

/// For fields that C has as signed.
fn int(n: u32) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

/// No vendor's, as Linux rxe has it.
const VENDOR: u32 = 0x00ff_ffff;
/// Entries of the GID table; programs are used to most of them being empty.
const GIDS: usize = 16;

fn device_attr(nic: &urxe::Context) -> IbvDeviceAttr {
    let caps = nic.query_device();
    IbvDeviceAttr {
        fw_ver: text(concat!("urxe ", env!("CARGO_PKG_VERSION"))),
        node_guid: guid(),
        sys_image_guid: guid(),
        max_mr_size: u64::MAX,
        page_size_cap: 0xffff_f000,
        vendor_id: VENDOR,
        max_qp: int(caps.max_qp),
        max_qp_wr: int(caps.max_wr),
        device_cap_flags: c::DEVICE_CAPS,
        max_sge: int(caps.max_sge),
        max_sge_rd: int(caps.max_sge),
        max_cq: int(caps.max_cq),
        max_cqe: int(caps.max_cqe),
        max_mr: int(caps.max_mr),
        max_pd: int(caps.max_pd),
        max_qp_rd_atom: caps.max_rd_atomic.into(),
        max_res_rd_atom: int(u32::from(caps.max_rd_atomic) * caps.max_qp),
        max_qp_init_rd_atom: caps.max_rd_atomic.into(),
        atomic_cap: c::ATOMIC_GLOB,
        max_mw: int(caps.max_mw),
        max_mcast_grp: 8192,
        max_mcast_qp_attach: int(caps.max_mcast_qp_attach),
        max_total_mcast_qp_attach: int(caps.max_mcast_qp_attach * 8192),
        max_ah: int(caps.max_ah),
        max_srq: int(caps.max_srq),
        max_srq_wr: int(caps.max_wr),
        max_srq_sge: int(caps.max_sge),
        max_pkeys: 1,
        local_ca_ack_delay: 15,
        phys_port_cnt: 1,
        ..IbvDeviceAttr::zero()
    }
}

/// # Safety
/// `attr` is null or has room for the attributes.
pub(crate) unsafe extern "C" fn query_device(
    context: *mut IbvContext,
    attr: *mut IbvDeviceAttr,
) -> c_int {
    code("ibv_query_device", || {
        let nic = &context::of(context)?.own().opening.nic;
        // SAFETY: the caller's.
        unsafe { output(attr, device_attr(nic), "device_attr") }
    })
}

/// # Safety
/// `wanted` is null or points to the mask, `attr` is null or has room for `size` bytes.
pub(crate) unsafe extern "C" fn query_device_ex(
    context: *mut IbvContext,
    wanted: *const u32,
    attr: *mut IbvDeviceAttrEx,
    size: usize,
) -> c_int {
    code("ibv_query_device_ex", || {
        let nic = &context::of(context)?.own().opening.nic;
        // SAFETY: the caller's.
        if !wanted.is_null() && *unsafe { input(wanted, "input") }? != 0 {
            return Err(Fail::invalid("comp_mask of the input is not 0"));
        }
        let all = IbvDeviceAttrEx {
            orig_attr: device_attr(nic),
            odp_caps: IbvOdpCaps {
                general_caps: c::ODP_SUPPORT | c::ODP_SUPPORT_IMPLICIT,
                rc: c::ODP_RC,
                uc: c::ODP_UC,
                ud: c::ODP_UD,
            },
            // Nanoseconds of the host's monotonic clock.
            completion_timestamp_mask: u64::MAX,
            hca_core_clock: 1_000_000,
            device_cap_flags_ex: u64::from(c::DEVICE_CAPS) | c::DEVICE_CAPS_EX,
            max_dm_size: crate::dm::MOST,
            xrc_odp_caps: c::ODP_RC,
            phys_port_cnt_ex: 1,
            ..IbvDeviceAttrEx::zero()
        };
        // SAFETY: the caller's.
        unsafe { output_part(attr, &all, size) }
    })
}

/// Puts as much of an answer as the program knows of where it wants it.
///
/// # Safety
/// If `to` is not null, it points to room for `size` bytes.
unsafe fn output_part<T>(to: *mut T, all: &T, size: usize) -> Result<(), Fail> {
    if to.is_null() {
        return Err(Fail::invalid("the place for the answer is null"));
    }
    let known = size.min(size_of::<T>());
    // SAFETY: both sides have so many bytes, and `all` is ours, so that they do not overlap.
    unsafe { ptr::from_ref(all).cast::<u8>().copy_to(to.cast(), known) };
    // SAFETY: the caller's room ends at `size`; nothing is written if it ends earlier.
    unsafe { to.cast::<u8>().wrapping_add(known).write_bytes(0, size - known) };
    Ok(())
}

/// A LID, which RoCE does not have, for programs that address by nothing else: the low half of
/// the IPv4 address.
pub(crate) fn lid(address: IpAddr) -> u16 {
    match address {
        IpAddr::V4(address) => u16::from_be_bytes([address.octets()[2], address.octets()[3]]),
        IpAddr::V6(_) => 0,
    }
}

fn port_attr(nic: &urxe::Context) -> CompatPortAttr {
    let port = nic.query_port();
    let up = port.state == PortState::Active;
    CompatPortAttr {
        state: if up { c::PORT_ACTIVE } else { c::PORT_DOWN },
        max_mtu: port.max_mtu.code().into(),
        active_mtu: port.active_mtu.code().into(),
        gid_tbl_len: c_int::try_from(port.gids.len().max(GIDS)).unwrap_or(c_int::MAX),
        port_cap_flags: c::PORT_CAPS,
        max_msg_sz: 1 << 31,
        pkey_tbl_len: 1,
        lid: lid(nic.address()),
        max_vl_num: 1,
        // One lane of EDR: 25 Gbit/s, about what a stream over loopback comes to.
        active_width: 1,
        active_speed: 32,
        // LinkUp, Disabled.
        phys_state: if up { 5 } else { 3 },
        link_layer: c::LINK_LAYER_ETHERNET,
        flags: c::PORT_GRH_REQUIRED,
        ..CompatPortAttr::zero()
    }
}

pub(crate) fn check_port(port: u32) -> Result<(), Fail> {
    if port == 1 { Ok(()) } else { Err(Fail::invalid(format!("port {port}; there is port 1"))) }
}

/// # Safety
/// `attr` is null or has room for `size` bytes.
pub(crate) unsafe extern "C" fn query_port_sized(
    context: *mut IbvContext,
    port: u8,
    attr: *mut IbvPortAttr,
    size: usize,
) -> c_int {
    code("ibv_query_port", || {
        let nic = &context::of(context)?.own().opening.nic;
        check_port(port.into())?;
        let all = IbvPortAttr { compat: port_attr(nic), port_cap_flags2: 0, active_speed_ex: 0 };
        // SAFETY: the caller's.
        unsafe { output_part(attr, &all, size) }
    })
}

/// # Safety
/// `attr` is null or has room for the attributes.
pub(crate) unsafe extern "C" fn query_port(
    context: *mut IbvContext,
    port: u8,
    attr: *mut CompatPortAttr,
) -> c_int {
    let size = size_of::<CompatPortAttr>();
    // SAFETY: as for this function; `size` bytes of the answer are the old struct.
    unsafe { query_port_sized(context, port, attr.cast(), size) }
}

/// # Safety
/// `gid` is null or has room for 16 bytes.
pub(crate) unsafe extern "C" fn query_gid(
    context: *mut IbvContext,
    port: u8,
    index: c_int,
    gid: *mut [u8; 16],
) -> c_int {
    number("ibv_query_gid", || {
        let nic = &context::of(context)?.own().opening.nic;
        check_port(port.into())?;
        let at = usize::try_from(index).map_err(|_| no_gid(index.into()))?;
        // An index without a GID is empty, not wrong.
        let value = nic.query_gid(at).map_or([0; 16], |Gid(bytes)| bytes);
        // SAFETY: the caller's.
        unsafe { output(gid, value, "gid") }.map(|()| 0)
    })
}

fn no_gid(index: i64) -> Fail {
    Fail::invalid(format!("there is no GID {index}"))
}

/// # Safety
/// `kind` is null or has room for the answer.
pub(crate) unsafe extern "C" fn query_gid_type(
    context: *mut IbvContext,
    port: u8,
    index: u32,
    kind: *mut u32,
) -> c_int {
    number("ibv_query_gid_type", || {
        let nic = &context::of(context)?.own().opening.nic;
        check_port(port.into())?;
        nic.query_gid(index as usize).ok_or_else(|| no_gid(index.into()))?;
        // SAFETY: the caller's.
        unsafe { output(kind, c::GID_TYPE_SYSFS_ROCE_V2, "type") }.map(|()| 0)
    })
}

fn gid_entry(nic: &urxe::Context, index: u32) -> Option<IbvGidEntry> {
    let Gid(gid) = nic.query_gid(index as usize)?;
    let gid = RawGid(gid);
    let name = std::ffi::CString::new(nic.query_port().interface).ok()?;
    // SAFETY: a C string that lives through the call.
    let ndev_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let gid_type = c::GID_TYPE_ROCE_V2;
    Some(IbvGidEntry { gid, gid_index: index, port_num: 1, gid_type, ndev_ifindex })
}

/// # Safety
/// `entry` is null or has room for `size` bytes.
pub(crate) unsafe extern "C" fn query_gid_ex(
    context: *mut IbvContext,
    port: u32,
    index: u32,
    entry: *mut IbvGidEntry,
    flags: u32,
    size: usize,
) -> c_int {
    code("ibv_query_gid_ex", || {
        let nic = &context::of(context)?.own().opening.nic;
        check_port(port)?;
        no_flags(flags)?;
        let none = Fail::new(libc::ENODATA, format!("there is no GID {index}"));
        let found = gid_entry(nic, index).ok_or(none)?;
        // SAFETY: the caller's.
        unsafe { output_part(entry, &found, size) }
    })
}

fn no_flags(flags: u32) -> Result<(), Fail> {
    if flags == 0 {
        Ok(())
    } else {
        Err(Fail::unsupported(format!("flags {flags:#x}; none exist")))
    }
}

/// # Safety
/// `entries` is null or has room for `most` entries of `size` bytes.
pub(crate) unsafe extern "C" fn query_gid_table(
    context: *mut IbvContext,
    entries: *mut IbvGidEntry,
    most: usize,
    flags: u32,
    size: usize,
) -> isize {
    // This one answers −errno.
    crate::call::count("ibv_query_gid_table", || {
        let nic = &context::of(context)?.own().opening.nic;
        no_flags(flags)?;
        let all: Vec<_> = (0..=255).map_while(|index| gid_entry(nic, index)).collect();
        if all.len() > most {
            return Err(Fail::invalid(format!("{} GIDs, room for {most}", all.len())));
        }
        for (at, entry) in all.iter().enumerate() {
            let to = entries.cast::<u8>().wrapping_add(at * size).cast();
            // SAFETY: the caller's room, `at` is within it.
            unsafe { output_part(to, entry, size) }?;
        }
        Ok(all.len().cast_signed())
    })
}

/// The default P_Key, in network byte order.
const PKEY: u16 = u16::from_ne_bytes([0xff, 0xff]);

/// # Safety
/// `pkey` is null or has room for the answer.
pub(crate) unsafe extern "C" fn query_pkey(
    context: *mut IbvContext,
    port: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    number("ibv_query_pkey", || {
        context::of(context)?;
        check_port(port.into())?;
        if index != 0 {
            return Err(Fail::invalid(format!("there is no P_Key {index}; there is 0")));
        }
        // SAFETY: the caller's.
        unsafe { output(pkey, PKEY, "pkey") }.map(|()| 0)
    })
}

pub(crate) extern "C" fn get_pkey_index(context: *mut IbvContext, port: u8, pkey: u16) -> c_int {
    number("ibv_get_pkey_index", || {
        context::of(context)?;
        check_port(port.into())?;
        let why = format!("there is no P_Key {:#06x}", u16::from_be(pkey));
        if pkey == PKEY { Ok(0) } else { Err(Fail::invalid(why)) }
    })
}

/// `IBV_VALUES_MASK_RAW_CLOCK`.
const RAW_CLOCK: u32 = 1;

/// # Safety
/// `values` is null or points to the struct.
pub(crate) unsafe extern "C" fn query_rt_values(
    context: *mut IbvContext,
    values: *mut IbvValuesEx,
) -> c_int {
    code("ibv_query_rt_values_ex", || {
        context::of(context)?;
        // SAFETY: the caller's.
        let wanted = unsafe { input(values, "values") }?.comp_mask;
        if wanted & !RAW_CLOCK != 0 {
            return Err(Fail::invalid(format!("comp_mask {wanted:#x}; only RAW_CLOCK exists")));
        }
        let ns = crate::clock::monotonic();
        let raw_clock = libc::timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
        };
        // SAFETY: the caller's.
        unsafe { output(values, IbvValuesEx { comp_mask: wanted, raw_clock }, "values") }
    })
}
