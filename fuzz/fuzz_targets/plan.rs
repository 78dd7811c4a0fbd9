//! Any bytes are a plan or an error; a plan has one canonical text, and its description fits a terminal.
#![no_main]

use confine::Plan;
use confine::describe::describe;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(plan) = serde_json::from_slice::<Plan>(bytes) else {
        return;
    };
    let text = serde_json::to_vec(&plan).unwrap_or_default();
    let again = serde_json::from_slice::<Plan>(&text).ok();
    assert_eq!(again.as_ref(), Some(&plan));
    assert_eq!(again.and_then(|again| again.hash().ok()), plan.hash().ok());
    let told = describe(&plan);
    assert!(told.ends_with('\n'));
    for line in told.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
        assert!(
            !line.contains(|character: char| character.is_control()),
            "{line:?}"
        );
    }
});
