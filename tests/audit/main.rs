//! The audit log from outside: a log as a day of calls leaves it, changed on the disk by somebody who may write there,
//! and what `bxctl audit verify` and `boxmaker up` say to it. Knows the format of the files and the two binaries; the
//! ledger is only asked to write the log in the first place.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod log;
mod plain_level;
mod plain_user;
mod restarts;
mod service;
mod tampering;
mod terminal;
mod torn;
mod up;
