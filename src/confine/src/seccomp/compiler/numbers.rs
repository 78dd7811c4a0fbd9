//! The numbers of system calls by name.

use std::collections::BTreeMap;

/// `numbers.txt`: a comment, then one call a line, its number first.
pub(super) fn read() -> BTreeMap<&'static str, u32> {
    include_str!("numbers.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(number, name)| Some((name, number.parse().ok()?)))
        .collect()
}
