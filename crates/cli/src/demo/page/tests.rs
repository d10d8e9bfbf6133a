use serde_json::{Value, json};

use super::{PARTS, TEMPLATE, inert, page};

#[test]
fn data_cannot_end_the_script() {
    let data = json!({ "title": "a </script><script>alert(1)</script> <!-- in a title" });
    let text = inert(&data);
    assert!(!text.contains('<'), "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), data);
    let count = |page: &str| page.matches("</script").count();
    assert_eq!(count(&page(&data)), count(&page(&json!({}))));
}

#[test]
fn every_part_has_its_place_and_needs_nothing_else() {
    let page = page(&json!({ "steps": ["42 of them"] }));
    assert!(page.contains(r#"{"steps":["42 of them"]}"#));
    for (mark, part) in PARTS {
        assert_eq!(TEMPLATE.matches(mark).count(), 1, "{mark}");
        assert!(page.contains(part), "{mark}");
        assert!(!page.contains(mark), "{mark}");
    }
    for outside in ["http:", "https:", "//cdn", "@import", "url(", "src=", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
}
