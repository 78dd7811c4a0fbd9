//! What the black-box suites share. Everything here looks at boxmaker from outside: its binaries, its sockets, its
//! files, `/proc`.

pub mod binaries;
pub mod sandbox;
