//! brokerd as its two neighbours see it: a supervisor that is played step by step, and clients on its socket.

#![expect(
    clippy::unwrap_used,
    reason = "a step of a test that cannot be done is a failed test"
)]

mod approvals;
mod calls;
mod ceiling;
mod clients;
mod denials;
mod restart;
mod running;
mod sessions;
mod supervisor;
