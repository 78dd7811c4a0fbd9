//! A plan as a person reads it.
