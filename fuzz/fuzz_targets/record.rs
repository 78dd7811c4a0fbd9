//! Any bytes are a line of the log or an error, and a line survives being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::Line;

fuzz_target!(|stored: &[u8]| {
    if let Ok(line) = serde_json::from_slice::<Line>(stored) {
        let again = serde_json::to_vec(&line).unwrap_or_default();
        assert!(!again.contains(&b'\n'), "a line holds a line feed");
        assert_eq!(serde_json::from_slice::<Line>(&again).ok(), Some(line));
    }
});
