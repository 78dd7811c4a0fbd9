//! Any text is read as a file of `/proc` without harm; a mount's path is read as the kernel wrote it.
#![no_main]

use confine::measure::status::Status;
use confine::{cgroup, measure};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = Status::parse(text);
    let (_, mounts) = measure::read_proc(text, text);
    for mount in mounts {
        let line = format!(
            "1 1 0:1 / {} {} - x x x\n",
            escaped(&mount.path),
            mount.options.join(",")
        );
        let (_, again) = measure::read_proc("", &line);
        // A path of nothing is no field, and no kernel writes one.
        if !mount.path.is_empty() {
            assert_eq!(again, [mount]);
        }
    }
    let (_, groups) = cgroup::read_proc(text, text);
    for group in groups {
        assert!(
            text.lines()
                .any(|line| line.ends_with(&format!(":{group}"))),
            "{group}"
        );
    }
});

/// As seq_path() of the kernel writes a path, and besides what Rust takes for white space.
fn escaped(path: &str) -> String {
    let mut text = String::new();
    for character in path.chars() {
        match character {
            character if character.is_ascii_whitespace() || character == '\\' => {
                text.push_str(&format!("\\{:03o}", u32::from(character)));
            }
            character => text.push(character),
        }
    }
    text
}
