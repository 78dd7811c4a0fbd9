//! Data classes and the labels of a result (boxmaker seed, section 2).

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far a piece of data may travel; ordered `public < private < secret`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataClass {
    /// May leave the host.
    Public,
    /// The floor of every session.
    Private,
    /// Raises its session for good.
    Secret,
}

impl fmt::Display for DataClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Secret => "secret",
        })
    }
}

/// What a result is marked with before its first byte leaves brokerd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labels {
    /// The class of the result.
    pub class: DataClass,
    /// Whether the result may steer the model.
    pub untrusted: bool,
}

impl Labels {
    /// The higher class and the stronger mark of the two.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            class: self.class.max(other.class),
            untrusted: self.untrusted || other.untrusted,
        }
    }
}
