//! What the black-box suites share. Everything here looks at boxmaker from outside: its binaries, its sockets, its
//! files, `/proc`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

pub mod binaries;
pub mod claims;
pub mod escape;
pub mod mounts;
pub mod plain;
pub mod sandbox;
pub mod system;
pub mod tools;
