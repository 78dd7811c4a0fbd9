//! Landlock: the rules of the plan, and every right, port and scope that the kernel's ABI knows handled
//! (landlock(7)).

use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::io::Errno;

use super::{At, StageError, Steps};
use crate::host::Landlock;
use crate::message::Step;
use crate::plan::{self, LandlockRule, Rule};

/// What this process has of the running kernel's Landlock.
///
/// The version can only be read by restricting a thread, so this starts one that ends at once.
pub(crate) fn available() -> Landlock {
    std::thread::spawn(|| {
        let restricted = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::Execute)
            .and_then(Ruleset::create)
            .and_then(RulesetCreated::restrict_self);
        match restricted.map(|status| status.landlock) {
            Ok(LandlockStatus::Available { effective_abi, .. }) => {
                Landlock::Abi(effective_abi as u8)
            }
            Ok(LandlockStatus::NotEnabled) => Landlock::Off,
            _ => Landlock::Refused,
        }
    })
    .join()
    .unwrap_or(Landlock::Refused)
}

/// The rules, held by the kernel, that a process is about to have; none if every part is left out.
pub(super) struct Rules(Option<RulesetCreated>);

/// Makes the rules. The path of each is opened by `open` and let go at once, so that there may be more of them than descriptors;
/// one that is not there grants nothing and is no fault. Each of the three parts can be left out by itself.
pub(super) fn make(
    rules: &[LandlockRule],
    abi: u8,
    steps: Steps,
    open: impl Fn(&str, Rule) -> Result<OwnedFd, Errno>,
) -> Result<Rules, StageError> {
    let abi = ABI::from(i32::from(abi));
    let step = Step::LandlockFs;
    let files = if steps.has(Step::LandlockFs) {
        AccessFs::from_all(abi)
    } else {
        BitFlags::EMPTY
    };
    let ports = if steps.has(Step::LandlockNet) {
        AccessNet::from_all(abi)
    } else {
        BitFlags::EMPTY
    };
    let scopes = if steps.has(Step::LandlockScope) {
        Scope::from_all(abi)
    } else {
        BitFlags::EMPTY
    };
    if files.is_empty() && ports.is_empty() && scopes.is_empty() {
        return Ok(Rules(None));
    }
    // What the ABI knows must be enforced or the step fails; what it does not know is not asked for, and the
    // canaries find it missing.
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    if !files.is_empty() {
        ruleset = ruleset.handle_access(files).at(step, "file rights")?;
    }
    if !ports.is_empty() {
        ruleset = ruleset
            .handle_access(ports)
            .at(Step::LandlockNet, "TCP rights")?;
    }
    if !scopes.is_empty() {
        ruleset = ruleset.scope(scopes).at(Step::LandlockScope, "scopes")?;
    }
    // no_new_privs is a step of its own; setting it here as well would hide that it was left out.
    let mut ruleset = ruleset
        .create()
        .at(step, "create ruleset")?
        .no_new_privs(false);
    for LandlockRule { path, rule } in rules {
        let descriptor = match open(path, *rule) {
            Ok(descriptor) => descriptor,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno).at(Step::OpenRules, path),
        };
        let kind = rustix::fs::fstat(&descriptor)
            .at(Step::OpenRules, path)?
            .st_mode;
        let directory = rustix::fs::FileType::from_raw_mode(kind).is_dir();
        let known = if directory {
            files
        } else {
            files & AccessFs::from_file(abi)
        };
        let rights = rights(*rule) & known;
        if !rights.is_empty() {
            let rule = PathBeneath::new(descriptor, rights);
            ruleset = ruleset.add_rule(rule).at(Step::OpenRules, path)?;
        }
    }
    Ok(Rules(Some(ruleset)))
}

impl Rules {
    /// Restricts the process.
    pub(super) fn restrict(self) -> Result<(), StageError> {
        let restricted = self.0.map(RulesetCreated::restrict_self).transpose();
        restricted.map(drop).at(Step::LandlockFs, "restrict")
    }
}

/// The rights that a rule of the plan stands for.
fn rights(rule: Rule) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write_files =
        AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let write_tree =
        write_files | AccessFs::MakeDir | AccessFs::RemoveDir | AccessFs::MakeSym | AccessFs::Refer;
    match rule {
        Rule::Read | Rule::Tree(plan::Access::Read) => read,
        Rule::Execute => AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir,
        Rule::Device => AccessFs::ReadFile | AccessFs::WriteFile,
        Rule::Scratch => read | write_tree | AccessFs::MakeFifo | AccessFs::MakeSock,
        Rule::Tree(plan::Access::WriteFiles) => write_files,
        Rule::Tree(plan::Access::WriteTree) => write_tree,
        Rule::Tree(plan::Access::ReadWriteFiles) => read | write_files,
        Rule::Tree(plan::Access::ReadWriteTree) => read | write_tree,
    }
}
