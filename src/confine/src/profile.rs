//! Profiles: what every sandbox of a kind looks like.
