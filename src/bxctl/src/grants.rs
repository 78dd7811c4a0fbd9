//! `bxctl grants`: who may call what, from the configuration.

use std::path::Path;

use policy::{GrantEntry, Policy};
use proto::grant::{Grant, Mode};
use proto::{GrantId, Timestamp, ToolName};
use serde::Serialize;

use crate::moment;
use crate::screen::Tone;
use crate::table::{Cell, Fit, Table};

/// The grants as JSON.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    grants: Vec<Item<'a>>,
}

#[derive(Debug, Serialize)]
struct Item<'a> {
    id: &'a GrantId,
    expired: bool,
    #[serde(flatten)]
    grant: &'a Grant,
}

/// The grants of `policy`, of one tool if it is named, in the order of their ids.
fn chosen<'a>(
    policy: &'a Policy,
    tool: Option<&'a ToolName>,
) -> impl Iterator<Item = &'a GrantEntry> {
    policy
        .grants()
        .filter(move |grant| tool.is_none_or(|tool| *tool == grant.file().tool))
}

/// Whether there is a grant at all, or one of `tool`.
#[must_use]
pub fn any(policy: &Policy, tool: Option<&ToolName>) -> bool {
    chosen(policy, tool).next().is_some()
}

/// That there is none, in the words of a remark.
#[must_use]
pub fn none(policy: &Policy, tool: Option<&ToolName>, directory: &Path) -> String {
    let rule = "what no grant covers does not run";
    match tool {
        Some(tool) if policy.tools().all(|known| known.name() != tool) => {
            let names = policy.tools().map(|known| known.name().as_str());
            let near = policy::nearest(tool.as_str(), names);
            let meant = near.map_or_else(
                || "`bxctl tools` lists the tools".to_owned(),
                |near| format!("did you mean {near}?"),
            );
            format!("bxctl: there is no tool {tool}; {meant}\n")
        }
        Some(tool) => format!("bxctl: there is no grant for {tool}, and {rule}\n"),
        None => format!(
            "bxctl: there is no grant in {}, and {rule}\n",
            directory.display()
        ),
    }
}

fn expired(grant: &Grant, now: Timestamp) -> bool {
    grant.expires.is_some_and(|expires| expires <= now)
}

/// Every field of the grants, for programs.
#[must_use]
pub fn document<'a>(
    policy: &'a Policy,
    tool: Option<&'a ToolName>,
    now: Timestamp,
) -> Document<'a> {
    let item = |entry: &'a GrantEntry| Item {
        id: entry.id(),
        expired: expired(entry.file(), now),
        grant: entry.file(),
    };
    Document {
        grants: chosen(policy, tool).map(item).collect(),
    }
}

/// The grants for people. `max_taint`, labels and level mean nothing on a deny grant and are left out.
#[must_use]
pub fn table(policy: &Policy, tool: Option<&ToolName>, now: Timestamp) -> Table {
    let mut table = Table::new(&[
        ("grant", Fit::Wrap),
        ("tool", Fit::Wrap),
        ("mode", Fit::Whole),
        ("max taint", Fit::Whole),
        ("labels", Fit::Wrap),
        ("paths", Fit::Wrap),
        ("expires", Fit::Whole),
        ("level", Fit::Whole),
    ]);
    for entry in chosen(policy, tool) {
        let grant = entry.file();
        let denies = grant.mode == Mode::Deny;
        let unless_denies = |text: String| if denies { "-".to_owned() } else { text };
        let labels = if grant.untrusted {
            "untrusted"
        } else {
            "trusted"
        };
        let paths = &grant.constraints.paths;
        table.row(vec![
            entry.id().as_str().into(),
            grant.tool.as_str().into(),
            match grant.mode {
                Mode::Auto => Cell::new("auto").tone(Tone::Good),
                Mode::Ask => Cell::new("ask").tone(Tone::Warning),
                Mode::Deny => Cell::new("deny").tone(Tone::Bad),
            },
            grant
                .max_taint
                .map_or_else(|| "-".into(), |class| class.to_string().into()),
            unless_denies(format!("{} {labels}", grant.result_class)).into(),
            if paths.is_empty() {
                "-".into()
            } else {
                Cell::list(paths)
            },
            match grant.expires {
                None => "never".into(),
                Some(_) if expired(grant, now) => Cell::new("expired").tone(Tone::Bad),
                Some(expires) => moment::day(expires).into(),
            },
            unless_denies(grant.confinement.to_string()).into(),
        ]);
    }
    table
}
