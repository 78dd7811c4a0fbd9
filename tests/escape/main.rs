//! What a program in a sandbox might try to get out, to get more, to find out, or to stay: one table of acts, each tried
//! without a sandbox, in ours as root and as a plain user, by a new stage and by one that has waited, in ours where no
//! namespaces can be made, and in bubblewrap. Needs root, a C compiler with a static
//! library, and for the last column bubblewrap; says so without them.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, also outside its own function"
)]

mod areas;
