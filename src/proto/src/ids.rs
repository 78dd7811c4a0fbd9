//! Identifiers, hashes and times: newtypes that validate once.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Why a text is not the identifier it was taken for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {kind}: {rule}")]
pub struct InvalidId {
    /// What it should have been, for example `session id`.
    pub kind: &'static str,
    /// The text that was given, cut after 80 characters.
    pub text: String,
    /// The rule it breaks.
    pub rule: &'static str,
}

fn invalid(kind: &'static str, text: &str, rule: &'static str) -> InvalidId {
    InvalidId {
        kind,
        text: text.chars().take(80).collect(),
        rule,
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $ok:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks `text` against the rule of this identifier.
            ///
            /// # Errors
            /// [`InvalidId`] names the text and the rule.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                let allowed: fn(char) -> bool = $ok;
                if text.is_empty() || text.len() > 64 || !text.chars().all(allowed) {
                    return Err(invalid($kind, &text, $rule));
                }
                if text.starts_with('.') {
                    return Err(invalid($kind, &text, "must not begin with a dot"));
                }
                Ok(Self(text))
            }

            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// Names a session: 1 to 64 of `[a-z0-9-]`, because it is also a directory name (boxmaker seed, section 5).
    SessionId,
    "session id",
    "1 to 64 characters of a-z, 0-9 and -",
    |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
);

text_id!(
    /// Names a tool: 1 to 64 of `[a-z0-9_.-]`, not beginning with a dot, because it is also a file stem.
    ToolName,
    "tool name",
    "1 to 64 characters of a-z, 0-9, _, . and -",
    |c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c)
);

text_id!(
    /// Names a grant: the stem of its file, 1 to 64 of `[a-z0-9_.-]`, not beginning with a dot.
    GrantId,
    "grant id",
    "1 to 64 characters of a-z, 0-9, _, . and -",
    |c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c)
);

text_id!(
    /// Names a question to the owner: 1 to 64 of `[a-z0-9-]`, so that a person can type it.
    ApprovalId,
    "approval id",
    "1 to 64 characters of a-z, 0-9 and -",
    |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
);

/// Counts the contexts of one session's log, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u32);

/// Numbers the calls of one session; rises with every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub u64);

/// Names one prepared sandbox between supervisor and brokerd; never used twice in a supervisor's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticket(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A SHA-256 value; in JSON 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hash32([u8; 32]);

impl Hash32 {
    /// 32 zero bytes: the `prev` of the first record ever written (boxmaker seed, section 6).
    pub const ZERO: Self = Self([0; 32]);

    /// Wraps the 32 bytes of a digest.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl TryFrom<String> for Hash32 {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl FromStr for Hash32 {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let wrong = || invalid("hash", text, "64 lower-case hexadecimal digits");
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(wrong());
        }
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            match (value(pair[0]), value(pair[1])) {
                (Some(high), Some(low)) => *byte = high << 4 | low,
                _ => return Err(wrong()),
            }
        }
        Ok(Self(bytes))
    }
}

impl From<Hash32> for String {
    fn from(hash: Hash32) -> Self {
        hash.to_string()
    }
}

impl fmt::Display for Hash32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash32({self})")
    }
}

/// Milliseconds since 1970-01-01T00:00:00Z, up to the end of the year 9999; in JSON
/// `"2026-09-17T08:05:00.000Z"`, always with three decimals and `Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(u64);

impl Timestamp {
    /// The last millisecond that the text form can say: 9999-12-31T23:59:59.999Z.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// A time from Unix milliseconds; a value past [`Timestamp::MAX`] becomes `MAX`.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Self(millis)
        }
    }

    /// Unix milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}

impl From<SystemTime> for Timestamp {
    /// Cuts to whole milliseconds; a time before 1970 becomes 1970.
    fn from(time: SystemTime) -> Self {
        let millis = time
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        Self::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl FromStr for Timestamp {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let rule = "a UTC time such as 2026-12-31T00:00:00.000Z";
        let time = humantime::parse_rfc3339(text)
            .map(Self::from)
            .map_err(|_| invalid("time", text, rule))?;
        if time.to_string() == text {
            Ok(time)
        } else {
            Err(invalid("time", text, rule))
        }
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> Self {
        time.to_string()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(self.0)).fmt(f)
    }
}
