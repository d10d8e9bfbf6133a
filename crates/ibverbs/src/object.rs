//! Objects that C holds pointers to.
//!
//! Each kind lives in a [`Pool`] of its own, whose memory is never given back nor used for anything
//! else. So any pointer that C brings can be looked at without being followed: whether it is one of
//! the pool, and whether its object lives. A null, garbled or freed pointer is an error then, not a
//! crash; a freed one may mean a younger object once the pool comes round to its place again, which
//! it does as late as it can.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

use parking_lot::Mutex;
use parking_lot::lock_api::GuardNoSend;

use crate::call::Fail;
use crate::context::Owned;
use crate::fork::{self, Fork};

/// A kind of object.
pub(crate) trait Kind: Sized + 'static {
    /// The struct that programs point to.
    type Public: Copy + 'static;
    /// What stands in front of it and with it, of which it may be the last part.
    type Whole: Copy + 'static;
    /// Where in the whole the public struct stands.
    const OFFSET: usize;
    /// How it is called.
    const NAME: &'static str;

    fn pool() -> &'static Pool<Self>;
}

const FREE: u32 = 0;
const LIVE: u32 = 1;
/// Being destroyed.
const DYING: u32 = 2;

/// An object: the program's part, then ours.
#[repr(C)]
pub(crate) struct Object<K: Kind> {
    whole: UnsafeCell<MaybeUninit<K::Whole>>,
    state: AtomicU32,
    /// Other objects that need it.
    users: AtomicU32,
    own: UnsafeCell<MaybeUninit<K>>,
}

// SAFETY: the program's part is only reached by raw pointer; ours is shared only if it can be.
unsafe impl<K: Kind + Send + Sync> Sync for Object<K> {}

impl<K: Kind> fmt::Debug for Object<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {self:p}", K::NAME)
    }
}

impl<K: Kind> Object<K> {
    fn vacant() -> Self {
        Self {
            whole: UnsafeCell::new(MaybeUninit::zeroed()),
            state: AtomicU32::new(FREE),
            users: AtomicU32::new(0),
            own: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Where the program's part stands: to be read and written as C does, with no reference.
    pub(crate) fn public(&self) -> *mut K::Public {
        self.whole.get().cast::<u8>().wrapping_add(K::OFFSET).cast()
    }

    /// Our part.
    pub(crate) fn own(&self) -> &K {
        // SAFETY: verbs' contract: nobody destroys an object while a call with it is in progress;
        // and whoever has a reference to it found it alive.
        let own = unsafe { &*self.own.get() };
        // SAFETY: written before the object came alive.
        unsafe { own.assume_init_ref() }
    }

    /// How many objects need it.
    pub(crate) fn users(&self) -> u32 {
        self.users.load(Acquire)
    }

    /// Keeps it from being destroyed.
    pub(crate) fn hold(&'static self) -> Held<K> {
        self.users.fetch_add(1, AcqRel);
        Held(self)
    }
}

/// Keeps an object from being destroyed.
#[derive(Debug)]
pub(crate) struct Held<K: Kind>(&'static Object<K>);

impl<K: Kind> Held<K> {
    pub(crate) const fn object(&self) -> &'static Object<K> {
        self.0
    }
}

impl<K: Kind> Drop for Held<K> {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, AcqRel);
    }
}

