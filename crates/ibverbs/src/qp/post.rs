//! Posting work to QPs: nothing here allocates, save to say what is wrong.

use std::ffi::c_int;

use urxe::{Batch, QKey, QpKind, Qpn, SendFlags, SendOp, SendWr, Sge, UdDest};

use crate::ah::Ah;
use crate::call::{Fail, code};
use crate::layout::{IbvAh, IbvQp, IbvRecvWr, IbvSendWr};
use crate::mw;
use crate::object::get;
use crate::recv::{self, sges};

use super::Qp;

/// `enum ibv_wr_opcode`.
const WRITE: c_int = 0;
const WRITE_IMM: c_int = 1;
const SEND: c_int = 2;
const SEND_IMM: c_int = 3;
const READ: c_int = 4;
const CMP_SWAP: c_int = 5;
const FETCH_ADD: c_int = 6;
const LOCAL_INV: c_int = 7;
const BIND_MW: c_int = 8;
const SEND_INV: c_int = 9;
const ATOMIC_WRITE: c_int = 15;

/// Bytes of inline data at most, of any QP.
const MOST_INLINE: usize = 4096;

/// What a request does.
///
/// # Safety
/// The fields that its opcode means are set, as C has to.
unsafe fn op(wr: &IbvSendWr) -> Result<SendOp, Fail> {
    let imm = Some(wr.imm_data.to_ne_bytes());
    Ok(match wr.opcode {
        SEND => SendOp::Send { imm: None },
        SEND_IMM => SendOp::Send { imm },
        SEND_INV => SendOp::SendInvalidate { rkey: wr.imm_data },
        LOCAL_INV => SendOp::LocalInvalidate { rkey: wr.imm_data },
        WRITE | WRITE_IMM | READ | ATOMIC_WRITE => {
            // SAFETY: numbers, whatever they are.
            let to = unsafe { wr.wr.rdma };
            let (remote, rkey) = (to.remote_addr, to.rkey);
            match wr.opcode {
                WRITE => SendOp::Write { remote, rkey, imm: None },
                WRITE_IMM => SendOp::Write { remote, rkey, imm },
                READ => SendOp::Read { remote, rkey },
                _ => SendOp::AtomicWrite { remote, rkey },
            }
        }
        CMP_SWAP | FETCH_ADD => {
            // SAFETY: numbers, whatever they are.
            let to = unsafe { wr.wr.atomic };
            let (remote, rkey, first) = (to.remote_addr, to.rkey, to.compare_add);
            if wr.opcode == CMP_SWAP {
                SendOp::CompareSwap { remote, rkey, compare: first, swap: to.swap }
            } else {
                SendOp::FetchAdd { remote, rkey, add: first }
            }
        }
        BIND_MW => mw::bind(wr.bind_mw.mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info)?.0,
        other => return Err(Fail::invalid(format!("opcode {other}; 0 to 9 and 15 exist"))),
    })
}

/// Where a datagram goes.
pub(crate) fn destination(ah: *mut IbvAh, qpn: u32, qkey: u32) -> Result<UdDest, Fail> {
    let ah = get::<Ah>(ah)?.own().ah.id();
    Ok(UdDest { ah, qpn: Qpn::new(qpn), qkey: QKey(qkey) })
}

/// The flags that a request may have; IP_CSUM is for raw packets and means nothing here.
pub(crate) fn flags(bits: u32) -> SendFlags {
    SendFlags::from_bits_truncate(bits)
}

/// A request without its data.
pub(crate) fn request(wr_id: u64, op: SendOp, bits: u32) -> SendWr<'static> {
    SendWr { flags: flags(bits), ..SendWr::new(wr_id, op, &[]) }
}

/// Bytes that an element of inline data points to.
///
/// # Safety
/// The element's address is that of so many bytes of the program's.
unsafe fn bytes<'a>(sge: &Sge) -> Result<&'a [u8], Fail> {
    let address = usize::try_from(sge.addr).unwrap_or(0);
    // SAFETY: as for this function.
    unsafe { inline(std::ptr::with_exposed_provenance(address), sge.length as usize) }
}

