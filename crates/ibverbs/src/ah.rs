//! Address handles, and ways to peers in general.

use std::ffi::{c_int, c_void};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use urxe::{AhAttr, Gid};

use crate::call::{Fail, code, input, number, output, pointer};
use crate::context::{self, Opening, owned};
use crate::handle::{for_destroy, next};
use crate::layout::{IbvAh, IbvAhAttr, IbvContext, IbvGlobalRoute, IbvPd, IbvWc, RawGid, Zero};
use crate::object::{Held, Kind, get, kind};
use crate::pd::{self, Pd};
use crate::query::{check_port, lid};

/// An address handle.
#[derive(Debug)]
pub(crate) struct Ah {
    pub(crate) ah: urxe::Ah,
    handle: u32,
    opening: Arc<Opening>,
    _pd: Held<Pd>,
}

kind!(Ah, "AH", IbvAh);

owned!(Ah, handle);

/// A flow label has 20 bits; what stands above them is nobody's (Linux, `IB_GRH_FLOWLABEL_MASK` in
/// include/rdma/ib_verbs.h). UCX sets all 32.
const FLOW_LABEL: u32 = 0x000f_ffff;

/// The way to a peer that C describes.
pub(crate) fn way(attr: &IbvAhAttr, own: IpAddr) -> Result<AhAttr, Fail> {
    let grh = &attr.grh;
    let common = AhAttr { sl: attr.sl, port_num: attr.port_num, ..AhAttr::default() };
    if attr.is_global != 0 {
        return Ok(AhAttr {
            dst: Gid(grh.dgid.0).ip(),
            sgid_index: grh.sgid_index,
            hop_limit: if grh.hop_limit == 0 { 64 } else { grh.hop_limit },
            traffic_class: grh.traffic_class,
            flow_label: grh.flow_label & FLOW_LABEL,
            ..common
        });
    }
    // RoCE needs a GID. Programs that know LIDs only have got ours: the low half of an address.
    match own {
        IpAddr::V4(own) if attr.dlid != 0 => {
            let [a, b, ..] = own.octets();
            let [c, d] = attr.dlid.to_be_bytes();
            Ok(AhAttr { dst: Ipv4Addr::new(a, b, c, d).into(), ..common })
        }
        _ => Err(Fail::invalid("is_global is 0; RoCE needs a GRH with the peer's GID")),
    }
}

/// No way.
pub(crate) fn none() -> IbvAhAttr {
    IbvAhAttr::zero()
}

/// The way to a peer as C is told of it.
pub(crate) fn shown(way: &AhAttr) -> IbvAhAttr {
    let Gid(dgid) = way.dst.into();
    let dgid = RawGid(dgid);
    IbvAhAttr {
        grh: IbvGlobalRoute {
            dgid,
            flow_label: way.flow_label,
            sgid_index: way.sgid_index,
            hop_limit: way.hop_limit,
            traffic_class: way.traffic_class,
        },
        dlid: lid(way.dst),
        sl: way.sl,
        is_global: 1,
        port_num: way.port_num,
        ..IbvAhAttr::zero()
    }
}

fn create(pd: *mut IbvPd, attr: &IbvAhAttr) -> Result<*mut IbvAh, Fail> {
    let (holder, context) = pd::of(pd)?;
    let own = holder.own().opening.nic.address();
    let ah = holder.own().pd.create_ah(&way(attr, own)?)?;
    let handle = next();
    let opening = Arc::clone(&holder.own().opening);
    let made = Ah { ah, handle, opening, _pd: holder.hold() };
    Ok(Ah::pool().make(|_| Ok((IbvAh { context, pd, handle }, made)))?.public())
}

/// # Safety
/// `attr` is null or points to the struct.
pub(crate) unsafe extern "C" fn create_ah(pd: *mut IbvPd, attr: *mut IbvAhAttr) -> *mut IbvAh {
    pointer("ibv_create_ah", || {
        // SAFETY: the caller's.
        create(pd, unsafe { input(attr, "attr") }?)
    })
}

pub(crate) extern "C" fn destroy_ah(ah: *mut IbvAh) -> c_int {
    code("ibv_destroy_ah", || Ah::pool().destroy(for_destroy(get::<Ah>(ah)?)?))
}

/// `IBV_WC_GRH`.
const WC_GRH: u32 = 1;

/// The way back to who sent a datagram.
fn back(
    context: *mut IbvContext,
    port: u8,
    wc: &IbvWc,
    bytes: &[u8; 40],
) -> Result<IbvAhAttr, Fail> {
    let nic = &context::of(context)?.own().opening.nic;
    check_port(port.into())?;
    if wc.wc_flags & WC_GRH == 0 {
        return Err(Fail::invalid("the completion has no GRH; RoCE needs one"));
    }
    // An IPv4 header stands in the last 20 of the 40 bytes (IBA A17.4.5.2).
    let (from, to, class) = if bytes[20] >> 4 == 4 && bytes[0] >> 4 != 6 {
        let v4 = |at: usize| IpAddr::from([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        (v4(32), v4(36), bytes[21])
    } else {
        let gid = |at| Gid(std::array::from_fn(|byte| bytes[at + byte])).ip();
        let class = (bytes[0] << 4) | (bytes[1] >> 4);
        (gid(8), gid(24), class)
    };
    // To a group the datagram was for us too; the first GID answers then.
    let index = (0..=255_u8).find(|&at| nic.query_gid(at.into()) == Some(Gid::from(to)));
    let way = AhAttr {
        dst: from,
        sgid_index: index.unwrap_or(0),
        hop_limit: 0xff,
        traffic_class: class,
        flow_label: 0,
        sl: wc.sl & 0xf,
        port_num: port,
    };
    Ok(shown(&way))
}

/// # Safety
/// Each pointer is null or points to its struct.
pub(crate) unsafe extern "C" fn init_ah_from_wc(
    context: *mut IbvContext,
    port: u8,
    wc: *mut IbvWc,
    grh: *mut [u8; 40],
    attr: *mut IbvAhAttr,
) -> c_int {
    number("ibv_init_ah_from_wc", || {
        // SAFETY: the caller's.
        let wc = unsafe { input(wc, "wc") }?;
        // SAFETY: the caller's; it has no alignment.
        let grh = unsafe { input(grh, "grh") }?;
        let way = back(context, port, wc, grh)?;
        // SAFETY: the caller's.
        unsafe { output(attr, way, "ah_attr") }.map(|()| 0)
    })
}

/// # Safety
/// Each pointer is null or points to its struct.
pub(crate) unsafe extern "C" fn create_ah_from_wc(
    pd: *mut IbvPd,
    wc: *mut IbvWc,
    grh: *mut [u8; 40],
    port: u8,
) -> *mut IbvAh {
    pointer("ibv_create_ah_from_wc", || {
        let (_, context) = pd::of(pd)?;
        // SAFETY: the caller's.
        let wc = unsafe { input(wc, "wc") }?;
        // SAFETY: the caller's; it has no alignment.
        let grh = unsafe { input(grh, "grh") }?;
        create(pd, &back(context, port, wc, grh)?)
    })
}

/// The Ethernet address of a peer is the host's business, as is a VLAN.
pub(crate) extern "C" fn resolve_eth_l2(
    context: *mut IbvContext,
    _attr: *mut IbvAhAttr,
    _mac: *mut c_void,
    _vid: *mut u16,
) -> c_int {
    code("ibv_resolve_eth_l2_from_gid", || {
        context::of(context)?;
        Err(Fail::unsupported("the host resolves Ethernet addresses as packets leave"))
    })
}
