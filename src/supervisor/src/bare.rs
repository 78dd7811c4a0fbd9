//! What a supervisor says where no namespace can be made: what was refused, and what would help here.

use std::path::PathBuf;

use confine::launch::BareOptions;

use crate::doctor::namespaces_help;

/// How sandboxes come about after this `refusal`, with their directories in `directory`.
pub(crate) fn bare(refusal: &str, directory: PathBuf) -> BareOptions {
    BareOptions {
        why: bare_reason(refusal),
        directory,
    }
}

/// The same for who tells by himself what helps.
pub(crate) fn bare_without_help(refusal: &str, directory: PathBuf) -> BareOptions {
    BareOptions {
        why: refused(refusal),
        directory,
    }
}

/// What was refused and what helps, as it stands in each gap and where the supervisor says what it is.
pub(crate) fn bare_reason(refusal: &str) -> String {
    let helps = namespaces_help();
    format!("{}; what helps: {helps}", refused(refusal))
}

fn refused(refusal: &str) -> String {
    format!("no namespaces can be made here ({refusal})")
}
