//! Crashes under load: eight callers, and brokerd or the supervisor killed over and over. What the tools did, what the
//! log says and what the callers heard has to agree, and nothing may be left behind.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod account;
mod brokerd;
mod caller;
mod crowd;
mod home;
mod supervisor;
mod traces;
