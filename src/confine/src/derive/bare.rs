//! What changes in a plan where no namespace can be made: nothing is mounted, `/proc` and everything else is the host's,
//! and Landlock alone says what may be done where. Its rules add up along a path, so a granted tree cannot take back
//! what one around it gives.

use std::collections::BTreeMap;

use super::root::{Root, TreeError};
use super::{TreeProblem, is_below};
use crate::plan::{Access, LandlockRule, Mount, Rule, SCRATCH};
use crate::seccomp::{BARE, BARE_FIXED, BARE_OLD};

/// The Landlock ABI that has every right and scope that the filter would have to stand in for.
const SCOPED: u8 = 6;

/// Checks that rules alone can hold what a root would.
///
/// # Errors
/// A tree to be read in one that may be written, or one in which a program of the sandbox could be changed.
pub(super) fn check(root: &Root<'_>) -> Result<(), TreeError> {
    for (path, access) in root.trees() {
        let around = |(outer, _): &(&str, Access)| *outer != path && is_below(path, outer);
        let mut around = root.trees().filter(around);
        let protects = |(_, outer): &(&str, Access)| outer.writes() && !access.writes();
        if let Some((outer, _)) = around.find(protects) {
            return Err((path.to_owned(), TreeProblem::Inner(outer.to_owned())));
        }
        let mut programs = root.programs();
        let changeable = programs.find(|program| access.writes() && is_below(program, path));
        if let Some(program) = changeable {
            return Err((path.to_owned(), TreeProblem::Program(program.to_owned())));
        }
    }
    Ok(())
}

/// The profile's sets and those that narrow them.
pub(super) fn sets(profile: &[String], root: &Root<'_>, landlock_abi: u8) -> Vec<String> {
    let mut trees = root.trees().map(|(_, access)| access.writes()).peekable();
    // Whoever holds a file open may change its mode, whatever it was opened for.
    let only_writes = trees.peek().is_some() && trees.all(|writes| writes);
    let narrowing = [
        Some(BARE),
        (!only_writes).then_some(BARE_FIXED),
        (landlock_abi < SCOPED).then_some(BARE_OLD),
    ];
    let narrowing = narrowing.into_iter().flatten().map(str::to_owned);
    profile.iter().cloned().chain(narrowing).collect()
}

/// What is left of a root: the places that are the sandbox's own.
pub(super) fn mounts(all: Vec<Mount>) -> Vec<Mount> {
    let own = |mount: &Mount| matches!(mount, Mount::Scratch { .. } | Mount::Tree { .. });
    all.into_iter().filter(own).collect()
}

/// The rules but for `/proc`, which shows the host's processes.
pub(super) fn rules(all: Vec<LandlockRule>) -> Vec<LandlockRule> {
    let hosts = |rule: &LandlockRule| rule.path == "/proc" && rule.rule == Rule::Read;
    all.into_iter().filter(|rule| !hosts(rule)).collect()
}

/// Points programs that ask for a place of their own to the scratch directory.
pub(super) fn environment(env: &mut BTreeMap<String, String>) {
    env.entry("TMPDIR".to_owned())
        .or_insert_with(|| SCRATCH.to_owned());
}
