//! Any bytes are frames or an error; what was read as a frame is written as the bytes it was read from.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::frame::{self, MAX_FRAME};

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    let mut written = Vec::new();
    while let Ok(Some(body)) = frame::read(&mut rest) {
        assert!((1..=MAX_FRAME).contains(&body.len()));
        if frame::write(&mut written, &body).is_err() {
            unreachable!("a body that was read is one that can be written");
        }
        assert!(bytes.starts_with(&written));
    }
});
