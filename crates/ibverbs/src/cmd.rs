//! What providers of other devices need of libibverbs: their modules are loaded by programs that
//! link to them, and find that their devices are not there.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::call::set_errno;

/// `ibv_cmd_*` and `execute_ioctl`: there is no kernel driver to command.
pub(crate) extern "C" fn unsupported() -> c_int {
    set_errno(libc::EOPNOTSUPP);
    libc::EOPNOTSUPP
}

/// `verbs_open_device`, `_verbs_init_and_alloc_context`.
pub(crate) extern "C" fn no_context() -> *mut c_void {
    set_errno(libc::EOPNOTSUPP);
    ptr::null_mut()
}

/// `verbs_register_driver`: called as a provider is loaded. Its devices do not exist.
pub(crate) extern "C" fn nothing() {}

/// `__ioctl_final_num_attrs`: of no command.
pub(crate) extern "C" fn zero() -> c_int {
    0
}

/// `ibv_read_ibdev_sysfs_file`: there is no such directory.
pub(crate) extern "C" fn minus_one() -> c_int {
    set_errno(libc::EOPNOTSUPP);
    -1
}
