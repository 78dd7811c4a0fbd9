//! Starting and stopping a role over its standard input (protocol.md section 1).

use serde::{Deserialize, Serialize};

/// The first message a role gets; its descriptors are the sockets, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleStart {
    /// The role the process is to be, for example `brokerd`.
    pub role: String,
    /// `config.toml` as text; empty if there is none.
    pub config: String,
    /// The names of the descriptors that come with this message: listeners by the peer behind them.
    pub sockets: Vec<String>,
}

/// A message without fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {}
