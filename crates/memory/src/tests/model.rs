//! Random operations against a model in plain memory: the same accesses are allowed, the same bytes
//! result, and no other byte of the arena changes.

use proptest::prelude::*;

use super::*;

mod ops;

use ops::{ARENA, Op, access_memory, manage};

#[derive(Clone, Debug)]
struct Region {
    info: MrInfo,
    at: usize,
    alive: bool,
    invalidatable: bool,
}

#[derive(Clone, Debug)]
struct Window {
    id: MwId,
    kind: MwType,
    pd: PdId,
    key: u32,
    alive: bool,
    /// Region, address in it, first address of the window, length, rights, QP.
    bound: Option<(usize, u64, u64, u64, Access, u32)>,
}

/// What a key allows in the model: start, length, arena offset of the start, rights.
struct Allowed {
    start: u64,
    len: u64,
    at: usize,
    access: Access,
}

impl Allowed {
    /// Where the bytes stand in the arena, if the key covers them with these rights.
    fn place(&self, addr: u64, len: u64, need: Access) -> Option<usize> {
        let (first, end) = (u128::from(addr), u128::from(addr) + u128::from(len));
        let (start, limit) =
            (u128::from(self.start), u128::from(self.start) + u128::from(self.len));
        let within = first >= start && end <= limit && self.access.contains(need);
        within.then(|| self.at + usize::try_from(first - start).unwrap())
    }
}

/// One of the objects: mostly one alive, for only those lead anywhere.
fn choose<T>(n: usize, all: &[T], alive: impl Fn(&T) -> bool) -> Option<usize> {
    let living: Vec<usize> = (0..all.len()).filter(|&i| alive(&all[i])).collect();
    if n.is_multiple_of(8) || living.is_empty() {
        return (!all.is_empty()).then(|| n % all.len());
    }
    Some(living[n % living.len()])
}

struct World {
    memory: Memory,
    arena: Arc<Buffer>,
    pds: [PdId; 2],
    bytes: Vec<u8>,
    regions: Vec<Region>,
    windows: Vec<Window>,
    /// All keys ever seen, and addresses of interest with them.
    keys: Vec<(u32, u64)>,
}

impl World {
    fn new(seed: u32) -> Self {
        let memory = Memory::new(Config { key_seed: seed, max_pd: 2, max_mr: 6, max_mw: 4 });
        let pds = [memory.alloc_pd().unwrap(), memory.alloc_pd().unwrap()];
        let arena = Buffer::zeroed(ARENA).unwrap();
        let bytes: Vec<u8> = (0..ARENA).map(|i| i.to_le_bytes()[0] ^ 0xa5).collect();
        arena.write(0, &bytes).unwrap();
        let keys = vec![(0, 0), (u32::MAX, 0)];
        Self { memory, arena, pds, bytes, regions: Vec::new(), windows: Vec::new(), keys }
    }

    /// A key and the first address under it: mostly a key in force.
    fn key(&self, n: usize) -> (u32, u64) {
        let regions = self.regions.iter().filter(|r| r.alive && r.info.valid);
        let windows = self.windows.iter().filter(|w| w.alive);
        let regions = regions.map(|r| (r.info.rkey, r.info.iova));
        let windows = windows.map(|w| (w.key, w.bound.map_or(0, |bound| bound.2)));
        let live: Vec<_> = regions.chain(windows).collect();
        if n.is_multiple_of(8) || live.is_empty() {
            return self.keys[n % self.keys.len()];
        }
        live[n % live.len()]
    }

    fn backing(&self, at: usize, len: usize) -> Backing {
        Backing::part(Arc::clone(&self.arena), at, len).unwrap()
    }

    fn windows_of(&self, mr: usize) -> usize {
        let on = |w: &&Window| w.alive && w.bound.is_some_and(|bound| bound.0 == mr);
        self.windows.iter().filter(on).count()
    }

    fn region_by_key(&self, key: u32) -> Option<usize> {
        let is = |r: &Region| r.alive && r.info.valid && r.info.rkey == key;
        self.regions.iter().position(is)
    }

