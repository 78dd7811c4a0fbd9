//! Grant files, `grants/<id>.toml`: who may call what, and how the result is labelled (policy.md section 1).

use serde::{Deserialize, Serialize};

use crate::class::DataClass;
use crate::confinement::Level;
use crate::ids::{Timestamp, ToolName};

/// How a grant answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Runs without asking.
    Auto,
    /// Runs if the owner says yes.
    Ask,
    /// Never runs; overrides every other grant.
    Deny,
}

/// What happens to a call with side effects after an untrusted result.
///
/// `prove`, `prove_strict` and `ask` are words of the format that this version does not enforce, so they are no
/// values here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterUntrusted {
    /// Nothing changes.
    Allow,
    /// The grant no longer applies.
    Deny,
}

/// One grant file. Its id is the file's stem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The tool it is for.
    pub tool: ToolName,
    /// How it answers.
    pub mode: Mode,
    /// The highest session taint under which it applies; required but for `deny`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_taint: Option<DataClass>,
    /// The class of results.
    #[serde(default = "private")]
    pub result_class: DataClass,
    /// Whether results may steer the model.
    #[serde(default = "yes")]
    pub untrusted: bool,
    /// When it ends; never, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The rule for calls with side effects after untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_untrusted: Option<AfterUntrusted>,
    /// The least level of confinement that will do.
    #[serde(default = "full")]
    pub confinement: Level,
    /// The user whose files the tool works on, by name or number; the owner of the granted root, if absent.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    /// The name of one secret to inject. A word of the format; the policy loader refuses it until it is enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// What arguments must satisfy.
    #[serde(default)]
    pub constraints: Constraints,
}

/// What the arguments of a granted call must satisfy; absent lists constrain nothing that the tool declares and
/// cover nothing that it does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraints {
    /// `read:PATH` and `write:PATH`, absolute.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Host names. A word of the format; the policy loader refuses it until it is enforced.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Argument patterns. A word of the format; the policy loader refuses it until it is enforced.
    #[serde(default)]
    pub patterns: Vec<String>,
}

const fn private() -> DataClass {
    DataClass::Private
}

const fn yes() -> bool {
    true
}

const fn full() -> Level {
    Level::Full
}
