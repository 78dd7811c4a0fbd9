//! Any bytes are walked as a log without harm, and what is told of them is one chain. Where the first byte asks for it,
//! each line that is one is first linked to the line before: no chance finds a hash.
#![no_main]

use ledger::fuzzing;
use libfuzzer_sys::fuzz_target;
use proto::{Hash32, Line};

fuzz_target!(|bytes: &[u8]| {
    let Some((how, stored)) = bytes.split_first() else {
        return;
    };
    let seqs = fuzzing::anchored(stored).unwrap_or_default();
    assert!(seqs.is_sorted_by(|before, after| before < after));

    let members = if how % 2 == 0 {
        fuzzing::walk(stored)
    } else {
        fuzzing::walk(&linked(stored))
    };
    let mut prev = Hash32::ZERO;
    let mut time = None;
    for (seq, (line, hash)) in members.into_iter().enumerate() {
        assert_eq!(line.seq, seq as u64);
        assert_eq!(line.prev, prev);
        assert!(time <= Some(line.time));
        time = Some(line.time);
        prev = hash;
    }
});

/// The same lines, each that is a record with the number and the hash that it should have.
fn linked(stored: &[u8]) -> Vec<u8> {
    let (mut seq, mut prev) = (0, Hash32::ZERO);
    let mut bytes = Vec::new();
    for text in stored.split_inclusive(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(text) else {
            bytes.extend(text);
            continue;
        };
        let written = serde_json::to_vec(&Line { seq, prev, ..line }).unwrap_or_default();
        seq += 1;
        prev = fuzzing::hash(&written);
        bytes.extend(written);
        bytes.push(b'\n');
    }
    bytes
}
