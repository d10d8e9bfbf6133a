//! Reading sysfs, for programs that ask the library to.

use std::env;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use crate::call::{Fail, number, or};

/// Where sysfs is: `SYSFS_PATH`, unless the program is set-uid; `/sys` otherwise.
pub(crate) extern "C" fn get_sysfs_path() -> *const c_char {
    static PATH: OnceLock<std::ffi::CString> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        // SAFETY: a plain question.
        let privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
        let set = env::var_os("SYSFS_PATH").filter(|_| !privileged);
        let text = set.map_or_else(|| b"/sys".to_vec(), |path| path.as_bytes().to_vec());
        let cut = text.iter().rposition(|&byte| byte != b'/').map_or(1, |last| last + 1);
        std::ffi::CString::new(&text[..cut.min(text.len())]).unwrap_or_default()
    });
    or("ibv_get_sysfs_path", c"/sys".as_ptr(), || Ok(path.as_ptr()))
}

/// # Safety
/// `text` is null or a C string.
unsafe fn part<'a>(text: *const c_char) -> Result<&'a Path, Fail> {
    if text.is_null() {
        return Err(Fail::invalid("a path is null"));
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(Path::new(OsStr::from_bytes(text.to_bytes())))
}

/// Reads a file into C's buffer, without the line's end; gives how many bytes.
///
/// # Safety
/// `directory` and `file` are null or C strings, `to` has room for `size` bytes.
pub(crate) unsafe extern "C" fn read_sysfs_file(
    directory: *const c_char,
    file: *const c_char,
    to: *mut c_char,
    size: usize,
) -> c_int {
    number("ibv_read_sysfs_file", || {
        // SAFETY: the caller's.
        let directory = unsafe { part(directory) }?;
        // SAFETY: the caller's.
        let path = directory.join(unsafe { part(file) }?);
        let wrong = |e: std::io::Error| {
            Fail::new(e.raw_os_error().unwrap_or(libc::EIO), format!("{}: {e}", path.display()))
        };
        // No more than there is room for: the program may name what has no end.
        let (mut bytes, most) = (Vec::new(), u64::try_from(size).unwrap_or(u64::MAX));
        let file = File::open(&path).map_err(wrong)?;
        file.take(most).read_to_end(&mut bytes).map_err(wrong)?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        bytes.truncate(size.saturating_sub(1));
        if size != 0 {
            bytes.push(0);
            // SAFETY: the caller's room, which the text with its zero fits in.
            unsafe { bytes.as_ptr().copy_to(to.cast(), bytes.len()) };
            bytes.pop();
        }
        Ok(c_int::try_from(bytes.len()).unwrap_or(c_int::MAX))
    })
}
