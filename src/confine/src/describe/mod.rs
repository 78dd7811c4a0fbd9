//! A plan as a person reads it: sections with one fact a line, at most 80 columns. Says everything the plan says, so that
//! two plans that read the same differ only in their seccomp program.

use std::fmt::Write as _;

use crate::plan::{Access, LandlockRule, Mount, Namespace, Plan, Rule};

/// The widest line, in characters.
const WIDTH: usize = 80;
const INDENT: &str = "  ";

/// Describes a plan; the text ends with a line feed.
#[must_use]
pub fn describe(plan: &Plan) -> String {
    let mut text = Text::default();
    program(&mut text, plan);
    sees(&mut text, plan);
    writes(&mut text, plan);
    executes(&mut text, plan);
    network(&mut text, plan);
    system_calls(&mut text, plan);
    limits(&mut text, plan);
    identity(&mut text, plan);
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn section(&mut self, title: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(title);
        self.0.push('\n');
    }

    /// One fact; what does not fit goes on below it, cut at spaces where there are some.
    fn fact(&mut self, fact: &str) {
        let mut indent = INDENT.to_owned();
        let mut rest = fact;
        loop {
            let room = WIDTH - indent.len();
            let end = rest.char_indices().nth(room).map(|(at, _)| at);
            let Some(end) = end else {
                let _ = writeln!(self.0, "{indent}{rest}");
                return;
            };
            let cut = rest[..end].rfind(' ').filter(|at| *at > 0).unwrap_or(end);
            let _ = writeln!(self.0, "{indent}{}", &rest[..cut]);
            rest = rest[cut..].trim_start_matches(' ');
            indent = INDENT.repeat(3);
        }
    }

    fn facts(&mut self, facts: impl IntoIterator<Item = String>, none: &str) {
        let mut any = false;
        for fact in facts {
            any = true;
            self.fact(&fact);
        }
        if !any {
            self.fact(none);
        }
    }
}

/// A text that came from outside, so that nothing in it moves the cursor or passes for ours.
fn shown(text: &str) -> String {
    let plain = |c: char| !c.is_control() && !c.is_whitespace() && !"\"'\\".contains(c);
    if !text.is_empty() && text.chars().all(plain) && text.is_ascii() {
        text.to_owned()
    } else {
        format!("\"{}\"", text.escape_default())
    }
}

fn program(text: &mut Text, plan: &Plan) {
    let program = &plan.program;
    text.section("Program");
    let words: Vec<_> = program.argv.iter().map(|word| shown(word)).collect();
    text.fact(&words.join(" "));
    text.fact(&format!("in {}", shown(&program.cwd)));
    for (key, value) in &program.env {
        text.fact(&format!("{}={}", shown(key), shown(value)));
    }
    text.fact(&format!("input sha256 {}", program.input));
}

fn sees(text: &mut Text, plan: &Plan) {
    text.section("Sees");
    if plan.is_bare() {
        text.fact("the host's paths, of which nothing can be opened but this:");
        for rule in &plan.landlock {
            match rule.rule {
                Rule::Read => text.fact(&format!("{} (to read)", shown(&rule.path))),
                Rule::Device => text.fact(&format!("{} (to read and write)", shown(&rule.path))),
                Rule::Execute | Rule::Scratch | Rule::Tree(_) => {}
            }
        }
    }
    for mount in &plan.mounts {
        text.fact(&match mount {
            Mount::View { path, directory } => {
                let kind = if *directory { "directory" } else { "file" };
                format!("{} (the host's {kind}, read-only)", shown(path))
            }
            Mount::Link { path, target } => format!("{} -> {}", shown(path), shown(target)),
            Mount::Proc => "/proc (its own processes only)".to_owned(),
            Mount::Devices => "/dev (null, zero, full, random, urandom)".to_owned(),
            Mount::Scratch { .. } if plan.is_bare() => {
                "/tmp, which stands for a directory of its own in boxmaker's home, without a limit on its size".to_owned()
            }
            Mount::Scratch { bytes, inodes } => {
                format!("/tmp (private, {}, {inodes} inodes)", size(*bytes))
            }
            Mount::Tree {
                path,
                directory,
                access,
                exec,
            } => {
                let kind = if *directory { "directory" } else { "file" };
                let exec = if *exec { ", programs may run" } else { "" };
                format!(
                    "{} (granted {kind}, {}{exec})",
                    shown(path),
                    access_text(*access)
                )
            }
        });
    }
    let mounted = |path: &str| plan.trees().any(|(tree, ..)| tree == path);
    let inside = with_rule(plan, |rule| rule == Rule::Tree(Access::Read));
    for rule in inside.filter(|rule| !mounted(&rule.path)) {
        text.fact(&format!("{} (one file in it, to read)", shown(&rule.path)));
    }
}

