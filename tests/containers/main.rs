//! boxmaker in containers, for real: `scripts/container` makes them as Docker and systemd-nspawn do, and these tests compare
//! what it finds there with the tables of docs/confinement.md, do what `boxmaker doctor` says, and make calls.

#![expect(
    clippy::expect_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod booted;
mod calls;
mod fixes;
mod image;
mod table;
