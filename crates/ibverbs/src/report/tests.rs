use super::*;

#[test]
fn failures_are_told_apart_up_to_a_bound_and_counted_beyond_it() {
    let mut book = Book::new();
    for errno in 0..70 {
        for _ in 0..2 {
            let why = || format!("for {errno}");
            count(&mut book.refused, ("ibv_reg_mr", errno), why, &mut book.untold);
        }
    }
    let object = book.object(&book.closed);
    let refused = object["refused_calls"].as_array().unwrap();
    assert_eq!(refused.len(), KINDS);
    assert_eq!(refused[3], json!({"call": "ibv_reg_mr", "errno": 3, "why": "for 3", "count": 2}));
    assert_eq!(object["other_failures"], 2 * (70 - 64));
}
