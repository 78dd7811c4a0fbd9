//! The mark of a sandbox without namespaces, where the kernel shows it: the hard limit on real-time scheduling, which
//! means nothing to a process that may not use that, and which its descendants inherit.

/// The line of `/proc/<pid>/limits` that shows it (proc_pid_limits(5)).
const LINE: &str = "Max realtime timeout";

/// The hard limit, which stands second; none for no limit.
pub(crate) fn of_limits(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(LINE))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_the_hard_limit_as_the_kernel_shows_it() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max realtime priority     0                    0                    \n\
                      Max realtime timeout      17                   4611686018427387904  us        \n";
        assert_eq!(of_limits(limits), Some(1 << 62));
        let none = limits.replace("4611686018427387904", "unlimited");
        assert_eq!(of_limits(&none), None);
        let own = std::fs::read_to_string("/proc/self/limits").unwrap();
        assert!(own.contains(LINE), "{own}");
    }
}
