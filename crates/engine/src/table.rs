//! Tables of objects by number: look-up costs the same for one and for a hundred thousand.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::RwLock;

/// Objects by index. A freed index is given out again as late as possible, so that a late packet
/// for the old object does not meet a new one.
#[derive(Debug)]
pub(crate) struct Table<T> {
    inner: RwLock<Inner<T>>,
    max: usize,
    base: usize,
}

#[derive(Debug)]
struct Inner<T> {
    slots: Vec<Option<Arc<T>>>,
    free: VecDeque<usize>,
    used: usize,
}

impl<T> Table<T> {
    /// A table of at most `max` objects, whose indices start at `base`.
    pub(crate) const fn new(max: usize, base: usize) -> Self {
        let inner = Inner { slots: Vec::new(), free: VecDeque::new(), used: 0 };
        Self { inner: RwLock::new(inner), max, base }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Arc<T>> {
        let at = index.checked_sub(self.base)?;
        self.inner.read().slots.get(at)?.clone()
    }

    /// Adds what `make` makes of its index; `None` if the table is full.
    pub(crate) fn insert(&self, make: impl FnOnce(usize) -> T) -> Option<Arc<T>> {
        let inner = &mut *self.inner.write();
        if inner.used >= self.max {
            return None;
        }
        // A new index as long as there is one, then the one freed longest ago.
        let at = if inner.slots.len() < self.max {
            inner.slots.push(None);
            inner.slots.len() - 1
        } else {
            inner.free.pop_front()?
        };
        let object = Arc::new(make(self.base + at));
        inner.slots[at] = Some(Arc::clone(&object));
        inner.used += 1;
        Some(object)
    }

    pub(crate) fn remove(&self, index: usize) -> Option<Arc<T>> {
        let at = index.checked_sub(self.base)?;
        let inner = &mut *self.inner.write();
        let object = inner.slots.get_mut(at)?.take()?;
        inner.free.push_back(at);
        inner.used -= 1;
        Some(object)
    }

    /// All objects, by index.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.inner.read().slots.iter().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
