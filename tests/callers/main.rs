//! What callers can do to boxmaker, from outside: interrupt, fall silent, send what is no message, be refused without
//! end. Each is told what happened, and everybody else is served meanwhile. Everything here needs root and says so
//! without it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod frames;
mod home;
mod interrupts;
mod output;
mod refusals;
mod silence;
