//! Tables of objects by number: look-up costs the same for one and for a hundred thousand.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    slots: Vec<Option<Entry<T>>>,
    free: VecDeque<usize>,
    used: usize,
}

#[derive(Debug)]
struct Entry<T> {
    object: Arc<T>,
    /// Other objects that need this one. Changes under the shared lock; whoever has the lock
    /// alone and reads 0 knows that none is being added.
    users: AtomicUsize,
}

/// Why an object stays in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is not there.
    Missing,
    /// So many objects need it.
    Used(usize),
}

impl<T> Table<T> {
    /// A table of at most `max` objects, whose indices start at `base`.
    pub(crate) const fn new(max: usize, base: usize) -> Self {
        let inner = Inner { slots: Vec::new(), free: VecDeque::new(), used: 0 };
        Self { inner: RwLock::new(inner), max, base }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Arc<T>> {
        let at = index.checked_sub(self.base)?;
        Some(Arc::clone(&self.inner.read().slots.get(at)?.as_ref()?.object))
    }

    /// As [`Self::get`], and counts one more user: the object stays until [`Self::release`].
    pub(crate) fn hold(&self, index: usize) -> Option<Arc<T>> {
        let at = index.checked_sub(self.base)?;
        let inner = self.inner.read();
        let entry = inner.slots.get(at)?.as_ref()?;
        entry.users.fetch_add(1, Ordering::Relaxed);
        Some(Arc::clone(&entry.object))
    }

    /// Ends one [`Self::hold`].
    pub(crate) fn release(&self, index: usize) {
        let inner = self.inner.read();
        let at = index.checked_sub(self.base);
        if let Some(entry) = at.and_then(|at| inner.slots.get(at)?.as_ref()) {
            entry.users.fetch_sub(1, Ordering::Relaxed);
        }
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
        let users = AtomicUsize::new(0);
        inner.slots[at] = Some(Entry { object: Arc::clone(&object), users });
        inner.used += 1;
        Some(object)
    }

    /// Takes an object out that no other needs. Mere look-ups, whose `Arc`s may still be about, do
    /// not count.
    pub(crate) fn remove(&self, index: usize) -> Result<Arc<T>, Kept> {
        let at = index.checked_sub(self.base).ok_or(Kept::Missing)?;
        let inner = &mut *self.inner.write();
        let slot = inner.slots.get_mut(at).ok_or(Kept::Missing)?;
        match slot.as_mut().map(|entry| *entry.users.get_mut()) {
            Some(0) => {}
            Some(users) => return Err(Kept::Used(users)),
            None => return Err(Kept::Missing),
        }
        let entry = slot.take().ok_or(Kept::Missing)?;
        inner.free.push_back(at);
        inner.used -= 1;
        Ok(entry.object)
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        self.inner.read().used
    }

    /// All objects, by index.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.inner.read().slots.iter().flatten().map(|e| Arc::clone(&e.object)).collect()
    }
}

#[cfg(test)]
mod tests;
