//! Confinement: plan (data) → stage (applies it to itself) → measure (what really holds) → launch in two phases.
//!
//! `docs/confinement.md` says which layer rests on what; the order of the stage's steps is load-bearing.

pub mod accounts;
pub mod cgroup;
pub mod derive;
pub mod describe;
pub mod fold;
pub mod host;
pub mod identity;
pub mod judged;
pub mod launch;
pub mod measure;
pub mod message;
pub mod named;
pub mod plan;
pub mod profile;
pub mod resolve;
pub mod seccomp;
pub mod stage;
pub mod uids;

pub use message::Step;
pub use plan::Plan;
