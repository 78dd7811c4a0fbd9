//! The escape suite's machinery: a table of acts that a confined program might try, the `probe` that tries them, a room
//! with things to find, and four columns to try them in. Which acts there are stands in `tests/escape`; nothing here
//! knows what any of them is to answer.

pub mod column;
pub mod launch;
mod outside;
mod program;
mod room;
mod start;
mod table;

pub use column::{Answer, Column, Stage};
pub use program::probe;
pub use room::Room;
pub use table::{AREAS, Expected, Outside, Row, rows};

/// Who the plain user is.
pub const USER: u32 = 71_001;

/// Somebody else.
pub const OTHER: u32 = 71_002;

/// A group that whoever starts a sandbox is in, and that no sandbox of root's may be in.
pub const GROUP: u32 = 4242;

/// The descriptor that whoever starts a sandbox leaves open.
pub const LEAKED: u32 = 40;
