//! The formats of boxmaker, as the files under `tests/fixtures/` specify them byte by byte.
//!
//! One file per kind of message, entry of the log, record of a session and file of the owner. The tables in
//! `messages` and `records` build the same values in Rust; what is generated or spoiled starts from them.

#![allow(
    clippy::unwrap_used,
    reason = "what a test takes for granted may end it"
)]

mod fixtures;
mod frames;
mod generated;
mod ids;
mod messages;
mod owner_files;
mod private_line;
mod records;
mod rules;
mod samples;
mod strictness;
mod words;
