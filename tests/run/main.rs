//! `boxmaker run`: one program in one sandbox, as root and as a plain user. What is refused is tried beside the same act
//! with the budget that lets it through.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod budget;
mod ends;
mod log;
mod place;
mod programs;
mod streams;
