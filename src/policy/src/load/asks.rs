//! A grant that asks and never can (policy.md section 1): another grant lets every such call run unasked, and the
//! least demanding one is taken. Whoever wrote the ask believes that it guards something.
//!
//! What is found is certain. An ask that several other grants cover only together is not found.

use std::collections::BTreeMap;

use proto::grant::{AfterUntrusted, Mode};
use proto::{GrantId, Timestamp};

use super::document::Document;
use super::{LoadError, find};
use crate::paths::beneath;
use crate::policy::{GrantEntry, Tool};

/// Checks every grant that asks against every grant of the same tool that does not.
pub(super) fn check(
    grants: &[GrantEntry],
    tools: &[Tool],
    documents: &BTreeMap<GrantId, Document<'_>>,
    errors: &mut Vec<LoadError>,
) {
    for ask in grants.iter().filter(|grant| grant.file.mode == Mode::Ask) {
        let same = |other: &&GrantEntry| other.file.tool == ask.file.tool;
        let denied = grants.iter().filter(same).any(GrantEntry::denies);
        let Some(tool) = find(tools, &ask.file.tool) else {
            continue;
        };
        let mut autos = grants
            .iter()
            .filter(same)
            .filter(|grant| grant.file.mode == Mode::Auto);
        let Some(auto) = autos.find(|auto| hides(tool, auto, ask, denied)) else {
            continue;
        };
        if let Some(document) = documents.get(&ask.id) {
            errors.push(document.error(
                &["mode"],
                format!(
                    "grant {} never asks: grant {} lets every call that it covers run unasked",
                    ask.id, auto.id
                ),
                format!("narrow or remove grant {}, or remove this one", auto.id),
            ));
        }
    }
}

/// Whether `auto` covers every call that `ask` covers, in every session and for as long.
fn hides(tool: &Tool, auto: &GrantEntry, ask: &GrantEntry, denied: bool) -> bool {
    let end = |grant: &GrantEntry| grant.file.expires.unwrap_or(Timestamp::MAX);
    let refuses_after_untrusted = |grant: &GrantEntry| {
        grant.has_side_effects(tool) && grant.file.after_untrusted != Some(AfterUntrusted::Allow)
    };
    // A deny grant is compared with what a call means under each grant, which differs where their paths do.
    let same_meaning = !denied || auto.paths == ask.paths;
    end(auto) >= end(ask)
        && auto.file.max_taint >= ask.file.max_taint
        && (!refuses_after_untrusted(auto) || refuses_after_untrusted(ask))
        && same_meaning
        && (!tool.declares_paths() || covers(auto, ask))
}

/// Whether every path, also every relative one, that a call may name under `ask` is covered under `auto`.
fn covers(auto: &GrantEntry, ask: &GrantEntry) -> bool {
    let held = ask.paths.iter().all(|path| {
        let holds = |wider: &crate::GrantedPath| {
            wider.access() == path.access() && beneath(path.path(), wider.path())
        };
        auto.paths.iter().any(holds)
    });
    // Below `/` a relative path may lie in a tree of the kernel, which is covered by nothing.
    let relative = match (ask.single_root(), auto.single_root()) {
        (None, _) => true,
        (Some(own), Some(other)) => own == other || other != "/",
        (Some(_), None) => false,
    };
    held && relative
}
