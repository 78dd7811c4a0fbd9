//! File systems that only one test sees.

use std::panic::resume_unwind;
use std::thread;

use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountPropagationFlags, mount_change};

/// Does `work` in a mount namespace of its own, which everything it starts is in too. As root.
///
/// # Panics
/// There is none to be had, or `work` panics.
pub fn in_own_mounts(work: impl FnOnce() + Send + 'static) {
    let thread = thread::spawn(move || {
        // Of this thread alone: each thread of a process can have its own (unshare(2)).
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).unwrap();
        work();
    });
    if let Err(panic) = thread.join() {
        resume_unwind(panic);
    }
}
