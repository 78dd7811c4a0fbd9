//! The files of `profiles/examples`, as a reader would use them: copied, with other paths, loaded and called by way of
//! `bxctl`. What needs root, or a program that this host has not, says so.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod calls;
mod documents;
mod files;
mod git;
mod room;
