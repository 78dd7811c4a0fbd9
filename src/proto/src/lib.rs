//! Wire and file types of boxmaker, and the frame codec.
//!
//! Data only: no policy, no clock, no I/O but frames on a stream that the caller supplies. Every type
//! rejects unknown fields, and every newtype validates in its constructor and in `Deserialize`, so bad
//! input is an error and never a panic. `docs/formats.md` and the byte-exact fixtures under
//! `tests/fixtures/` are the specification.

pub mod approval;
pub mod audit;
pub mod broker;
pub mod class;
pub mod client;
pub mod config;
pub mod confinement;
pub mod frame;
pub mod grant;
pub mod ids;
pub mod message;
pub mod profile;
pub mod reason;
pub mod role;
pub mod session_log;
pub mod tool;

pub use approval::{Answer, Approval, ApprovalEvent};
pub use audit::{Arguments, DecisionRecord, Entry, Line};
pub use class::{DataClass, Labels};
pub use confinement::{Asserted, Confinement, Gap, Layer, Level};
pub use ids::{
    ApprovalId, CallId, Epoch, GrantId, Hash32, InvalidId, SessionId, Ticket, Timestamp, ToolName,
};
pub use message::{Envelope, ErrorCode, Message, WireError};
pub use reason::DenyReason;

/// Version of the wire protocol that this build speaks; an envelope with another is refused.
pub const VERSION: u32 = 1;
