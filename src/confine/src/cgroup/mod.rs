//! Limits by cgroup v1.
