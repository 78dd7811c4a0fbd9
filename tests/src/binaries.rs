//! Where the binaries under test are, and what this process may do.

use std::fs;
use std::path::PathBuf;

/// The path of one of the workspace's binaries.
///
/// # Panics
/// It is not built; `make test` builds every binary first.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    // A test runs from target/<profile>/deps, a binary from one level above.
    let own = std::env::current_exe().expect("the test has a path");
    let mut directory = own.parent().expect("it is in a directory");
    if directory.ends_with("deps") {
        directory = directory.parent().expect("it is in target/<profile>/deps");
    }
    let path = directory.join(name);
    assert!(
        path.exists(),
        "{} is not built: run `make test`, or `cargo build --workspace --bins` before `cargo test`",
        path.display()
    );
    path
}

/// Says why a test that needs root does nothing, and whether it must.
#[must_use]
pub fn skipped_without_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: {test}: needs root, to make namespaces, cgroups and id maps");
    }
    !root
}

/// Says why a test whose supervisor is a plain user's does nothing, and whether it must.
#[must_use]
pub fn skipped_without_user_namespaces(test: &str) -> bool {
    let off =
        |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let closed = off("/proc/sys/user/max_user_namespaces", "0")
        || off("/proc/sys/kernel/unprivileged_userns_clone", "0");
    if closed {
        println!("skipped: {test}: plain users may not make user namespaces on this host");
    }
    closed
}
