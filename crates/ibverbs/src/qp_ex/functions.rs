//! The functions that programs find in an `ibv_qp_ex`.

use std::ffi::{c_int, c_void};

use urxe::{FlushLevel, FlushScope, SendOp, Sge};

use crate::call::{Fail, code, input, or};
use crate::layout::{IbvAh, IbvDataBuf, IbvMw, IbvMwBindInfo, IbvQpEx, IbvSge, Zero};
use crate::mw;
use crate::object::ours;
use crate::qp::{self, Qp};
use crate::recv;

use super::operation as o;

pub(super) fn table() -> IbvQpEx {
    IbvQpEx {
        wr_atomic_cmp_swp: Some(cmp_swp),
        wr_atomic_fetch_add: Some(fetch_add),
        wr_bind_mw: Some(bind_mw),
        wr_local_inv: Some(local_inv),
        wr_rdma_read: Some(rdma_read),
        wr_rdma_write: Some(rdma_write),
        wr_rdma_write_imm: Some(rdma_write_imm),
        wr_send: Some(send),
        wr_send_imm: Some(send_imm),
        wr_send_inv: Some(send_inv),
        wr_send_tso: Some(send_tso),
        wr_set_ud_addr: Some(set_ud_addr),
        wr_set_xrc_srqn: Some(set_xrc_srqn),
        wr_set_inline_data: Some(set_inline_data),
        wr_set_inline_data_list: Some(set_inline_data_list),
        wr_set_sge: Some(set_sge),
        wr_set_sge_list: Some(set_sge_list),
        wr_start: Some(start),
        wr_complete: Some(complete),
        wr_abort: Some(abort),
        wr_atomic_write: Some(atomic_write),
        wr_flush: Some(flush),
        ..IbvQpEx::zero()
    }
}

/// Runs a step of a QP that lives; of another one nothing is said until `ibv_wr_complete`.
fn step(qp: *mut IbvQpEx, call: &'static str, f: impl FnOnce(&'static Qp) -> Result<(), Fail>) {
    or(call, (), || f(ours::<Qp>(qp)?.own()));
}

/// Begins a request, with the wr_id and flags that the program has set.
fn begin(qp: *mut IbvQpEx, operation: u64, op: impl FnOnce() -> Result<SendOp, Fail>) {
    step(qp, "ibv_wr", |own| {
        // SAFETY: a live QP's.
        let (wr_id, flags) = unsafe { shown(qp) };
        // The data says whether it is inline.
        let inline = urxe::SendFlags::INLINE.bits();
        let wr = op().map(|op| qp::request(wr_id, op, flags & !inline));
        own.builder.request(operation, wr);
        Ok(())
    });
}

/// # Safety
/// The QP lives.
unsafe fn shown(qp: *const IbvQpEx) -> (u64, u32) {
    // SAFETY: as for this function.
    let qp = unsafe { &*qp };
    (qp.wr_id, qp.wr_flags)
}

unsafe extern "C" fn start(qp: *mut IbvQpEx) {
    step(qp, "ibv_wr_start", |own| {
        own.builder.start();
        Ok(())
    });
}

unsafe extern "C" fn complete(qp: *mut IbvQpEx) -> c_int {
    code("ibv_wr_complete", || {
        let own = ours::<Qp>(qp)?.own();
        own.builder.complete(&own.qp)
    })
}

unsafe extern "C" fn abort(qp: *mut IbvQpEx) {
    step(qp, "ibv_wr_abort", |own| {
        own.builder.abort();
        Ok(())
    });
}

unsafe extern "C" fn send(qp: *mut IbvQpEx) {
    begin(qp, o::SEND, || Ok(SendOp::Send { imm: None }));
}

unsafe extern "C" fn send_imm(qp: *mut IbvQpEx, imm: u32) {
    begin(qp, o::SEND_IMM, || Ok(SendOp::Send { imm: Some(imm.to_ne_bytes()) }));
}

unsafe extern "C" fn send_inv(qp: *mut IbvQpEx, rkey: u32) {
    begin(qp, o::SEND_INV, || Ok(SendOp::SendInvalidate { rkey }));
}

unsafe extern "C" fn send_tso(qp: *mut IbvQpEx, _header: *mut c_void, _size: u16, _mss: u16) {
    begin(qp, 0, || Err(Fail::unsupported("only raw packets are segmented")));
}

unsafe extern "C" fn rdma_read(qp: *mut IbvQpEx, rkey: u32, remote: u64) {
    begin(qp, o::READ, || Ok(SendOp::Read { remote, rkey }));
}

unsafe extern "C" fn rdma_write(qp: *mut IbvQpEx, rkey: u32, remote: u64) {
    begin(qp, o::WRITE, || Ok(SendOp::Write { remote, rkey, imm: None }));
}

unsafe extern "C" fn rdma_write_imm(qp: *mut IbvQpEx, rkey: u32, remote: u64, imm: u32) {
    let imm = Some(imm.to_ne_bytes());
    begin(qp, o::WRITE_IMM, || Ok(SendOp::Write { remote, rkey, imm }));
}

