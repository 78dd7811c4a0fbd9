//! Confinement: plan (data) → stage (applies it to itself) → measure (what really holds) → launch in two phases.
//!
//! `docs/confinement.md` says which layer rests on what; the order of the stage's steps is load-bearing.

pub mod cgroup;
pub mod derive;
pub mod describe;
pub mod host;
pub mod plan;
pub mod profile;
pub mod seccomp;

pub use plan::Plan;
