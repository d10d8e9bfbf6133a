use super::{Bound, TARGETS, names, target};
use crate::bench::case;

#[test]
fn every_target_is_of_a_case_and_of_something_that_it_measures() {
    let cases = case::all();
    for (name, of, _) in TARGETS {
        let case = cases.iter().find(|case| case.name == *name);
        let case = case.unwrap_or_else(|| panic!("no case `{name}`"));
        let known = *of == names::JAIN || case.rivals.iter().any(|rival| rival.name == *of);
        assert!(known, "{name} is not compared with {of}");
    }
}

#[test]
fn bounds_are_met_at_the_bound() {
    assert!(Bound::AtLeast(0.5).is_met(0.5) && !Bound::AtLeast(0.5).is_met(0.4999));
    assert!(Bound::AtMost(1.5).is_met(1.5) && !Bound::AtMost(1.5).is_met(1.5001));
    assert!(!Bound::AtLeast(0.5).is_met(f64::NAN) && !Bound::AtMost(0.5).is_met(f64::NAN));
}

#[test]
fn a_target_is_found_by_case_and_baseline() {
    assert_eq!(target("idle.cpu", names::CORE), Some(Bound::AtMost(0.01)));
    assert_eq!(target("idle.cpu", names::TCP), None);
    assert_eq!(target("write.64.mtu4096", names::RAW), None);
}