unsafe extern "C" fn cmp_swp(qp: *mut IbvQpEx, rkey: u32, remote: u64, compare: u64, swap: u64) {
    begin(qp, o::CMP_SWAP, || Ok(SendOp::CompareSwap { remote, rkey, compare, swap }));
}

unsafe extern "C" fn fetch_add(qp: *mut IbvQpEx, rkey: u32, remote: u64, add: u64) {
    begin(qp, o::FETCH_ADD, || Ok(SendOp::FetchAdd { remote, rkey, add }));
}

/// # Safety
/// `value` points to 8 bytes.
unsafe extern "C" fn atomic_write(qp: *mut IbvQpEx, rkey: u32, remote: u64, value: *const c_void) {
    begin(qp, o::ATOMIC_WRITE, || Ok(SendOp::AtomicWrite { remote, rkey }));
    // SAFETY: the caller's.
    let word = unsafe { input(value.cast::<[u8; 8]>(), "atomic_wr") };
    step(qp, "ibv_wr_atomic_write", |own| {
        own.builder.set_inline(std::iter::once(word.map(|word| &word[..])));
        Ok(())
    });
}

unsafe extern "C" fn flush(
    qp: *mut IbvQpEx,
    rkey: u32,
    remote: u64,
    length: usize,
    level: u8,
    scope: u8,
) {
    begin(qp, o::FLUSH, || {
        let scope = match scope {
            0 => FlushScope::Range,
            1 => FlushScope::MemoryRegion,
            _ => return Err(Fail::invalid(format!("selectivity level {scope}; there are 0, 1"))),
        };
        let length = u32::try_from(length);
        let length = length.map_err(|_| Fail::invalid("a FLUSH of 4 GiB or more"))?;
        let level = FlushLevel::from_bits(level);
        Ok(SendOp::Flush { remote, length, rkey, scope, level })
    });
}

unsafe extern "C" fn local_inv(qp: *mut IbvQpEx, rkey: u32) {
    begin(qp, o::LOCAL_INV, || Ok(SendOp::LocalInvalidate { rkey }));
}

/// # Safety
/// `info` is null or points to the struct.
unsafe extern "C" fn bind_mw(
    qp: *mut IbvQpEx,
    window: *mut IbvMw,
    rkey: u32,
    info: *const IbvMwBindInfo,
) {
    begin(qp, o::BIND_MW, || {
        // SAFETY: the caller's.
        Ok(mw::bind(window, rkey, unsafe { input(info, "bind_info") }?)?.0)
    });
}

unsafe extern "C" fn set_ud_addr(qp: *mut IbvQpEx, ah: *mut IbvAh, qpn: u32, qkey: u32) {
    step(qp, "ibv_wr_set_ud_addr", |own| {
        own.builder.set_dest(qp::destination(ah, qpn, qkey));
        Ok(())
    });
}

unsafe extern "C" fn set_xrc_srqn(qp: *mut IbvQpEx, number: u32) {
    step(qp, "ibv_wr_set_xrc_srqn", |own| {
        own.builder.set_srqn(number);
        Ok(())
    });
}

unsafe extern "C" fn set_sge(qp: *mut IbvQpEx, lkey: u32, addr: u64, length: u32) {
    step(qp, "ibv_wr_set_sge", |own| {
        own.builder.set_sges(Ok(&[Sge { addr, length, lkey }]));
        Ok(())
    });
}

/// # Safety
/// `list` points to `count` elements.
unsafe extern "C" fn set_sge_list(qp: *mut IbvQpEx, count: usize, list: *const IbvSge) {
    step(qp, "ibv_wr_set_sge_list", |own| {
        let count = c_int::try_from(count).unwrap_or(-1);
        // SAFETY: the caller's.
        own.builder.set_sges(unsafe { recv::sges(list, count) });
        Ok(())
    });
}

/// # Safety
/// `from` points to `length` bytes.
unsafe extern "C" fn set_inline_data(qp: *mut IbvQpEx, from: *mut c_void, length: usize) {
    step(qp, "ibv_wr_set_inline_data", |own| {
        // SAFETY: the caller's.
        own.builder.set_inline(std::iter::once(unsafe { qp::inline(from.cast(), length) }));
        Ok(())
    });
}

/// # Safety
/// `list` points to `count` pieces, each of which points to its bytes.
unsafe extern "C" fn set_inline_data_list(qp: *mut IbvQpEx, count: usize, list: *const IbvDataBuf) {
    step(qp, "ibv_wr_set_inline_data_list", |own| {
        own.builder.set_inline((0..count).map(|at| {
            // SAFETY: the caller's, `at` is within it.
            let piece = unsafe { input(list.wrapping_add(at), "buf_list") }?;
            // SAFETY: the caller's.
            unsafe { qp::inline(piece.addr.cast(), piece.length) }
        }));
        Ok(())
    });
}
