//! The words of grant, tool, profile and configuration files: those that this version enforces, and those that the format
//! knows and this version does not. A table to be read alone; `reading` applies it.
//!
//! A word that is not enforced is refused when loaded, because a limit that is written down and not kept is worse
//! than none. The table says nothing of types: the types of the files are `proto`'s.

/// The kind of table that a key stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// `grants/<id>.toml`
    Grant,
    /// `[constraints]` of a grant.
    Constraints,
    /// `tools/<name>.toml`
    Tool,
    /// `[resources]` of a tool, whose keys are the tool's own.
    Resources,
    /// `[arguments]` of a tool, and every schema inside it.
    Schema,
    /// The `properties` of a schema, whose keys are the tool's own.
    Properties,
    /// `profiles/<name>.toml`
    Profile,
    /// `[limits]` of a profile.
    Limits,
    /// `[env]` of a profile, whose keys are the profile's own.
    Env,
    /// `config.toml`
    Config,
    /// `[restart]` of `config.toml`.
    Restart,
    /// `[approvals]` of `config.toml`.
    Approvals,
    /// `[session]` of `config.toml`.
    Session,
    /// `[audit]` of `config.toml`.
    Audit,
    /// `[pool]` of `config.toml`, whose keys are names of profiles.
    Pool,
}

impl Place {
    /// The place at the top of the same kind of file.
    pub(super) const fn top(self) -> Self {
        match self {
            Self::Grant | Self::Constraints => Self::Grant,
            Self::Tool | Self::Resources | Self::Schema | Self::Properties => Self::Tool,
            Self::Profile | Self::Limits | Self::Env => Self::Profile,
            Self::Config
            | Self::Restart
            | Self::Approvals
            | Self::Session
            | Self::Audit
            | Self::Pool => Self::Config,
        }
    }

    /// The other tables with keys of their own in the same kind of file.
    pub(super) fn beside(self) -> impl Iterator<Item = Self> {
        let tables: &[Self] = match self.top() {
            Self::Grant => &[Self::Constraints],
            Self::Tool => &[Self::Schema],
            Self::Profile => &[Self::Limits],
            _ => &[Self::Restart, Self::Approvals, Self::Session, Self::Audit],
        };
        tables.iter().copied().filter(move |table| *table != self)
    }

    /// The kind of file, for people.
    pub(super) const fn file(self) -> &'static str {
        match self.top() {
            Self::Grant => "a grant, grants/<id>.toml",
            Self::Tool => "a tool, tools/<name>.toml",
            Self::Profile => "a profile, profiles/<name>.toml",
            _ => "config.toml",
        }
    }

    /// The table's name in its file.
    pub(super) const fn header(self) -> &'static str {
        match self {
            Self::Constraints => "constraints",
            Self::Resources => "resources",
            Self::Schema | Self::Properties => "arguments",
            Self::Limits => "limits",
            Self::Env => "env",
            Self::Restart => "restart",
            Self::Approvals => "approvals",
            Self::Session => "session",
            Self::Audit => "audit",
            Self::Pool => "pool",
            Self::Grant | Self::Tool | Self::Profile | Self::Config => "",
        }
    }

    /// The line that opens the table.
    pub(super) fn name(self) -> String {
        format!("[{}]", self.header())
    }
}

/// What a word is in this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// Enforced, and a file without it is refused.
    Required,
    /// Enforced.
    Optional,
    /// Known to the format and not enforced, so it cannot be stated yet.
    Later,
}

/// One word: a key, or one value of a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) place: Place,
    /// `*` where the keys are the file's own.
    pub(super) key: &'static str,
    /// The value that is meant, if not all are.
    pub(super) value: Option<&'static str>,
    pub(super) status: Status,
    /// What to write, or what to do instead.
    pub(super) fix: &'static str,
}

const fn required(place: Place, key: &'static str, fix: &'static str) -> Word {
    Word {
        place,
        key,
        value: None,
        status: Status::Required,
        fix,
    }
}

const fn optional(place: Place, key: &'static str, fix: &'static str) -> Word {
    Word {
        place,
        key,
        value: None,
        status: Status::Optional,
        fix,
    }
}

const fn later(place: Place, key: &'static str, fix: &'static str) -> Word {
    Word {
        place,
        key,
        value: None,
        status: Status::Later,
        fix,
    }
}

const fn later_value(
    place: Place,
    key: &'static str,
    value: &'static str,
    fix: &'static str,
) -> Word {
    Word {
        place,
        key,
        value: Some(value),
        status: Status::Later,
        fix,
    }
}

use Place::{
    Approvals, Audit, Config, Constraints, Env, Grant, Limits, Pool, Profile, Properties,
    Resources, Restart, Schema, Session, Tool,
};

