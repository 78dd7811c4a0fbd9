//! Stores do not launder (policy.md section 1): what a session writes must not come back to another as cleaner than
//! it was. A place that one grant writes and another reads is such a store.

use std::collections::BTreeMap;
use std::fmt;

use proto::GrantId;

use super::LoadError;
use super::document::Document;
use crate::paths::{BindingAccess, overlap};
use crate::policy::GrantEntry;

/// Checks every path that a grant writes against every path that a grant reads, the same grant included. Mode and
/// expiry make no difference, deny grants apart: they neither read nor write.
pub(super) fn check(
    grants: &[GrantEntry],
    documents: &BTreeMap<GrantId, Document<'_>>,
    errors: &mut Vec<LoadError>,
) {
    for writer in grants.iter().filter(|grant| !grant.denies()) {
        for reader in grants.iter().filter(|grant| !grant.denies()) {
            let Some(how) = launders(writer, reader) else {
                continue;
            };
            let Some((place, pair)) = shared(writer, reader) else {
                continue;
            };
            if let Some(document) = documents.get(&writer.id) {
                errors.push(document.error(
                    &["constraints", "paths", &place.to_string()],
                    format!("grant {} writes what grant {} reads {how} ({pair})", writer.id, reader.id),
                    "let the two name different paths, or correct the reader's labels or the writer's max_taint",
                ));
            }
        }
    }
}

/// How data would come out cleaner than it went in, wherever it is stored.
fn launders(writer: &GrantEntry, reader: &GrantEntry) -> Option<String> {
    // A writer without max_taint is an error of its own.
    let taint = writer.file.max_taint?;
    let class = reader.file.result_class;
    if !reader.file.untrusted {
        return Some("as trusted".to_owned());
    }
    (class < taint).then(|| format!("as {class}, below the writer's max_taint {taint}"))
}

/// The first path that `writer` writes and `reader` reads, and its number among the writer's paths.
fn shared(writer: &GrantEntry, reader: &GrantEntry) -> Option<(usize, impl fmt::Display)> {
    let of = |grant: &'_ GrantEntry, access| {
        let paths = grant.paths.clone().into_iter().enumerate();
        paths.filter(move |(_, path)| path.access() == access)
    };
    of(writer, BindingAccess::Write).find_map(|(place, written)| {
        of(reader, BindingAccess::Read)
            .find(|(_, read)| overlap(written.path(), read.path()))
            .map(|(_, read)| (place, format!("{written}, {read}")))
    })
}
