//! Giving up privileges: capability sets, ids, dumpability, the parent-death signal.

use caps::{CapSet, Capability};
use nix::unistd::{Gid, Uid};
use rustix::process::{DumpableBehavior, Signal};
use rustix::thread::CapabilitiesSecureBits as SecureBits;

use super::{At, StageError, Steps};
use crate::message::Step;
use crate::plan::Identity;

/// The secure bits of every sandbox: uid 0 means nothing, no capability survives a change of ids or is raised again,
/// and none of that can be undone (capabilities(7)).
pub(crate) const SECURE_BITS: SecureBits = SecureBits::NO_ROOT
    .union(SecureBits::NO_ROOT_LOCKED)
    .union(SecureBits::NO_SETUID_FIXUP_LOCKED)
    .union(SecureBits::KEEP_CAPS_LOCKED)
    .union(SecureBits::NO_CAP_AMBIENT_RAISE)
    .union(SecureBits::NO_CAP_AMBIENT_RAISE_LOCKED);

/// Gives up everything but what [`bounding()`] has taken already, and has `at_end` sent when the supervisor ends.
pub(super) fn drop_all(
    identity: Identity,
    one_user: bool,
    at_end: Signal,
    steps: Steps,
) -> Result<(), StageError> {
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    // A user namespace without privileges has setgroups denied, and so has a plain user; the groups stay, and `uid` is a gap
    // there.
    if !one_user {
        steps.take(Step::Groups, || {
            nix::unistd::setgroups(&[]).at(Step::Groups, "setgroups")
        })?;
    }
    steps.take(Step::Gid, || {
        nix::unistd::setresgid(gid, gid, gid).at(Step::Gid, gid)
    })?;
    steps.take(Step::Uid, || {
        nix::unistd::setresuid(uid, uid, uid).at(Step::Uid, uid)
    })?;
    steps.take(Step::Capabilities, || {
        for set in [CapSet::Effective, CapSet::Permitted, CapSet::Inheritable] {
            caps::clear(None, set).at(Step::Capabilities, format_args!("{set:?}"))?;
        }
        Ok(())
    })?;
    // Changing the ids has already made the process non-dumpable where it changed any. Leaving the step out must
    // show all the same, so it is the whole state that the step decides.
    let dumpable = match steps.has(Step::Dumpable) {
        true => DumpableBehavior::NotDumpable,
        false => DumpableBehavior::Dumpable,
    };
    rustix::process::set_dumpable_behavior(dumpable).at(Step::Dumpable, "prctl")?;
    steps.take(Step::ParentDeath, || {
        rustix::process::set_parent_process_death_signal(Some(at_end))
            .at(Step::ParentDeath, "prctl")
    })
}

/// A plain user may not empty the bounding set. That is tolerated in a bare sandbox: with no new privileges nothing comes out
/// of it, and the measurement looks at both.
pub(super) fn bounding(bare: bool) -> Result<(), StageError> {
    let step = Step::Bounding;
    caps::clear(None, CapSet::Ambient).at(step, "ambient set")?;
    let able = caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP);
    if bare && !able.unwrap_or(false) {
        return Ok(());
    }
    rustix::thread::set_capabilities_secure_bits(SECURE_BITS).at(step, "secure bits")?;
    caps::clear(None, CapSet::Bounding).at(step, "bounding set")
}
