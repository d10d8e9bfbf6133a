use urxe_sim::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n = |i: usize, d: u64| a.get(i).map_or(d, |s| s.parse().unwrap());
    let (first, count, pct) = (n(1, 0), n(2, 100), n(3, 0) as u32);
    let mut settings = Settings::default();
    let s = Share::percent(pct);
    settings.link =
        link::LinkConfig { loss: s, duplicate: s, reorder: s, corrupt: s, ..Default::default() };
    settings.trouble = n(4, 1) == 1;
    if let Some(p) = a.get(5) {
        settings.profile = urxe_engine::Profile::by_name(p);
    }
    if std::env::var("ONE").is_ok() {
        let mut run = Run::new(first, settings.clone());
        run.keep_trace = true;
        let out = run.go();
        for r in out.trace.records() {
            println!("{r}");
        }
        for (i, c) in out.plan.conns.iter().enumerate() {
            println!("{i}: {c:?}");
        }
        println!("{:?}", out.plan.deeds);
        println!("{:?}", out.violation.map(|v| v.to_string()));
        return;
    }
    let t = std::time::Instant::now();
    let mut kinds = std::collections::BTreeMap::<String, (u64, u64, String)>::new();
    let mut all = Stats::default();
    std::panic::set_hook(Box::new(|_| {}));
    for seed in first..first + count {
        let out = Run::new(seed, settings.clone()).go();
        all.good += out.stats.good;
        all.failed += out.stats.failed;
        all.packets += out.stats.packets;
        if let Some(v) = out.violation {
            let e = kinds.entry(format!("{:?}", v.invariant)).or_insert((0, seed, v.to_string()));
            e.0 += 1;
        }
    }
    for (k, (c, s, t)) in kinds {
        println!("{k}: {c}, seed {s}: {t}\n");
    }
    println!("{all:?} {:?}", t.elapsed());
}