/// An object that is being destroyed; dropping this ends it and frees its place.
#[derive(Debug)]
pub(crate) struct Dying<K: Kind>(&'static Object<K>);

impl<K: Kind> Dying<K> {
    pub(crate) fn own(&self) -> &K {
        self.0.own()
    }
}

impl<K: Kind> Drop for Dying<K> {
    fn drop(&mut self) {
        // SAFETY: whoever holds this brought it from LIVE to DYING, so that it is dropped once.
        let own = unsafe { self.0.own.get().cast::<K>().read() };
        drop(own);
        self.0.state.store(FREE, Release);
        K::pool().free.lock().push_back(self.0);
    }
}

/// The first chunk's objects; each further one has twice as many.
const FIRST: usize = 64;
/// Chunks at most: 2^26 objects.
const CHUNKS: usize = 20;

/// All objects of a kind, alive or not.
pub(crate) struct Pool<K: Kind> {
    chunks: [AtomicPtr<Object<K>>; CHUNKS],
    /// Those to be used again, the one freed first in front.
    free: Mutex<VecDeque<&'static Object<K>>>,
    _kind: PhantomData<K>,
}

// SAFETY: pointers to objects that any thread may use, as `Object` says.
unsafe impl<K: Kind + Send + Sync> Sync for Pool<K> {}

impl<K: Kind> Pool<K> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS],
            free: Mutex::new(VecDeque::new()),
            _kind: PhantomData,
        }
    }

    /// Makes an object. `whole` and `own` are told where its program's part will stand.
    pub(crate) fn make(
        &'static self,
        make: impl FnOnce(*mut K::Public) -> Result<(K::Whole, K), Fail>,
    ) -> Result<&'static Object<K>, Fail> {
        let object = self.vacancy()?;
        match make(object.public()) {
            Ok((whole, own)) => {
                // SAFETY: the object is nobody's yet.
                unsafe { (*object.whole.get()).write(whole) };
                // SAFETY: likewise.
                unsafe { (*object.own.get()).write(own) };
                object.state.store(LIVE, Release);
                Ok(object)
            }
            Err(fail) => {
                self.free.lock().push_front(object);
                Err(fail)
            }
        }
    }

    fn vacancy(&'static self) -> Result<&'static Object<K>, Fail> {
        let free = &mut *self.free.lock();
        if let Some(object) = free.pop_front() {
            return Ok(object);
        }
        let taken = self.chunks.iter().position(|chunk| chunk.load(Acquire).is_null());
        let full = || Fail::new(libc::ENOMEM, format!("no more objects: {}", K::NAME));
        let at = taken.ok_or_else(full)?;
        let chunk = (0..FIRST << at).map(|_| Object::vacant()).collect::<Vec<_>>();
        let chunk = Vec::leak(chunk);
        self.chunks[at].store(chunk.as_mut_ptr(), Release);
        let chunk: &'static [Object<K>] = chunk;
        free.extend(&chunk[1..]);
        Ok(&chunk[0])
    }

    /// The object that C means, if it lives.
    pub(crate) fn get(&'static self, public: *const K::Public) -> Result<&'static Object<K>, Fail> {
        match self.find(public) {
            Some(object) if object.state.load(Acquire) == LIVE => Ok(object),
            found => Err(missing::<K>(public.cast(), found.is_some())),
        }
    }

    fn find(&'static self, public: *const K::Public) -> Option<&'static Object<K>> {
        let address = public.addr().wrapping_sub(K::OFFSET);
        for (at, chunk) in self.chunks.iter().enumerate() {
            let base = chunk.load(Acquire);
            if base.is_null() {
                return None;
            }
            let offset = address.wrapping_sub(base.addr());
            let size = size_of::<Object<K>>();
            if offset < (FIRST << at) * size {
                let there = base.wrapping_add(offset / size).cast_const();
                // SAFETY: within a chunk, which is never freed; objects are only shared.
                let object = unsafe { &*there };
                return offset.is_multiple_of(size).then_some(object);
            }
        }
        None
    }

    /// The object that C means, if it lives or is being destroyed: to acknowledge its events.
    pub(crate) fn get_dying(
        &'static self,
        public: *const K::Public,
    ) -> Result<&'static Object<K>, Fail> {
        let found = self.find(public).filter(|object| object.state.load(Acquire) != FREE);
        found.ok_or_else(|| missing::<K>(public.cast(), true))
    }

    /// Begins to destroy an object that nothing needs: from now on its pointer is refused.
    pub(crate) fn begin_end(&'static self, object: &'static Object<K>) -> Result<Dying<K>, Fail> {
        // Whoever looks at all objects finds this one alive until they are through, or not at all.
        let _free = self.free.lock();
        Self::kill(object)
    }

    /// As [`Self::begin_end`], with the list of free places locked.
    fn kill(object: &'static Object<K>) -> Result<Dying<K>, Fail> {
        let users = object.users();
        if users != 0 {
            let why = format!("the {} is in use by {users} objects; destroy them first", K::NAME);
            return Err(Fail::new(libc::EBUSY, why));
        }
        let mine = object.state.compare_exchange(LIVE, DYING, AcqRel, Relaxed);
        mine.map_err(|_| missing::<K>(object.public().cast(), true))?;
        Ok(Dying(object))
    }

    /// Destroys an object that nothing needs.
    pub(crate) fn destroy(&'static self, object: &'static Object<K>) -> Result<(), Fail> {
        self.begin_end(object).map(drop)
    }

    /// What `f` makes of the first that lives and of which it makes something.
    pub(crate) fn first<R>(
        &'static self,
        f: impl Fn(&'static Object<K>) -> Option<R>,
    ) -> Option<R> {
        let mut first = None;
        self.each(|object| {
            if first.is_none() {
                first = f(object);
            }
        });
        first
    }

    /// Begins to destroy all that live, satisfy `is` and are needed by nothing.
    pub(crate) fn begin_end_all(
        &'static self,
        is: impl Fn(&'static Object<K>) -> bool,
    ) -> Vec<Dying<K>> {
        let mut found = Vec::new();
        self.each(|object| {
            if is(object) {
                let ends = Self::kill(object);
                found.extend(ends.inspect_err(|left| tracing::debug!(%left, "not destroyed yet")));
            }
        });
        found
    }

    /// Shows `f` all that live. None of them is destroyed meanwhile, so `f` may hold one; it must
    /// not make or destroy any of the kind.
    fn each(&'static self, mut f: impl FnMut(&'static Object<K>)) {
        // Also, no new ones come between: who makes one takes this lock.
        let _free = self.free.lock();
        for (at, chunk) in self.chunks.iter().enumerate() {
            let base = chunk.load(Acquire);
            for index in 0..if base.is_null() { 0 } else { FIRST << at } {
                let there = base.wrapping_add(index).cast_const();
                // SAFETY: within a chunk, which is never freed; objects are only shared.
                let object: &'static Object<K> = unsafe { &*there };
                if object.state.load(Acquire) == LIVE {
                    f(object);
                }
            }
        }
    }
}

impl<K: Kind + Send + Sync> Fork for Pool<K> {
    fn before(&'static self) {
        // Given back by one of the two below.
        std::mem::forget(self.free.lock());
    }

    unsafe fn in_parent(&'static self) {
        // SAFETY: the caller's: `before` took it.
        unsafe { self.free.force_unlock(GuardNoSend::new()) };
    }

    unsafe fn in_child(&'static self) {
        // SAFETY: no other thread is here; what is locked is whole, for `before` took the lock.
        unsafe { fork::unlock(&self.free) };
    }
}

#[cfg(test)]
mod tests;

#[cold]
fn missing<K: Kind>(public: *const (), was: bool) -> Fail {
    let why = if was { "was destroyed" } else { "is none" };
    Fail::invalid(format!("the {} at {public:p} {why}", K::NAME))
}

/// The object that C means, if it lives.
pub(crate) fn get<K: Kind>(public: *const K::Public) -> Result<&'static Object<K>, Fail> {
    K::pool().get(public)
}

/// The object that C means, if it lives and is of a device that this process opened: for all calls
/// but those that only ask or destroy. In a child of that process locks of its parent's objects may
/// be held for ever.
pub(crate) fn ours<K: Owned>(public: *const K::Public) -> Result<&'static Object<K>, Fail> {
    let object = get::<K>(public)?;
    object.own().opening().check_ours()?;
    Ok(object)
}

/// Defines the pool of a kind.
macro_rules! kind {
    ($own:ty, $name:literal, $public:ty) => {
        kind!($own, $name, $public, $public, 0);
    };
    ($own:ty, $name:literal, $public:ty, $whole:ty, $offset:expr) => {
        impl $crate::object::Kind for $own {
            type Public = $public;
            type Whole = $whole;
            const OFFSET: usize = $offset;
            const NAME: &'static str = $name;

            fn pool() -> &'static $crate::object::Pool<Self> {
                static POOL: $crate::object::Pool<$own> = $crate::object::Pool::new();
                &POOL
            }
        }
    };
}
pub(crate) use kind;
