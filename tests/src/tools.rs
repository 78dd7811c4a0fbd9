//! Tools that several suites call, as an owner would write them.

/// `show`: prints the one file that it may read.
pub const SHOW: &str = r#"
description = "Shows a file."
kind = "argv"
command = ["/usr/bin/cat", "--", "{path}"]
profile = "tools/base"
side_effect = false
resources = { path = "read" }
[arguments]
type = "object"
required = ["path"]
properties.path.type = "string"
"#;

/// Appends its input, which is its arguments, to `marks/log` below the files of a [`Home`](crate::system::Home), and answers with
/// it: what it did can be counted. Its grant needs `write:@FILES@/marks`.
pub const MARK: &str = r#"
description = "Appends its input to a file and answers with it."
kind = "stdio"
command = ["/usr/bin/tee", "-a", "@FILES@/marks/log"]
profile = "tools/base"
timeout = "10m"
[arguments]
type = "object"
required = ["text"]
properties.text.type = "string"
"#;

/// The shipped `fs_read`.
pub const FS_READ: &str = include_str!("../../profiles/examples/tools/fs_read.toml");