const CLASSES: &str = "write \"public\", \"private\" or \"secret\"";
const SWITCH: &str = "write true or false";
const NO_INJECTION: &str = "remove it: no secret is handed to a tool in this version";
const NO_NAMING: &str = "remove it: no grant is called by name in this version";
const NO_PATTERN: &str = "remove it, and use a narrower tool: arguments are checked by `constraints.paths` and the tool's schema only";
const NO_UNTRUSTED_RULE: &str = "write \"allow\" or \"deny\"";
const NO_NETWORK: &str = "remove it: tools have no network in this version";
const NO_PROVENANCE: &str = "remove it: where a value comes from is not checked in this version";
const NO_KEYWORD: &str = "remove it, and let the tool check the value itself";
const NO_CEILING: &str = "remove it: `denials` is the only ceiling of a session in this version";
const BACKOFF: &str = "write a time in quotes, such as \"100ms\"";
const JITTER: &str = "write a number of percent, from 0 to 100";

/// Every word, by place.
#[rustfmt::skip]
pub(super) const WORDS: &[Word] = &[
    required(Grant, "tool", "write the name of a file in tools/, without `.toml`"),
    required(Grant, "mode", "write \"auto\", \"ask\" or \"deny\""),
    optional(Grant, "max_taint", CLASSES),
    optional(Grant, "result_class", CLASSES),
    optional(Grant, "untrusted", SWITCH),
    optional(Grant, "expires", "write a UTC time in quotes, such as \"2026-12-31T00:00:00.000Z\""),
    optional(Grant, "after_untrusted", NO_UNTRUSTED_RULE),
    optional(Grant, "confinement", "write \"full\" or \"partial\""),
    optional(Grant, "as", "write the name or number of a user, in quotes"),
    optional(Grant, "constraints", "write a table [constraints]"),
    later_value(Grant, "after_untrusted", "prove", NO_UNTRUSTED_RULE),
    later_value(Grant, "after_untrusted", "prove_strict", NO_UNTRUSTED_RULE),
    later_value(Grant, "after_untrusted", "ask", NO_UNTRUSTED_RULE),
    later(Grant, "skill", "write one grant for each tool, with `tool`"),
    later(Grant, "max_calls", "remove it, or state `expires`: calls are not counted in this version"),
    later(Grant, "approve_from", "remove it: bxctl is the only one that answers in this version"),
    later(Grant, "secret", NO_INJECTION),
    later(Grant, "inject", NO_INJECTION),
    later(Grant, "capability", NO_NAMING),

    optional(Constraints, "paths", "write a list such as [\"read:/srv/notes\", \"write:/srv/out\"]"),
    later(Constraints, "hosts", NO_NETWORK),
    later(Constraints, "patterns", NO_PATTERN),
    later(Constraints, "allowed", NO_PATTERN),
    later(Constraints, "strict_args", "remove it: a schema refuses unknown arguments unless it says additionalProperties = true"),

    required(Tool, "description", "say in a sentence what the tool does"),
    required(Tool, "kind", "write \"stdio\" or \"argv\""),
    required(Tool, "command", "write a list: the program, then its words"),
    required(Tool, "profile", "write the name of a profile, such as \"tools/base\""),
    required(Tool, "arguments", "write a table [arguments] with type = \"object\""),
    optional(Tool, "side_effect", SWITCH),
    optional(Tool, "timeout", "write a time in quotes, such as \"30s\""),
    optional(Tool, "max_output", "write a number of bytes"),
    optional(Tool, "result", "write \"text\" or \"secret\""),
    optional(Tool, "resources", "write a table [resources] of argument = \"read\", \"write\" or \"edit\""),
    later_value(Tool, "kind", "mcp", "write \"stdio\" or \"argv\": no tool lives longer than one call in this version"),
    later(Tool, "skill", "remove it: grants name tools in this version"),
    later(Tool, "capability", NO_NAMING),
    later(Tool, "cost", "remove it: cost is not counted in this version"),
    later(Tool, "classes", NO_PROVENANCE),
    later(Tool, "makes", NO_PROVENANCE),
    later(Tool, "finds", NO_PROVENANCE),
    later(Tool, "allow", NO_PATTERN),

    optional(Resources, "*", "write \"read\", \"write\" or \"edit\""),
    later_value(Resources, "*", "url", NO_NETWORK),
    later_value(Resources, "*", "host", NO_NETWORK),

    optional(Schema, "type", "write one of object, array, string, integer, number, boolean, null, in quotes"),
    optional(Schema, "properties", "write a table of name = schema"),
    optional(Schema, "required", "write a list of the names that must be given"),
    optional(Schema, "additionalProperties", SWITCH),
    optional(Schema, "title", "write a text"),
    optional(Schema, "description", "write a text"),
    optional(Schema, "default", "write a value"),
    later(Schema, "items", NO_KEYWORD),
    later(Schema, "enum", NO_KEYWORD),
    later(Schema, "const", NO_KEYWORD),
    later(Schema, "minLength", NO_KEYWORD),
    later(Schema, "maxLength", NO_KEYWORD),
    later(Schema, "minimum", NO_KEYWORD),
    later(Schema, "maximum", NO_KEYWORD),
    later(Schema, "minItems", NO_KEYWORD),
    later(Schema, "maxItems", NO_KEYWORD),

    optional(Properties, "*", "write a schema, such as { type = \"string\" }"),

    optional(Profile, "extends", "write the name of a profile, such as \"tools/base\""),
    optional(Profile, "namespaces", "write a list of mount, pid, net, ipc, uts, cgroup, user?, each in quotes"),
    optional(Profile, "view", "write a list of absolute paths, such as [\"/usr\", \"/etc/ssl\"]"),
    optional(Profile, "exec", "write a list of programs, such as [\"/usr/bin/python3*\"]"),
    optional(Profile, "env", "write a table [env] of NAME = \"value\""),
    optional(Profile, "seccomp", "write a list, such as [\"base\"]"),
    optional(Profile, "limits", "write a table [limits]"),

    optional(Limits, "memory", "write a size in quotes, such as \"512M\""),
    optional(Limits, "pids", "write a number of at least 2, without quotes"),
    optional(Limits, "cpu", "write percent of one processor in quotes, such as \"150%\""),
    optional(Limits, "files", "write a number of at least 16, without quotes"),
    optional(Limits, "wall", "write a time in quotes, such as \"60s\""),
    optional(Limits, "scratch", "write a size in quotes, such as \"64M\""),

    optional(Env, "*", "write a text in quotes"),

    optional(Config, "waive", "write a list of layers, such as [\"memory\", \"pids\"]"),
    optional(Config, "uid_range", "write [first uid, number of uids]"),
    optional(Config, "cgroup", "write \"auto\", \"v1\", \"v2\" or \"none\""),
    optional(Config, "restart", "write a table [restart] of times in quotes, such as \"100ms\", of at most a day, `jitter` from 0 to 100, and `give_up` of at least 1"),
    optional(Config, "approvals", "write a table [approvals]"),
    optional(Config, "session", "write a table [session] with `denials` of at least 1"),
    optional(Config, "audit", "write a table [audit] with `max_bytes` of at least 1048576"),
    optional(Config, "pool", "write a table [pool] of \"tools/NAME\" or \"tools/*\" = how many stages wait, from 0 to 16"),
    later(Config, "model", "remove it: this version runs no model"),
    later(Config, "secrets", NO_INJECTION),
    later(Config, "exec", NO_INJECTION),
    later(Config, "redact", NO_INJECTION),
    later(Config, "gateway", "remove it: this version has no gateway"),
    later(Config, "capability", NO_NAMING),

    optional(Restart, "backoff_first", BACKOFF),
    optional(Restart, "backoff_max", BACKOFF),
    optional(Restart, "jitter", JITTER),
    optional(Restart, "give_up", "write how many ends within `window` are the last"),
    optional(Restart, "window", "write a time in quotes, such as \"5m\""),

    optional(Approvals, "expiry", "write a time in quotes, such as \"10m\", of at most a day"),
    later(Approvals, "batch", "remove it: every question is shown and answered alone in this version"),

    optional(Audit, "max_bytes", "write a number of bytes, of at least 1048576"),
    later(Audit, "anchor_journal", "remove it: this version writes the anchor to its file alone"),

    optional(Pool, "*", "write how many stages wait for this profile, from 0 to 16"),

    optional(Session, "denials", "write after how many refused calls a session takes no more"),
    later(Session, "calls", NO_CEILING),
    later(Session, "cost", NO_CEILING),
    later(Session, "spectrum", NO_CEILING),
];