    fn window_by_key(&self, key: u32) -> Option<usize> {
        self.windows.iter().position(|w| w.alive && w.key == key)
    }

    fn allowed(&self, key: u32, pd: PdId, qpn: Option<u32>) -> Option<Allowed> {
        if let Some(mr) = self.region_by_key(key) {
            let r = &self.regions[mr];
            let (start, len, access) = (r.info.iova, r.info.length, r.info.access);
            return (r.info.pd == pd).then_some(Allowed { start, len, at: r.at, access });
        }
        let qpn = qpn?; // windows have no lkey
        let w = &self.windows[self.window_by_key(key)?];
        let (mr, addr, start, len, access, owner) = w.bound?;
        let r = &self.regions[mr];
        let at = r.at + usize::try_from(addr - r.info.iova).unwrap();
        let usable = w.pd == pd && (w.kind == MwType::Type1 || owner == qpn);
        usable.then_some(Allowed { start, len, at, access })
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Reg { .. } => self.reg(op),
            Op::Rereg { mr, pd, access, range } => self.rereg(*mr, *pd, *access, *range),
            Op::Dereg { mr } => self.dereg(*mr),
            Op::AllocMw { pd, kind } => self.alloc_mw(self.pds[*pd], *kind),
            Op::DeallocMw { mw } => self.dealloc_mw(*mw),
            Op::Bind { .. } => self.bind(op),
            Op::Invalidate { key, pd, qpn, remote } => {
                self.invalidate(*key, self.pds[*pd], *qpn, *remote);
            }
            Op::Remote { .. } | Op::Add { .. } => self.remote(op),
            Op::Local { .. } => self.local(op),
        }
        assert_eq!(bytes(&self.arena), self.bytes, "after {op:?}");
    }

    fn reg(&mut self, op: &Op) {
        let Op::Reg { pd, at, len, iova, access, invalidatable } = *op else { return };
        let start = if access.contains(Access::ZERO_BASED) { 0 } else { iova };
        let alive = self.regions.iter().filter(|r| r.alive).count();
        let fits = len == 0 || u128::from(start) + len as u128 <= 1 << 64;
        let allow = access.check().is_ok() && fits && alive < 6;
        let options = MrOptions { invalidatable };
        let pd = self.pds[pd];
        let got = self.memory.reg_mr_with(pd, self.backing(at, len), iova, access, options);
        assert_eq!(got.is_ok(), allow, "{op:?}: {got:?}");
        if let Ok(info) = got {
            assert_eq!((info.iova, info.length), (start, len as u64));
            self.keys.push((info.rkey, start));
            self.regions.push(Region { info, at, alive: true, invalidatable });
        }
    }

    fn rereg(
        &mut self,
        mr: usize,
        pd: Option<usize>,
        access: Option<Access>,
        range: Option<(usize, usize)>,
    ) {
        let Some(mr) = choose(mr, &self.regions, |r| r.alive) else { return };
        let bound = self.windows_of(mr) > 0;
        let old = &self.regions[mr];
        let wanted = access.unwrap_or(old.info.access);
        let memory = range.map(|(at, len)| (self.backing(at, len), 0x40));
        let pd = pd.map(|pd| self.pds[pd]);
        let got = self.memory.rereg_mr(old.info.id, Rereg { memory, pd, access });
        assert_eq!(got.is_ok(), old.alive && !bound && wanted.check().is_ok(), "{got:?}");
        if let Ok(info) = got {
            let kept = range.is_none() && old.info.valid;
            assert_eq!(info.rkey == old.info.rkey, kept);
            assert_eq!((info.pd, info.access), (pd.unwrap_or(old.info.pd), wanted));
            self.keys.push((info.rkey, info.iova));
            let at = range.map_or(old.at, |(at, _)| at);
            self.regions[mr] = Region { info, at, ..old.clone() };
        }
    }

    fn dereg(&mut self, mr: usize) {
        let Some(mr) = choose(mr, &self.regions, |r| r.alive) else { return };
        let allow = self.regions[mr].alive && self.windows_of(mr) == 0;
        let got = self.memory.dereg_mr(self.regions[mr].info.id);
        assert_eq!(got.is_ok(), allow, "{got:?}");
        self.regions[mr].alive &= !allow;
    }

    fn alloc_mw(&mut self, pd: PdId, kind: MwType) {
        let got = self.memory.alloc_mw(pd, kind);
        assert_eq!(got.is_ok(), self.windows.iter().filter(|w| w.alive).count() < 4);
        if let Ok((id, key)) = got {
            self.keys.push((key, 0));
            self.windows.push(Window { id, kind, pd, key, alive: true, bound: None });
        }
    }

    fn dealloc_mw(&mut self, mw: usize) {
        let Some(mw) = choose(mw, &self.windows, |w| w.alive) else { return };
        let window = &mut self.windows[mw];
        assert_eq!(self.memory.dealloc_mw(window.id).is_ok(), window.alive);
        (window.alive, window.bound) = (false, None);
    }

    fn bind(&mut self, op: &Op) {
        let Op::Bind { mw, mr, pd, qpn, shift, len, access, low } = *op else { return };
        let Some(mw) = choose(mw, &self.windows, |w| w.alive) else { return };
        let Some(mr) = choose(mr, &self.regions, |r| r.alive) else { return };
        let (w, r) = (&self.windows[mw], &self.regions[mr]);
        let pd = self.pds[pd];
        let addr = r.info.iova.wrapping_add(shift);
        let new_rkey = (w.kind == MwType::Type2B).then_some((w.key & !0xff) | u32::from(low));
        let lkey = r.info.lkey;
        let bind = BindMw { mw: w.id, pd, qpn, lkey, new_rkey, addr, len, access };
        let got = self.memory.bind_mw(&bind);

        let range =
            Allowed { start: r.info.iova, len: r.info.length, at: 0, access: r.info.access };
        let mut need = Access::MW_BIND;
        need.set(Access::LOCAL_WRITE, access.intersects(Access::REMOTE_CHANGE));
        let target = r.alive
            && r.info.valid
            && r.info.pd == pd
            && !r.info.access.contains(Access::ZERO_BASED)
            && range.place(addr, len, need).is_some();
        let type_1 = w.kind == MwType::Type1;
        let zero_based = access.contains(Access::ZERO_BASED);
        let allow = w.alive
            && w.pd == pd
            && (access - Access::REMOTE - Access::ZERO_BASED).is_empty()
            && if type_1 { !zero_based } else { w.bound.is_none() && len > 0 }
            && (len == 0 || target);
        assert_eq!(got.is_ok(), allow, "{op:?}: {got:?}");
        if let Ok(key) = got {
            let start = if zero_based { 0 } else { addr };
            self.keys.push((key, start));
            self.windows[mw].key = key;
            self.windows[mw].bound = (len > 0).then_some((mr, addr, start, len, access, qpn));
        }
    }

    fn invalidate(&mut self, key: usize, pd: PdId, qpn: u32, remote: bool) {
        let (key, _) = self.key(key);
        let got = self.memory.invalidate(pd, qpn, key, remote);
        if let Some(mr) = self.region_by_key(key) {
            let r = &self.regions[mr];
            let open = !remote || r.info.access.intersects(Access::REMOTE);
            let allow = r.invalidatable && r.info.pd == pd && self.windows_of(mr) == 0 && open;
            assert_eq!(got.is_ok(), allow, "{got:?}");
            self.regions[mr].info.valid = !allow;
        } else if let Some(mw) = self.window_by_key(key) {
            let w = &self.windows[mw];
            let mine = w.pd == pd && w.bound.is_some_and(|bound| bound.5 == qpn);
            let allow = w.kind == MwType::Type2B && mine;
            assert_eq!(got.is_ok(), allow, "{got:?}");
            if allow {
                self.windows[mw].bound = None;
            }
        } else {
            assert!(got.is_err());
        }
    }

    fn remote(&mut self, op: &Op) {
        let (key, pd, qpn, shift, len, need) = match *op {
            Op::Remote { key, pd, qpn, shift, len, need, .. } => (key, pd, qpn, shift, len, need),
            Op::Add { key, pd, qpn, shift, .. } => (key, pd, qpn, shift, 8, Access::REMOTE_ATOMIC),
            _ => return,
        };
        let (key, base) = self.key(key);
        let (pd, addr) = (self.pds[pd], base.wrapping_add(shift));
        let got = self.memory.remote(pd, qpn, key, addr, len, need);
        let place = self.allowed(key, pd, Some(qpn)).and_then(|a| a.place(addr, len, need));
        assert_eq!(got.is_ok(), len == 0 || place.is_some(), "{op:?}: {got:?}");
        let (Ok(pinned), Some(place)) = (got, place) else { return };
        let range = place..place + usize::try_from(len).unwrap();
        match *op {
            Op::Add { add, .. } => {
                let got = pinned.fetch_add(0, add);
                let aligned = addr.is_multiple_of(8) && place.is_multiple_of(8);
                assert_eq!(got.is_ok(), aligned);
                if let Ok(old) = got {
                    assert_eq!(old.to_ne_bytes(), self.bytes[range.clone()]);
                    self.bytes[range].copy_from_slice(&old.wrapping_add(add).to_ne_bytes());
                }
            }
            Op::Remote { byte, .. } if need.intersects(Access::REMOTE_CHANGE) => {
                pinned.write(0, &vec![byte; range.len()]).unwrap();
                self.bytes[range].fill(byte);
            }
            _ => {
                let mut got = vec![0; range.len()];
                pinned.read(0, &mut got).unwrap();
                assert_eq!(got, self.bytes[range]);
            }
        }
    }

    fn local(&mut self, op: &Op) {
        let Op::Local { parts, pd, skip, len, write, byte } = op else { return };
        let (pd, skip, len) = (self.pds[*pd], *skip, *len as u64);
        let list = parts.iter().map(|&(key, shift, length)| {
            let (lkey, base) = self.key(key);
            Sge { addr: base.wrapping_add(shift), length, lkey }
        });
        let list: Vec<Sge> = list.collect();
        // Byte by byte: where does each one stand?
        let need = if *write { Access::LOCAL_WRITE } else { Access::empty() };
        let size = usize::try_from(len).unwrap();
        let all = list.iter().flat_map(|sge| (0..u64::from(sge.length)).map(move |i| (sge, i)));
        let wanted: Vec<_> = all
            .skip(usize::try_from(skip).unwrap())
            .take(size)
            .map(|(sge, i)| {
                let allowed = self.allowed(sge.lkey, pd, None)?;
                sge.addr.checked_add(i).and_then(|addr| allowed.place(addr, 1, need))
            })
            .collect();
        let complete = wanted.len() as u64 == len;
        let places: Option<Vec<usize>> = wanted.into_iter().collect();
        let places = places.filter(|_| complete);
        if *write {
            let data: Vec<u8> = (0..size).map(|i| byte.wrapping_add(i.to_le_bytes()[0])).collect();
            let got = self.memory.scatter(pd, &list, skip, &data);
            assert_eq!(got.is_ok(), places.is_some(), "{op:?}: {got:?}");
            let placed = places.into_iter().flatten().zip(data);
            placed.for_each(|(place, byte)| self.bytes[place] = byte);
        } else {
            let got = self.memory.gather(pd, &list, skip, size);
            assert_eq!(got.is_ok(), places.is_some(), "{op:?}: {got:?}");
            let (Ok(gather), Some(places)) = (got, places) else { return };
            let mut sent = vec![0; size];
            assert_eq!(gather.copy_to(&mut sent), size);
            assert_eq!(sent, places.iter().map(|&at| self.bytes[at]).collect::<Vec<_>>());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn accesses_are_those_of_the_model(
        seed in any::<u32>(),
        ops in prop::collection::vec(prop_oneof![2 => manage(), 3 => access_memory()], 20..120),
    ) {
        let mut world = World::new(seed);
        for op in &ops {
            world.apply(op);
        }
    }
}
