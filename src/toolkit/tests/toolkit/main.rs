//! The binaries from outside: real files, real users, and the kernel's own refusals.

#![allow(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod command_line;
mod confined;
mod fs_edit;
mod fs_list;
mod fs_read;
mod fs_search;
mod fs_stat;
mod fs_write;
mod misbehave;
mod run;
mod tool_files;
