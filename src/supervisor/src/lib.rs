//! The supervisor: loads the owner's policy, launches brokerd and every tool in a sandbox of its own, checks each
//! request of brokerd against the policy again, and is the only hand that writes the audit log.
//!
//! It decides nothing that needs a session (that is brokerd's part) and confines nothing itself (that is the
//! launcher's part).

pub mod cli;

mod approvals;
mod bare;
mod books;
mod broker;
mod demands;
mod demo;
mod design;
mod doctor;
mod explain;
mod guard;
mod home;
mod load;
mod narrow;
mod notify;
mod place;
mod restart;
mod role;
mod run;
mod sandbox;
mod share;
mod stdio;
mod stores;
mod up;
mod voice;
mod way_out;

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, also one whose holder panicked: each critical section here leaves its value whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number of something: `1 tool`, `2 tools`.
fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `error` and what it was caused by, in one line. A cause that its error quotes is not said twice.
fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let words = source.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Link {
        text: &'static str,
        source: Option<Box<Link>>,
    }

    #[test]
    fn one_of_something_is_no_plural() {
        assert_eq!(count(1, "tool"), "1 tool");
        assert_eq!(
            [0, 2].map(|number| count(number, "byte")),
            ["0 bytes", "2 bytes"]
        );
    }

    #[test]
    fn a_cause_is_said_once() {
        let link = |text, source: Option<Link>| Link {
            text,
            source: source.map(Box::new),
        };
        let told = link("cannot open x: denied", Some(link("denied", None)));
        assert_eq!(in_full(&told), "cannot open x: denied");
        let hidden = link("cannot open x", Some(link("denied", None)));
        assert_eq!(in_full(&hidden), "cannot open x: denied");
    }
}
