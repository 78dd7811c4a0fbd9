//! The files of a test: binaries under other names, and an owner who keeps everybody out.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown};
use std::path::Path;

/// The user to whom the files belong where root starts the supervisor; it need not exist.
pub const OWNER: u32 = 1000;

/// A binary under another name: linked where that works, so that it costs nothing.
pub(super) fn place(from: &Path, to: &Path) {
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).unwrap();
    }
}

/// Gives `path` and everything below it to `owner`, directories 0700 and files 0600.
pub(super) fn own(path: &Path, owner: u32) {
    let metadata = fs::symlink_metadata(path).unwrap();
    let group = rustix::process::geteuid().is_root().then_some(owner);
    lchown(path, Some(owner), group).unwrap();
    if metadata.is_symlink() {
        return;
    }
    let mode = if metadata.is_dir() { 0o700 } else { 0o600 };
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    chown(path, Some(owner), group).unwrap();
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            own(&entry.unwrap().path(), owner);
        }
    }
}
