//! Any texts are the owner's files or a list of mistakes, each with a place that is there; what loads decides calls.
//! Zero bytes part the files.
#![no_main]

use std::collections::BTreeMap;

use confine::profile::Profiles;
use libfuzzer_sys::fuzz_target;
use policy::{Policy, SessionView, Sound, decide};
use proto::{DataClass, Timestamp};

const NAMES: [&str; 6] = [
    "tools/a.toml",
    "grants/a.toml",
    "config.toml",
    "profiles/tools/a.toml",
    "tools/b.toml",
    "grants/b.toml",
];

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.split(|byte| *byte == 0);
    let files: BTreeMap<String, Vec<u8>> = NAMES
        .iter()
        .zip(&mut parts)
        .filter(|(_, part)| !part.is_empty())
        .map(|(name, part)| ((*name).to_owned(), part.to_vec()))
        .collect();
    let arguments = String::from_utf8_lossy(parts.next().unwrap_or(b"{}"));
    if let Err(errors) = Profiles::load(&files) {
        check(&files, errors.iter().map(|error| (&error.file, error.line)));
    }
    let policy = match Policy::load(&files, 1) {
        Ok(policy) => policy,
        Err(errors) => {
            assert!(!errors.is_empty());
            check(&files, errors.iter().map(|error| (&error.file, error.line)));
            for error in errors {
                assert!(!error.rule.is_empty() && !error.fix.is_empty(), "{error:?}");
            }
            return;
        }
    };
    let sound = Sound::of(&files);
    assert!(sound.config().is_some());
    let session = SessionView {
        taint: DataClass::Private,
        untrusted: false,
    };
    for tool in sound.tools() {
        let now = Timestamp::from_millis(0);
        let _ = decide(&policy, session, tool.name().as_str(), &arguments, now);
    }
});

/// Each mistake is in a file that there is, at a line that it has.
fn check<'a>(
    files: &BTreeMap<String, Vec<u8>>,
    errors: impl Iterator<Item = (&'a String, Option<usize>)>,
) {
    for (file, line) in errors {
        let lines = files
            .get(file)
            .map(|bytes| bytes.split(|byte| *byte == b'\n').count());
        assert!(lines.is_some(), "{file}");
        assert!(
            line <= lines && line != Some(0),
            "{file}: {line:?} of {lines:?}"
        );
    }
}
