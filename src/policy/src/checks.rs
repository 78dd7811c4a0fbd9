//! The checks that brokerd and the supervisor both make of a grant: expiry, deny grants, paths, schema.
//!
//! One copy, so that the supervisor never permits by other rules than those that decided. What needs a session is in
//! `decide` alone.

use proto::{GrantId, Timestamp};

use crate::call::{Call, Uncovered};
use crate::command;
use crate::paths::Binding;
use crate::policy::{Entry, GrantEntry};
use crate::schema::{self, BadArgument};

/// Where one grant stopped.
#[derive(Debug, Clone)]
pub(crate) enum Stop<'a> {
    /// It ended.
    Expired(Timestamp),
    /// A deny grant touches what the call would use under it.
    DeniedBy(&'a GrantId),
    /// It does not cover a path.
    Uncovered(Uncovered<'a>),
    /// The session's taint is above what it accepts.
    Taint,
    /// The session has read untrusted text, and it does not accept that.
    Untrusted,
    /// It is not for this tool, or is a deny grant: it allows nothing.
    AllowsNothing,
}

/// Check 4, of one grant. A grant ends at the very millisecond that it names.
pub(crate) fn expired<'a>(grant: &GrantEntry, now: Timestamp) -> Option<Stop<'a>> {
    let end = grant.file.expires?;
    (end <= now).then_some(Stop::Expired(end))
}

/// Check 6, of one grant, or of the call alone.
///
/// A deny grant without paths touches every call of its tool. A deny grant with paths is compared with the paths of
/// the call, relative ones as this grant would read them; for a tool that declares none, with the whole paths that
/// this grant would hand over.
pub(crate) fn denied<'a>(
    entry: &'a Entry,
    call: &Call<'_>,
    grant: Option<&GrantEntry>,
) -> Option<&'a GrantId> {
    entry
        .denies
        .iter()
        .find(|deny| deny.paths.is_empty() || call.touches(&deny.paths, grant))
        .map(|deny| &deny.id)
}

/// Check 7, of one grant: what the call may use under it.
pub(crate) fn covered<'a>(call: &Call<'a>, grant: &GrantEntry) -> Result<Vec<Binding>, Stop<'a>> {
    call.bind(grant).map_err(Stop::Uncovered)
}

/// Check 10: the schema, and for an argv tool the words of the call, which it returns; for a stdio tool those are the
/// command as it stands.
pub(crate) fn arguments(call: &Call<'_>) -> Result<Vec<String>, BadArgument> {
    schema::check(&call.tool.file.arguments, call.arguments)?;
    command::argv(&call.tool.words, call.arguments)
}
