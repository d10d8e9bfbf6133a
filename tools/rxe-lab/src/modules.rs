//! Kernel modules: which ones some need, and in what order they go in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::LabError;
use crate::command::bytes;

/// A module's name and its code, unpacked.
pub(crate) type Module = (String, Vec<u8>);

/// `wanted` with all that they need, each behind what it needs.
pub(crate) fn closure(tree: &Path, wanted: &[&str]) -> Result<Vec<Module>, LabError> {
    let mut files = BTreeMap::new();
    find(tree, &mut files)?;
    let mut loaded = Vec::new();
    for name in wanted {
        add(name, &files, &mut loaded)?;
    }
    Ok(loaded)
}

/// Modules are named with `_`, their files with either.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

fn find(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<(), LabError> {
    for entry in std::fs::read_dir(folder).map_err(LabError::file(folder))? {
        let path = entry.map_err(LabError::file(folder))?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if let Some(name) = path.file_name().and_then(|name| name.to_str())
            && let Some((name, _)) = name.split_once(".ko")
        {
            files.insert(plain(name), path);
        }
    }
    Ok(())
}

fn add(
    name: &str,
    files: &BTreeMap<String, PathBuf>,
    loaded: &mut Vec<Module>,
) -> Result<(), LabError> {
    let name = plain(name);
    if loaded.iter().any(|(other, _)| *other == name) {
        return Ok(());
    }
    // What has no file is part of the kernel itself.
    let Some(path) = files.get(&name) else { return Ok(()) };
    let code = if path.extension().is_some_and(|end| end == "xz") {
        bytes(Command::new("xz").arg("--decompress").arg("--stdout").arg(path))?
    } else {
        std::fs::read(path).map_err(LabError::file(path))?
    };
    for other in needs(&code) {
        add(&other, files, loaded)?;
    }
    loaded.push((name, code));
    Ok(())
}

/// What a module says that it needs: the `depends=` of its `.modinfo`.
fn needs(code: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(at) = code.windows(key.len()).position(|window| window == key) else {
        return Vec::new();
    };
    let list = code[at + key.len()..].split(|&byte| byte == 0).next().unwrap_or_default();
    let list = String::from_utf8_lossy(list);
    list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::needs;

    #[test]
    fn what_a_module_needs_is_read_from_it() {
        let code = b"..\0license=GPL\0depends=ib_core,udp_tunnel\0name=x\0";
        assert_eq!(needs(code), ["ib_core", "udp_tunnel"]);
        assert_eq!(needs(b"..\0depends=\0name=x\0"), [""; 0]);
        assert_eq!(needs(b"no such thing"), [""; 0]);
    }
}
