//! Tool files, `tools/<name>.toml`: what a tool takes and how it is run (formats.md section 3).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a tool gets its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// One JSON object on standard input.
    Stdio,
    /// Words of the command, by `{argument}`.
    Argv,
}

/// What an argument names in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// A path that is read.
    Read,
    /// A path that is written.
    Write,
    /// A file that is read, changed and put back: both, and covered only by a grant that holds it for both.
    Edit,
}

impl Resource {
    /// Whether what it names is read.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::Edit)
    }

    /// Whether what it names is written.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Edit)
    }
}

/// How the result is classed besides what the grants say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultKind {
    /// As the grants say.
    Text,
    /// At least secret.
    Secret,
}

/// One tool file. Its name is the file's stem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFile {
    /// What it does, for the model and for the owner.
    pub description: String,
    /// How it gets its arguments.
    pub kind: ToolKind,
    /// The program and its words; the program is absolute or one of boxmaker's own binaries.
    pub command: Vec<String>,
    /// The confinement profile, for example `tools/base`.
    pub profile: String,
    /// Whether it changes anything; a tool with a `write` path does, whatever this says.
    #[serde(default = "yes")]
    pub side_effect: bool,
    /// How long one call may run.
    #[serde(default = "thirty_seconds", with = "duration")]
    pub timeout: Duration,
    /// Bytes of standard output that are kept, at most [`MAX_OUTPUT`].
    #[serde(default = "default_output")]
    pub max_output: u64,
    /// Whether the result is at least secret.
    #[serde(default = "text")]
    pub result: ResultKind,
    /// Which top-level arguments are paths.
    #[serde(default)]
    pub resources: BTreeMap<String, Resource>,
    /// The schema of its arguments; of type `object`.
    pub arguments: Schema,
}

/// The most that `max_output` may ask for, in bytes: a result must fit a frame.
pub const MAX_OUTPUT: u64 = 786_432;

/// The types of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaType {
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// A JSON string.
    String,
    /// A JSON integer; `1.0` is none.
    Integer,
    /// A JSON number.
    Number,
    /// `true` or `false`; never a number.
    Boolean,
    /// `null`.
    Null,
}

/// The part of JSON Schema that is checked; any other keyword is refused when loaded, because nobody should
/// believe in a check that is not made (policy.md section 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Schema {
    /// The type of the value; any, if absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<SchemaType>,
    /// The named members of an object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, Schema>,
    /// Members that must be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Whether members that `properties` does not name are accepted.
    #[serde(default)]
    pub additional_properties: bool,
    /// A note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<serde_json::Value>,
}

const fn yes() -> bool {
    true
}

const fn thirty_seconds() -> Duration {
    Duration::from_secs(30)
}

const fn default_output() -> u64 {
    262_144
}

const fn text() -> ResultKind {
    ResultKind::Text
}

/// Durations as people write them: `30s`, `2m`, `500ms`.
pub(crate) mod duration {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&humantime::format_duration(*value))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        let value = humantime::parse_duration(&text)
            .map_err(|error| de::Error::custom(format_args!("{text:?} is no duration: {error}")))?;
        if value.is_zero() || value > Duration::from_secs(86_400) {
            return Err(de::Error::custom(format_args!(
                "{text:?} is out of range: more than 0 and at most 1 day"
            )));
        }
        Ok(value)
    }
}
