//! A call that asks, from outside: the real supervisor, the real brokerd, real sandboxes, and the log that is left.
//! Everything here needs root and says so without it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod answered;
mod owner;
mod unanswered;
