//! What a tool sees of where it is, from inside: every descriptor, variable, mount, group, capability, limit, process
//! and path, against the plan that was derived for it from the profile that tools get. The twin of each is the same
//! program without a sandbox, which sees all that the sandbox takes away. Needs root and says so without it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod expected;
mod paths;
mod room;
mod sight;
mod signals;
