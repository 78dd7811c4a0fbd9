//! Facts about the host that a plan needs.
