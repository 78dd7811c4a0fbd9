//! Tests of the crate as a whole: configurations as text, calls as JSON.

mod asking;
mod covering;
mod labels;
mod loading;
mod loading_grants;
mod loading_tools;
mod messages;
mod permits;
mod properties;
mod reasons;

use std::collections::BTreeMap;

use proto::{DataClass, DenyReason, GrantId, Timestamp, ToolName};

use crate::{Decided, Decision, Denial, LoadError, Permit, Policy, SessionView};

/// A session that has seen nothing.
pub(super) const FRESH: SessionView = SessionView {
    taint: DataClass::Private,
    untrusted: false,
};

/// The time of every call that does not say another.
pub(super) const NOW: &str = "2026-06-01T12:00:00.000Z";

/// Reads a file, and lists a directory with two optional paths.
pub(super) const READ: &str = r#"
description = "Reads files."
kind = "stdio"
command = ["toolkit", "fs_read"]
profile = "tools/base"
side_effect = false
[resources]
path = "read"
other = "read"
[arguments]
type = "object"
[arguments.properties]
path.type = "string"
other.type = "string"
lines.type = "integer"
"#;

/// Copies from one path to another.
pub(super) const COPY: &str = r#"
description = "Copies a file."
kind = "argv"
command = ["/usr/bin/cp", "--", "{from}", "{to}"]
profile = "tools/base"
[resources]
from = "read"
to = "write"
[arguments]
type = "object"
required = ["from", "to"]
[arguments.properties]
from.type = "string"
to.type = "string"
"#;

/// Reads a file and puts it back, whatever it says of side effects.
pub(super) const EDIT: &str = r#"
description = "Edits a file."
kind = "stdio"
command = ["toolkit", "fs_edit"]
profile = "tools/base"
side_effect = false
resources = { path = "edit" }
[arguments]
type = "object"
properties.path.type = "string"
"#;

/// Declares no path argument, so it gets whole trees.
pub(super) const LOG: &str = r#"
description = "Shows the history."
kind = "argv"
command = ["/usr/bin/git", "log", "-n", "{count}"]
profile = "tools/base"
side_effect = false
[arguments]
type = "object"
required = ["count"]
properties.count.type = "integer"
"#;

/// Files by name; `grants/x` and `tools/x` stand for `grants/x.toml` and `tools/x.toml`.
pub(super) fn files(texts: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    let file = |(name, text): &(&str, &str)| {
        let bytes = text.as_bytes().to_vec();
        match name.contains('.') {
            true => ((*name).to_owned(), bytes),
            false => (format!("{name}.toml"), bytes),
        }
    };
    texts.iter().map(file).collect()
}

/// The four tools and the given grants.
pub(super) fn load(grants: &[(&str, &str)]) -> Result<Policy, Vec<LoadError>> {
    let mut files = files(&[
        ("tools/read", READ),
        ("tools/copy", COPY),
        ("tools/edit", EDIT),
        ("tools/log", LOG),
    ]);
    for (id, text) in grants {
        files.insert(format!("grants/{id}.toml"), text.as_bytes().to_vec());
    }
    Policy::load(&files, 7)
}

pub(super) fn policy(grants: &[(&str, &str)]) -> Policy {
    load(grants).unwrap_or_else(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{}", errors.join("\n"))
    })
}

/// A grant that lets `read` read below these paths, with more lines before its constraints.
pub(super) fn reads(paths: &[&str], more: &str) -> String {
    grant("read", paths, more)
}

pub(super) fn grant(tool: &str, paths: &[&str], more: &str) -> String {
    let mode = if more.contains("mode") {
        ""
    } else {
        "mode = \"auto\"\n"
    };
    let taint = if more.contains("max_taint") {
        ""
    } else {
        "max_taint = \"private\"\n"
    };
    let paths = if paths.is_empty() {
        String::new()
    } else {
        format!("constraints.paths = {paths:?}\n")
    };
    format!("tool = \"{tool}\"\n{mode}{taint}{more}\n{paths}")
}

/// A deny grant.
pub(super) fn denies(tool: &str, paths: &[&str]) -> String {
    let paths = if paths.is_empty() {
        String::new()
    } else {
        format!("constraints.paths = {paths:?}\n")
    };
    format!("tool = \"{tool}\"\nmode = \"deny\"\n{paths}")
}

pub(super) fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

pub(super) fn decide(
    policy: &Policy,
    session: SessionView,
    tool: &str,
    arguments: &str,
) -> Result<Decided, Denial> {
    crate::decide(policy, session, tool, arguments, at(NOW))
}

pub(super) fn permit(
    policy: &Policy,
    tool: &str,
    grant: &str,
    arguments: &str,
) -> Result<Permit, Denial> {
    let tool = ToolName::new(tool).unwrap();
    let grant = GrantId::new(grant).unwrap();
    crate::permit(policy, &tool, &grant, arguments, at(NOW))
}

/// The decision of a call that runs unasked.
pub(super) fn runs(decided: Result<Decided, Denial>) -> Decision {
    match decided {
        Ok(Decided::Runs(decision)) => decision,
        other => panic!("{other:?}"),
    }
}

/// The grant that was taken, or the reason.
pub(super) fn answer(decided: &Result<Decided, Denial>) -> Result<&str, DenyReason> {
    match decided {
        Ok(decided) => Ok(decided.grant().as_str()),
        Err(denial) => Err(denial.reason),
    }
}

/// The rules that `text` as `file` breaks, beside the four tools, as `line: rule`.
pub(super) fn mistakes(file: &str, text: &[u8]) -> Vec<String> {
    let mut files = files(&[
        ("tools/read", READ),
        ("tools/copy", COPY),
        ("tools/edit", EDIT),
        ("tools/log", LOG),
    ]);
    files.insert(file.to_owned(), text.to_vec());
    let errors = match Policy::load(&files, 1) {
        Ok(_) => return Vec::new(),
        Err(errors) => errors,
    };
    let one = |error: LoadError| {
        assert_eq!(error.file, file);
        assert!(!error.fix.is_empty() && !error.rule.is_empty());
        let line = error.line.map_or("-".to_owned(), |line| line.to_string());
        format!("{line}: {}", error.rule)
    };
    errors.into_iter().map(one).collect()
}

/// Exactly these mistakes, by line and a part of the rule.
pub(super) fn expect(file: &str, text: &str, want: &[&str]) {
    let got = mistakes(file, text.as_bytes());
    assert_eq!(got.len(), want.len(), "{text}\n{got:#?}");
    for want in want {
        let (line, part) = want.split_once(' ').unwrap();
        assert!(
            got.iter()
                .any(|got| got.starts_with(&format!("{line} ")) && got.contains(part)),
            "{want}\n{text}\n{got:#?}"
        );
    }
}
