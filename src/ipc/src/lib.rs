//! Sockets: frames with descriptors attached, the start-up of a role, listeners received by name, files handed
//! over in sealed memory. Knows no policy and no sandbox.

pub mod connection;
pub mod files;
pub mod place;
pub mod role;
pub mod wire;

pub use connection::{Connection, Received, RecvError, SendError};
pub use files::{Files, FilesError, Unreadable};
pub use wire::{Frame, Wire};
