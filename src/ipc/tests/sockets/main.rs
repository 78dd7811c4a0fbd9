//! Frames with descriptors over real sockets: what arrives, what is refused, and that a refusal leaves nothing open.
#![allow(
    clippy::unwrap_used,
    reason = "what a test takes for granted may end it"
)]

mod messages;
mod pipes;
mod start;
mod wire;
