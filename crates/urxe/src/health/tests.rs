use super::*;

#[test]
fn trouble_is_news_once_and_so_is_its_end() {
    let health = Health::default();
    assert!(!health.whole(), "it never was broken");
    assert!(health.failed(&"the cable"));
    assert!(!health.failed(&"the plug"));
    assert_eq!(health.broken().unwrap(), "the cable", "the first reason stands");
    assert!(!health.whole(), "the last call failed");
    health.succeeded();
    assert!(health.broken().is_some(), "one good call is not enough");
    assert!(health.whole());
    assert_eq!(health.broken(), None);
    assert!(!health.whole());
}
