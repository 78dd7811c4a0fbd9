//! What a single value of a profile may be: paths, patterns, names, sizes. Each refusal carries its rule and the way out.

use std::time::Duration;

use proto::profile::LimitsFile;

use super::Limits;
use crate::plan::Namespace;

/// A value that breaks a rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) rule: String,
    pub(super) fix: String,
}

fn wrong(rule: impl Into<String>, fix: impl Into<String>) -> Wrong {
    Wrong {
        rule: rule.into(),
        fix: fix.into(),
    }
}

/// Every namespace by the name it has in a profile.
pub(super) const NAMESPACES: [(&str, Namespace); 6] = [
    ("mount", Namespace::Mount),
    ("pid", Namespace::Pid),
    ("net", Namespace::Net),
    ("ipc", Namespace::Ipc),
    ("uts", Namespace::Uts),
    ("cgroup", Namespace::Cgroup),
];

/// A namespace by name; `user?` is none when the supervisor is root, which is the only way it runs yet.
pub(super) fn namespace(text: &str) -> Result<Option<Namespace>, Wrong> {
    if text == "user?" {
        return Ok(None);
    }
    match NAMESPACES.iter().find(|(name, _)| *name == text) {
        Some((_, namespace)) => Ok(Some(*namespace)),
        None => Err(wrong(
            format!("{text:?} is no namespace"),
            "there are mount, pid, net, ipc, uts, cgroup and user?",
        )),
    }
}

/// The name of a profile: components of `[a-z0-9_-]`.
pub(super) fn name(text: &str) -> Result<(), Wrong> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    let good = |part: &str| !part.is_empty() && part.chars().all(allowed);
    if text.len() <= 128 && text.split('/').all(good) {
        return Ok(());
    }
    Err(wrong(
        format!("{text:?} cannot name a profile"),
        "use a-z, 0-9, _ and - in the names of the file and its directories",
    ))
}

/// An absolute path that says what it means.
fn path(text: &str) -> Result<(), Wrong> {
    let fix = "write an absolute path without ., .., doubled or trailing slashes";
    let Some(rest) = text.strip_prefix('/') else {
        return Err(wrong(format!("{text:?} is not absolute"), fix));
    };
    let odd = |part: &str| matches!(part, "" | "." | "..");
    if !rest.is_empty() && rest.split('/').any(odd) {
        return Err(wrong(format!("{text:?} is not a plain path"), fix));
    }
    if text.chars().any(char::is_control) || text.len() > 4095 {
        let rule = format!("{text:?} holds a control character or is longer than 4095 bytes");
        return Err(wrong(rule, fix));
    }
    Ok(())
}

/// What a sandbox makes anew, so that nothing of the host's can be seen or run there.
const OWN: &[&str] = &["/proc", "/sys", "/dev", "/tmp"];

/// Directories that a view never shows whole, and why. What holds one of them is not shown either.
const NEVER_WHOLE: &[(&str, &str)] = &[
    (
        "/etc",
        "it holds the host's secrets and boxmaker's own rules",
    ),
    (
        "/home",
        "it holds what people own; granted trees are for that",
    ),
    ("/root", "it holds what the owner of the host owns"),
    ("/run", "it holds the sockets of the host's daemons"),
    (
        "/var",
        "it holds the state of the host's daemons, and boxmaker's",
    ),
];

/// Directories that a view neither shows nor reaches into.
const CLOSED: &[(&str, &str)] = &[
    ("/var/lib/boxmaker", "it holds the audit log"),
    ("/etc/boxmaker", "it holds boxmaker's own rules"),
];

/// A path that the sandbox may see.
pub(super) fn view(text: &str) -> Result<(), Wrong> {
    path(text)?;
    let narrower = "name the part of it that programs need";
    if text == "/" {
        return Err(wrong("view \"/\" would show the whole host", narrower));
    }
    if let Some(own) = OWN.iter().find(|own| is_below(text, own)) {
        let rule = format!("view {text:?}: a sandbox has a {own} of its own");
        return Err(wrong(rule, "leave it out"));
    }
    let whole = NEVER_WHOLE.iter().find(|(place, _)| is_below(place, text));
    let closed = CLOSED
        .iter()
        .find(|(place, _)| is_below(place, text) || is_below(text, place));
    match whole.or(closed) {
        Some((place, reason)) => Err(wrong(
            format!("view {text:?} would show {place}: {reason}"),
            narrower,
        )),
        None => Ok(()),
    }
}

/// A pattern of paths that may be executed.
pub(super) fn exec(text: &str) -> Result<(), Wrong> {
    path(text)?;
    if text.contains("**") {
        return Err(wrong(
            format!("exec {text:?}: ** has no meaning"),
            "write one * for anything within one component",
        ));
    }
    if text == "/" || text.starts_with("/*") {
        return Err(wrong(
            format!("exec {text:?} would allow every program"),
            "name programs, or the directory they stand in",
        ));
    }
    match OWN.iter().find(|own| is_below(text, own)) {
        Some(own) => Err(wrong(
            format!(
                "exec {text:?}: nothing in {own} may be executed, the sandbox can write there or it is the kernel's"
            ),
            "leave it out",
        )),
        None => Ok(()),
    }
}

