//! Days on which something around boxmaker is wrong: the disk, the rights, the clock, the programs. Each is met as the
//! owner meets it: by what is said, and by what still works. Knows no session and no policy beyond two tools.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod clock;
mod full;
mod homes;
mod places;
mod programs;
mod rights;
