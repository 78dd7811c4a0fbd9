//! The ledger by its public face: what it writes, what it refuses, what it makes of a torn line.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod logs;
mod tamper;
mod torn;
mod writing;
