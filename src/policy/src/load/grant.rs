//! The rules of a grant file that its types do not carry (policy.md section 1).

use std::collections::BTreeSet;

use proto::grant::{Grant, Mode};
use proto::{GrantId, Level, ToolName};

use super::document::Document;
use super::words::Place;
use super::{LoadError, find};
use crate::nearest::nearest;
use crate::paths::{BindingAccess, GrantedPath, way_out};
use crate::policy::{GrantEntry, Tool};

/// The keys that a deny grant may hold: anything else could be evaded, or would narrow what is denied.
const DENY_KEYS: [&str; 3] = ["constraints", "mode", "tool"];
/// Every other key of a grant.
const ALLOW_KEYS: [&str; 7] = [
    "after_untrusted",
    "as",
    "confinement",
    "expires",
    "max_taint",
    "result_class",
    "untrusted",
];

/// Reads one grant file. A grant with a mistake is returned if it can be compared with others.
pub(super) fn read(
    document: &Document<'_>,
    id: &GrantId,
    tools: &[Tool],
    names: &[ToolName],
    errors: &mut Vec<LoadError>,
) -> Option<GrantEntry> {
    let file: Grant = document.read(Place::Grant, errors)?;
    let paths = paths(document, &file, errors);
    let grant = GrantEntry {
        id: id.clone(),
        file,
        paths,
    };
    if !names.contains(&grant.file.tool) {
        let near = nearest(grant.file.tool.as_str(), names.iter().map(ToolName::as_str));
        errors.push(document.error(
            &["tool"],
            format!("there is no file tools/{}.toml", grant.file.tool),
            match near {
                Some(near) => format!("did you mean `{near}`? otherwise write the tool file first"),
                None => "write the tool file first, or correct the name".to_owned(),
            },
        ));
    }
    if grant.denies() {
        for key in ALLOW_KEYS.into_iter().filter(|key| document.has(&[key])) {
            errors.push(document.error(
                &[key],
                format!("`{key}` stands in a deny grant"),
                format!(
                    "remove it; a deny grant holds {} only",
                    DENY_KEYS.join(", ")
                ),
            ));
        }
        return Some(grant);
    }
    allowing(document, &grant, find(tools, &grant.file.tool), errors);
    Some(grant)
}

/// The rules of grants that allow something, with or without asking.
fn allowing(
    document: &Document<'_>,
    grant: &GrantEntry,
    tool: Option<&Tool>,
    errors: &mut Vec<LoadError>,
) {
    let file = &grant.file;
    if file.max_taint.is_none() && !document.has(&["max_taint"]) {
        let rule = "`max_taint` is required".to_owned();
        let fix = "write the highest class of data that a session may have read when it makes such a call: \
                   \"public\", \"private\" or \"secret\"";
        errors.push(document.error(&[], rule, fix));
    }
    if file.confinement == Level::None {
        let rule = "`confinement` is none: no sandbox of that level is ever started".to_owned();
        errors.push(document.error(&["confinement"], rule, "write \"full\" or \"partial\""));
    }
    let writes = grant
        .paths
        .iter()
        .any(|p| p.access() == BindingAccess::Write);
    if let Some(user) = &file.run_as {
        if !is_user(user) {
            errors.push(document.error(
                &["as"],
                format!("`as` {user:?} is neither the name nor the number of a user"),
                "write a name of letters, digits, `_`, `.` and `-`, or a number below 4294967295",
            ));
        }
        let root = user == "root" || user.parse() == Ok(0_u32);
        if root && (writes || tool.is_some_and(declares_write)) {
            errors.push(document.error(
                &["as"],
                "a grant that writes works as root".to_owned(),
                "write the user whose files they are, or remove `as`: the owner of the granted path is the default",
            ));
        }
    }
    let unstated = file.after_untrusted.is_none() && !document.has(&["after_untrusted"]);
    if unstated && tool.is_some_and(|tool| grant.has_side_effects(tool)) {
        errors.push(document.error(
            &["tool"],
            format!("calls of {} have side effects, and the grant does not state `after_untrusted`", file.tool),
            "write after_untrusted = \"deny\", or \"allow\" if text that others wrote may steer such calls",
        ));
    }
}

fn declares_write(tool: &Tool) -> bool {
    let mut resources = tool.file.resources.values();
    resources.any(|resource| resource.writes())
}

/// Reads `constraints.paths`; entries with a mistake are left out.
fn paths(document: &Document<'_>, file: &Grant, errors: &mut Vec<LoadError>) -> Vec<GrantedPath> {
    let key = ["constraints", "paths"];
    let stated = document.value(&key).and_then(|value| value.as_array());
    if stated.is_some_and(|entries| entries.is_empty()) {
        let what = match file.mode {
            Mode::Deny => "every call of the tool",
            Mode::Auto | Mode::Ask => "calls that name no path",
        };
        errors.push(document.error(
            &key,
            "`constraints.paths` is empty".to_owned(),
            format!("name a path, or remove it: a grant without paths is for {what}"),
        ));
    }
    let mut paths = Vec::new();
    let mut seen = BTreeSet::new();
    for (place, text) in file.constraints.paths.iter().enumerate() {
        let place = place.to_string();
        let at = ["constraints", "paths", &place];
        if !seen.insert(text) {
            let rule = format!("{text:?} stands twice in `constraints.paths`");
            errors.push(document.error(&at, rule, "remove one"));
        }
        match GrantedPath::parse(text) {
            Ok(path) => paths.push(path),
            Err(rule) => errors.push(document.error(
                &at,
                format!("{text:?} in `constraints.paths`: {rule}"),
                way_out(text, rule),
            )),
        }
    }
    paths
}

/// Whether `text` can name a user: a number, or a name as useradd(8) makes them.
fn is_user(text: &str) -> bool {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) {
        return text.parse::<u32>().is_ok_and(|uid| uid < u32::MAX);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let first = text.chars().next();
    text.len() <= 32
        && text.chars().all(plain)
        && first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
}