/// What a tool may say of a path argument, the words of later versions included.
pub(super) const RESOURCES: [&str; 5] = ["read", "write", "edit", "url", "host"];

/// The place of the table that `key` of `place` is; none if it is no table of words. A list in its place would be read as
/// the table's values in their order, past every word.
pub(super) fn inner(place: Place, key: &str) -> Option<Place> {
    Some(match (place, key) {
        (Grant, "constraints") => Constraints,
        (Tool, "resources") => Resources,
        (Tool, "arguments") | (Properties, _) => Schema,
        (Schema, "properties") => Properties,
        (Profile, "limits") => Limits,
        (Profile, "env") => Env,
        (Config, "restart") => Restart,
        (Config, "approvals") => Approvals,
        (Config, "session") => Session,
        (Config, "audit") => Audit,
        (Config, "pool") => Pool,
        _ => return None,
    })
}

/// Whether `key` is a key of profiles, at their top or in their limits.
pub(super) fn is_of_profile(key: &str) -> bool {
    [Profile, Limits]
        .into_iter()
        .any(|place| keys(place).any(|word| word.key == key))
}

/// The words of one place that stand for a key as a whole.
pub(super) fn keys(place: Place) -> impl Iterator<Item = &'static Word> {
    WORDS
        .iter()
        .filter(move |word| word.place == place && word.value.is_none())
}

/// The word for a key.
pub(super) fn key(place: Place, key: &str) -> Option<&'static Word> {
    keys(place).find(|word| word.key == key || word.key == "*")
}

/// The word for one value of a key, if that value is not enforced.
pub(super) fn value(place: Place, key: &str, value: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| {
        word.place == place && (word.key == key || word.key == "*") && word.value == Some(value)
    })
}
