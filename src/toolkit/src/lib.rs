//! The built-in tools: one module a tool, each a function from one JSON object to text.
//!
//! A tool knows its arguments and the files it finds; it knows nothing of grants, sessions or sandboxes, and works
//! the same when a person runs it by hand. What it may touch is for the kernel to say, so every tool reports what the
//! kernel answered and what a reader of the message can do about it.

mod fact;
mod failure;
mod fs_edit;
mod fs_list;
mod fs_read;
mod fs_search;
mod fs_stat;
mod fs_write;
mod input;
mod read;
mod visible;
mod write;

pub use failure::{Failure, SystemError};
pub use fs_edit::EditError;
pub use fs_list::ListError;
pub use fs_read::ReadError;
pub use fs_search::SearchError;
pub use fs_stat::StatError;
pub use input::{InputError, MAX_INPUT, read_input};
pub use read::OpenError;
pub use write::WriteError;

use std::io::Write;

/// One tool: its name, what it is for, and its function.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// The first word of the command line.
    pub name: &'static str,
    /// Its arguments and what it does, on one line.
    pub about: &'static str,
    run: fn(&[u8], &mut dyn Write) -> Result<(), Failure>,
}

/// Every tool, by name.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "fs_edit",
        about: "{path, old, new, count?}  replace one exact text of a file, which must occur exactly count times, 1 if absent",
        run: fs_edit::run,
    },
    Tool {
        name: "fs_list",
        about: "{path, hidden?, depth?, limit?}  list a directory: type, size, time, name",
        run: fs_list::run,
    },
    Tool {
        name: "fs_read",
        about: "{path, offset?, limit?, encoding?}  read lines of a text file, or bytes of any file",
        run: fs_read::run,
    },
    Tool {
        name: "fs_search",
        about: "{path, pattern, literal?, ignore_case?, globs?, context?, limit?, …}  find lines of files",
        run: fs_search::run,
    },
    Tool {
        name: "fs_stat",
        about: "{path}  say what a file is: type, size, mode, owner, times, target of a link",
        run: fs_stat::run,
    },
    Tool {
        name: "fs_write",
        about: "{path, content, mode?}  replace, create or append to a file; no torn file is left behind",
        run: fs_write::run,
    },
];

impl Tool {
    /// The tool of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Tool> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// Runs it on `input`, one JSON object of arguments, and writes its result to `out` (formats.md section 3,
    /// `stdio`).
    ///
    /// # Errors
    /// The arguments are no object that the tool takes, the kernel refused a step, or `out` did. What was written
    /// to `out` before an error is no result.
    pub fn run(&self, input: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
        (self.run)(input, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_found_by_its_name_and_no_other_name_is() {
        for tool in TOOLS {
            assert_eq!(
                Tool::named(tool.name).map(|found| found.name),
                Some(tool.name)
            );
        }
        assert!(Tool::named("fs_remove").is_none());
        assert!(Tool::named("").is_none());
    }
}
