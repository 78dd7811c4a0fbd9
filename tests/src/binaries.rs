//! Where the binaries under test are, and what this process may do.

use std::path::PathBuf;

/// The path of one of the workspace's binaries.
///
/// # Panics
/// It is not built; `make test` builds every binary first.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    // A test runs from target/<profile>/deps, a binary stands one level above.
    let own = std::env::current_exe().expect("the test has a path");
    let directory = own
        .ancestors()
        .nth(2)
        .expect("the test is in target/<profile>/deps");
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
