//! bxctl
