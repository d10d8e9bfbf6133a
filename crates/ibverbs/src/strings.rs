//! Words for numbers.

use std::ffi::{CStr, c_char, c_int};

fn word(table: &[&'static CStr], at: c_int, unknown: &'static CStr) -> *const c_char {
    let found = usize::try_from(at).ok().and_then(|at| table.get(at).copied());
    found.unwrap_or(unknown).as_ptr()
}

pub(crate) extern "C" fn node_type_str(kind: c_int) -> *const c_char {
    let all = [
        c"unknown",
        c"InfiniBand channel adapter",
        c"InfiniBand switch",
        c"InfiniBand router",
        c"iWARP NIC",
        c"usNIC",
        c"usNIC UDP",
        c"unspecified",
    ];
    word(&all, kind, c"unknown")
}

pub(crate) extern "C" fn port_state_str(state: c_int) -> *const c_char {
    let all = [c"no state change (NOP)", c"down", c"init", c"armed", c"active", c"active defer"];
    word(&all, state, c"unknown")
}

pub(crate) extern "C" fn event_type_str(event: c_int) -> *const c_char {
    let all = [
        c"CQ error",
        c"local work queue catastrophic error",
        c"invalid request local work queue error",
        c"local access violation work queue error",
        c"communication established",
        c"send queue drained",
        c"path migrated",
        c"path migration request error",
        c"local catastrophic error",
        c"port active",
        c"port error",
        c"LID change",
        c"P_Key change",
        c"SM change",
        c"SRQ catastrophic error",
        c"SRQ limit reached",
        c"last WQE reached",
        c"client reregistration",
        c"GID table change",
        c"WQ fatal",
    ];
    word(&all, event, c"unknown")
}

pub(crate) extern "C" fn wc_status_str(status: c_int) -> *const c_char {
    let all = [
        c"success",
        c"local length error",
        c"local QP operation error",
        c"local EE context operation error",
        c"local protection error",
        c"Work Request Flushed Error",
        c"memory management operation error",
        c"bad response error",
        c"local access error",
        c"remote invalid request error",
        c"remote access error",
        c"remote operation error",
        c"transport retry counter exceeded",
        c"RNR retry counter exceeded",
        c"local RDD violation error",
        c"remote invalid RD request",
        c"aborted error",
        c"invalid EE context number",
        c"invalid EE context state",
        c"fatal error",
        c"response timeout error",
        c"general error",
        c"TM error",
        c"TM software rendezvous",
    ];
    word(&all, status, c"unknown")
}
