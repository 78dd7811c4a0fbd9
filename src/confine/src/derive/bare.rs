//! What changes in a plan where no namespace can be made: nothing is mounted, and Landlock alone says what may be done
//! where. Its rules add up along a path, so a granted tree cannot take back what one around it gives.

use super::root::{Root, TreeError};
use super::{TreeProblem, is_below};
use crate::plan::{Access, Mount};
use crate::seccomp::{BARE, BARE_FIXED};

/// Checks that rules alone can hold what a root would.
///
/// # Errors
/// A tree in another one that may do more, or one in which a program of the sandbox could be changed.
pub(super) fn check(root: &Root<'_>) -> Result<(), TreeError> {
    for (path, access) in root.trees() {
        let around = |(outer, _): &(&str, Access)| *outer != path && is_below(path, outer);
        let mut around = root.trees().filter(around);
        if let Some((outer, _)) = around.find(|(_, outer)| !includes(access, *outer)) {
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

/// Whether the first access allows all that the second one does.
const fn includes(access: Access, other: Access) -> bool {
    let ((reads, writes), (other_reads, other_writes)) = (parts(access), parts(other));
    reads >= other_reads && writes >= other_writes
}

/// Whether something is read, and how much is written.
const fn parts(access: Access) -> (bool, u8) {
    match access {
        Access::Read => (true, 0),
        Access::WriteFiles => (false, 1),
        Access::WriteTree => (false, 2),
        Access::ReadWriteFiles => (true, 1),
        Access::ReadWriteTree => (true, 2),
    }
}

/// The profile's sets and those that narrow them: Landlock does not look at modes, owners, times and attributes.
pub(super) fn sets(profile: &[String], root: &Root<'_>) -> Vec<String> {
    let mut trees = root.trees().map(|(_, access)| access.writes()).peekable();
    // Whoever holds a file open may change its mode, whatever it was opened for.
    let only_writes = trees.peek().is_some() && trees.all(|writes| writes);
    let narrowing = [Some(BARE), (!only_writes).then_some(BARE_FIXED)];
    let narrowing = narrowing.into_iter().flatten().map(str::to_owned);
    profile.iter().cloned().chain(narrowing).collect()
}

/// What is left of a root: the granted trees, where they are.
pub(super) fn mounts(all: Vec<Mount>) -> Vec<Mount> {
    let own = |mount: &Mount| matches!(mount, Mount::Tree { .. });
    all.into_iter().filter(own).collect()
}