/// Inline data.
///
/// # Safety
/// `from` points to `length` bytes, or is null.
pub(crate) unsafe fn inline<'a>(from: *const u8, length: usize) -> Result<&'a [u8], Fail> {
    match length {
        0 => Ok(&[]),
        _ if from.is_null() => Err(Fail::new(libc::EFAULT, "inline data at null")),
        // SAFETY: as for this function.
        _ => Ok(unsafe { std::slice::from_raw_parts(from, length) }),
    }
}

/// # Safety
/// `wr` and what it points to are C's and as C has to set them.
unsafe fn post_one(batch: &mut Batch<'_, '_>, own: &Qp, wr: &IbvSendWr) -> Result<(), Fail> {
    // SAFETY: as for this function.
    let op = unsafe { op(wr) }?;
    // SAFETY: likewise.
    let list = unsafe { sges(wr.sg_list, wr.num_sge) }?;
    let dest = if own.kind == QpKind::Ud {
        // SAFETY: numbers and a pointer that is looked up, whatever they are.
        let to = unsafe { wr.wr.ud };
        Some(destination(to.ah, to.remote_qpn, to.remote_qkey)?)
    } else {
        None
    };
    let remote_srqn = if own.kind == QpKind::XrcInit { wr.remote_srqn } else { 0 };
    let wr = SendWr { dest, remote_srqn, ..request(wr.wr_id, op, wr.send_flags) };
    if !wr.flags.contains(SendFlags::INLINE) {
        return Ok(batch.post(&SendWr { sges: list, ..wr })?);
    }
    if let [one] = list {
        // SAFETY: as for this function.
        let data = unsafe { bytes(one) }?;
        return Ok(batch.post(&SendWr { inline: data, ..wr })?);
    }
    let (mut gathered, mut end) = ([0; MOST_INLINE], 0);
    for sge in list {
        // SAFETY: as for this function.
        let part = unsafe { bytes(sge) }?;
        let room = gathered.get_mut(end..end + part.len());
        let room = room.ok_or_else(|| Fail::invalid("more inline data than any QP takes"))?;
        room.copy_from_slice(part);
        end += part.len();
    }
    Ok(batch.post(&SendWr { inline: &gathered[..end], ..wr })?)
}

/// # Safety
/// `wr` is null or points to a list of requests, `bad` is null or has room for a pointer.
pub(crate) unsafe extern "C" fn post_send(
    qp: *mut IbvQp,
    wr: *mut IbvSendWr,
    bad: *mut *mut IbvSendWr,
) -> c_int {
    let mut next = wr;
    code("ibv_post_send", || {
        let done = get::<Qp>(qp.cast()).and_then(|object| {
            let own = object.own();
            own.qp.batch(|batch| {
                while !next.is_null() {
                    // SAFETY: the caller's.
                    let wr = unsafe { &*next };
                    // SAFETY: the caller's.
                    unsafe { post_one(batch, own, wr) }?;
                    next = wr.next;
                }
                Ok(())
            })?
        });
        if done.is_err() && !bad.is_null() {
            // SAFETY: the caller's.
            unsafe { *bad = next };
        }
        done
    })
}

/// # Safety
/// `wr` is null or points to a list of requests, `bad` is null or has room for a pointer.
pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut IbvQp,
    wr: *mut IbvRecvWr,
    bad: *mut *mut IbvRecvWr,
) -> c_int {
    code("ibv_post_recv", || {
        // SAFETY: the caller's.
        let list = unsafe { recv::List::new(wr, bad) };
        let find = || Ok(&*get::<Qp>(qp.cast())?.own().qp);
        list.post(find, |qp, id, sges| Ok(qp.post_recv(id, sges)?))
    })
}
