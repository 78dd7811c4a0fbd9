//! Filters that the shipped stage has not, compiled by this package's build script.

use std::fs;
use std::path::Path;

use serde::Deserialize;

const BUILT: &str = concat!(env!("OUT_DIR"), "/filters");

/// Ours, as the sets say it.
pub(crate) const WHOLE: &str = "whole";
/// Ours, but a call that no set allows passes.
pub(crate) const OPEN_TO_UNLISTED: &str = "open-to-unlisted";
/// Ours, but calls of x32 are as good as no calls.
pub(crate) const OPEN_TO_X32: &str = "open-to-x32";
/// Ours, but every closed call has an errno of its own.
pub(crate) const MARKED: &str = "marked";

/// One refusal: a call by itself, or one condition under which it is refused.
#[derive(Debug, Deserialize)]
pub(crate) struct Refusal {
    /// In words, for the table.
    pub(crate) name: String,
    /// How the marked filter answers the call.
    pub(crate) mark: String,
    /// The filter without it.
    pub(crate) file: String,
}

/// Every refusal.
pub(crate) fn refusals() -> Vec<Refusal> {
    let index = fs::read(Path::new(BUILT).join("index.json")).unwrap();
    serde_json::from_slice(&index).unwrap()
}

/// A filter by the name of its file, as the kernel takes it.
pub(crate) fn read(name: &str) -> Vec<u8> {
    fs::read(Path::new(BUILT).join(name)).unwrap()
}
