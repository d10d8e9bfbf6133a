//! Address handles: a path to a peer, resolved once.

use urxe_memory::PdId;

use crate::path::Path;

/// An address handle.
#[derive(Debug)]
pub(crate) struct Ah {
    pub(crate) pd: PdId,
    pub(crate) path: Path,
}