/// Whether `path` is `place` or lies in it, by whole components.
pub(crate) fn is_below(path: &str, place: &str) -> bool {
    match path.strip_prefix(place.trim_end_matches('/')) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// A variable of the environment.
pub(super) fn variable(key: &str, value: &str) -> Result<(), Wrong> {
    let mut chars = key.chars();
    let first = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !first || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let rule = format!("env: {key:?} cannot name a variable");
        return Err(wrong(rule, "use letters, digits and _, no digit first"));
    }
    if value.contains('\0') {
        let rule = format!("env: the value of {key} holds a NUL");
        return Err(wrong(rule, "leave it out"));
    }
    Ok(())
}

/// A name out of a list.
pub(super) fn one_of(text: &str, known: &[&str], kind: &str) -> Result<(), Wrong> {
    if known.contains(&text) {
        return Ok(());
    }
    let meant = policy::nearest(text, known.iter().copied());
    let meant = meant.map_or(String::new(), |near| format!("did you mean {near:?}? "));
    Err(wrong(
        format!("there is no {kind} {text:?}"),
        format!("{meant}name one of {}", known.join(", ")),
    ))
}

/// The limits of a file on top of those of what it extends, and what is wrong with them, each with its key.
pub(super) fn limits(file: &LimitsFile, parent: Limits) -> (Limits, Vec<(&'static str, Wrong)>) {
    let mut limits = parent;
    let mut wrong = Vec::new();
    take(
        &mut wrong,
        "memory",
        &file.memory,
        &mut limits.memory,
        |text| at_least(size(text), 4 << 20, text, "4M"),
    );
    take(&mut wrong, "pids", &file.pids, &mut limits.pids, |count| {
        at_least(Ok(*count), 2, count, "2")
    });
    take(&mut wrong, "cpu", &file.cpu, &mut limits.cpu, |text| {
        percent(text)
    });
    take(
        &mut wrong,
        "files",
        &file.files,
        &mut limits.files,
        |count| at_least(Ok(*count), 16, count, "16"),
    );
    take(&mut wrong, "wall", &file.wall, &mut limits.wall, |text| {
        duration(text)
    });
    take(
        &mut wrong,
        "scratch",
        &file.scratch,
        &mut limits.scratch_bytes,
        |text| at_least(size(text), 65_536, text, "64K"),
    );
    (limits, wrong)
}

/// Puts what `stated` says into `limit`, if it says something and that is right.
fn take<S, T>(
    wrong: &mut Vec<(&'static str, Wrong)>,
    key: &'static str,
    stated: &Option<S>,
    limit: &mut T,
    read: impl Fn(&S) -> Result<T, Wrong>,
) {
    match stated.as_ref().map(read) {
        None => {}
        Some(Ok(value)) => *limit = value,
        Some(Err(one)) => {
            let rule = format!("`limits.{key}`: {}", one.rule);
            wrong.push((key, Wrong { rule, ..one }));
        }
    }
}

fn at_least<T: PartialOrd>(
    value: Result<T, Wrong>,
    least: T,
    text: impl std::fmt::Display,
    least_text: &str,
) -> Result<T, Wrong> {
    match value {
        Ok(value) if value < least => Err(wrong(
            format!("{text} is too little for anything to run"),
            format!("write at least {least_text}"),
        )),
        value => value,
    }
}

/// A number of bytes, with `K`, `M` or `G` for powers of 1024.
fn size(text: &str) -> Result<u64, Wrong> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let number = decimal(digits).and_then(|number: u64| number.checked_mul(unit));
    // Past this the kernel's own signed arithmetic ends.
    match number.filter(|bytes| (1..=1 << 62).contains(bytes)) {
        Some(bytes) => Ok(bytes),
        None => Err(wrong(
            format!("{text:?} is no size"),
            "write a whole number above 0 with K, M or G, for example 512M",
        )),
    }
}

fn percent(text: &str) -> Result<u32, Wrong> {
    let number = text.strip_suffix('%').and_then(decimal);
    match number.filter(|percent| (1..=100_000).contains(percent)) {
        Some(percent) => Ok(percent),
        None => Err(wrong(
            format!("{text:?} is no share of a processor"),
            "write whole percent of one processor, 1% to 100000%, for example 150%",
        )),
    }
}

/// Digits only: `str::parse` would take a sign.
fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn duration(text: &str) -> Result<Duration, Wrong> {
    let in_range = |time: &Duration| {
        let millis = time.as_millis();
        millis > 0 && u64::try_from(millis).is_ok()
    };
    match humantime::parse_duration(text).ok().filter(in_range) {
        Some(time) => Ok(time),
        None => Err(wrong(
            format!("{text:?} is no time"),
            "write a time of at least 1ms, for example 60s",
        )),
    }
}
