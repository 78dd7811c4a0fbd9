//! The lines of the report. Each is written out at once, because the act after it may never return.

use std::fs::OpenOptions;
use std::io::{self, Stdout, Write};
use std::path::Path;

use nix::errno::Errno;
use serde_json::{Value, json};

/// Where lines go.
#[derive(Debug)]
pub(crate) struct Report {
    out: Stdout,
}

impl Report {
    pub(crate) fn stdout() -> Self {
        Self { out: io::stdout() }
    }

    /// The act on that object succeeded.
    pub(crate) fn done(&mut self, act: &str, object: &str, detail: Value) -> io::Result<()> {
        self.line(act, object, "ok", &detail)
    }

    /// It was refused.
    pub(crate) fn refused(&mut self, act: &str, object: &str, error: &io::Error) -> io::Result<()> {
        self.line(act, object, &name(error), &Value::Null)
    }

    /// It was refused after something had happened that is worth telling.
    pub(crate) fn stopped(
        &mut self,
        act: &str,
        object: &str,
        error: &io::Error,
        detail: &Value,
    ) -> io::Result<()> {
        self.line(act, object, &name(error), detail)
    }

    /// It succeeded without effect, or was refused.
    pub(crate) fn result<T>(
        &mut self,
        act: &str,
        object: &str,
        result: io::Result<T>,
    ) -> io::Result<()> {
        match result {
            Ok(_) => self.done(act, object, Value::Null),
            Err(error) => self.refused(act, object, &error),
        }
    }

    /// Bytes that are no line.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Creates the file at `path`; here because it is what may come before everything else.
    pub(crate) fn touch(&mut self, path: &Path) -> io::Result<()> {
        let created = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        self.result("touch", &path.to_string_lossy(), created)
    }

    fn line(&mut self, act: &str, object: &str, outcome: &str, detail: &Value) -> io::Result<()> {
        let mut line = json!({"act": act, "object": object, "outcome": outcome});
        if !detail.is_null() {
            line["detail"] = detail.clone();
        }
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }
}

/// `EPERM` and kin; the words of std for an error that is none of the kernel's.
pub(crate) fn name(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => format!("{:?}", Errno::from_raw(number)),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_kernel_has_its_own_name() {
        assert_eq!(name(&io::Error::from_raw_os_error(1)), "EPERM");
        assert_eq!(name(&io::Error::from_raw_os_error(38)), "ENOSYS");
    }
}