const fn access_text(access: Access) -> &'static str {
    match access {
        Access::Read => "to read",
        Access::WriteFiles => "to write files, not to read",
        Access::WriteTree => "to write files and directories, not to read",
        Access::ReadWriteFiles => "to read, and to write files",
        Access::ReadWriteTree => "to read, and to write files and directories",
    }
}

fn with_rule(plan: &Plan, wanted: impl Fn(Rule) -> bool) -> impl Iterator<Item = &LandlockRule> {
    plan.landlock.iter().filter(move |rule| wanted(rule.rule))
}

fn writes(text: &mut Text, plan: &Plan) {
    text.section("May write");
    let writes = |rule| match rule {
        Rule::Device | Rule::Scratch => true,
        Rule::Tree(access) => access.writes(),
        Rule::Read | Rule::Execute => false,
    };
    let facts = with_rule(plan, writes).map(|rule| {
        let what = match rule.rule {
            Rule::Tree(Access::WriteTree | Access::ReadWriteTree) => "files, directories, links",
            Rule::Tree(_) => "regular files in it",
            Rule::Device => "the device",
            _ => "anything but device nodes",
        };
        format!("{}: {what}", shown(&rule.path))
    });
    text.facts(facts, "nothing");
}

fn executes(text: &mut Text, plan: &Plan) {
    text.section("May execute");
    let facts = with_rule(plan, |rule| rule == Rule::Execute).map(|rule| shown(&rule.path));
    text.facts(facts, "nothing");
}

fn network(text: &mut Text, plan: &Plan) {
    text.section("Network");
    text.fact(if plan.namespaces.contains(&Namespace::Net) {
        "none: a network namespace of its own, with nothing in it"
    } else {
        "the host's, but no TCP port and no abstract socket that Landlock can close"
    });
}

fn system_calls(text: &mut Text, plan: &Plan) {
    text.section("System calls");
    let sets: Vec<_> = plan.seccomp.sets.iter().map(|set| shown(set)).collect();
    text.fact(&format!("sets: {}", sets.join(", ")));
    text.fact(&format!("program sha256 {}", plan.seccomp.program));
}

fn limits(text: &mut Text, plan: &Plan) {
    let limits = &plan.limits;
    text.section("Limits");
    text.fact(&format!("memory {}", size(limits.memory)));
    text.fact(&format!("{} processes and threads", limits.pids));
    text.fact(&format!("{} % of one processor", limits.cpu));
    text.fact(&format!("{} open files in one process", limits.files));
    let wall = std::time::Duration::from_millis(limits.wall_ms);
    text.fact(&format!("ends after {}", humantime::format_duration(wall)));
}

fn identity(text: &mut Text, plan: &Plan) {
    text.section("Identity and level");
    // Whether it has a user of its own is for the host to say, not for the plan.
    text.fact("no capabilities, and no way to any");
    if plan.is_bare() {
        text.fact("the host's processes and host name are seen, and its own are seen by others");
    } else {
        text.fact(&format!("host name {}", shown(&plan.hostname)));
    }
    let namespaces = plan.namespaces.iter().map(|one| namespace(*one));
    let namespaces: Vec<_> = namespaces.collect();
    let none = "no namespace of its own".to_owned();
    text.fact(&match namespaces.join(", ") {
        names if names.is_empty() => none,
        names => format!("namespaces of its own: {names}"),
    });
    text.fact(&format!("profile {}", shown(&plan.profile)));
    text.fact(&format!("needs level {}", plan.required));
}

const fn namespace(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::User => "user",
        Namespace::Mount => "mount",
        Namespace::Pid => "pid",
        Namespace::Net => "net",
        Namespace::Ipc => "ipc",
        Namespace::Uts => "uts",
        Namespace::Cgroup => "cgroup",
    }
}

/// Bytes in the largest unit that says them exactly.
fn size(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests;
