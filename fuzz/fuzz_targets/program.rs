//! Any file is a program that names what starts it, or is none; what is named is an absolute path.
#![no_main]

use std::fs::File;
use std::io::{Seek as _, Write as _};

use confine::host::started_by;
use libfuzzer_sys::fuzz_target;
use rustix::fs::MemfdFlags;

fuzz_target!(|bytes: &[u8]| {
    let Ok(memory) = rustix::fs::memfd_create("program", MemfdFlags::CLOEXEC) else {
        return;
    };
    let mut file = File::from(memory);
    if file.write_all(bytes).and_then(|()| file.rewind()).is_err() {
        return;
    }
    if let Some(path) = started_by(file) {
        assert!(path.starts_with('/') && !path.contains('\0'), "{path:?}");
    }
});
