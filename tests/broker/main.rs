//! The broker's line from outside: what a compromised brokerd cannot do, and what is left when brokerd, a stage, the
//! disk or the supervisor fails. Everything here needs root and says so without it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod approvals;
mod calls;
mod commits;
mod crashes;
mod endings;
mod full_disk;
mod grants;
mod homes;
mod line;
mod log_files;
mod max_bytes;
mod measurements;
mod output;
mod paths;
mod races;
mod readiness;
mod records;
mod stages;
