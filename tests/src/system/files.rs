//! The files of a test: binaries under other names, and an owner who keeps everybody out.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown};
use std::path::Path;

/// The user to whom the files belong; it need not exist.
pub const OWNER: u32 = 1000;

/// A binary under another name: linked where that works, so that it costs nothing.
pub(super) fn place(from: &Path, to: &Path) {
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).unwrap();
    }
}

/// Gives `path` and everything below it to the owner, directories 0700 and files 0600.
pub(super) fn own(path: &Path) {
    let metadata = fs::symlink_metadata(path).unwrap();
    lchown(path, Some(OWNER), Some(OWNER)).unwrap();
    if metadata.is_symlink() {
        return;
    }
    let mode = if metadata.is_dir() { 0o700 } else { 0o600 };
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    chown(path, Some(OWNER), Some(OWNER)).unwrap();
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            own(&entry.unwrap().path());
        }
    }
}
