//! Black-box tests of the `bxctl` binary: its words, its output, its exit status. brokerd is a script on a socket.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod approvals;
mod audit;
mod broker;
mod call;
mod configuration;
mod host;
mod interrupt;
mod listings;
mod permissions;
mod stopped;
mod terminal;
