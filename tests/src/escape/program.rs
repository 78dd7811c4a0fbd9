//! The static `probe`, built once for each process. It has to be C: it makes 32-bit calls and calls by number, and what a
//! library does on its way to the kernel must not come between.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Where the sources are.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/escape/probe");

/// Why there is no probe.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct NoCompiler(String);

/// The probe.
///
/// # Errors
/// This host has no C compiler, or no static C library.
///
/// # Panics
/// The sources do not compile.
pub fn probe() -> Result<&'static Path, NoCompiler> {
    static BUILT: LazyLock<Result<PathBuf, NoCompiler>> = LazyLock::new(build);
    match &*BUILT {
        Ok(path) => Ok(path),
        Err(error) => Err(error.clone()),
    }
}

fn build() -> Result<PathBuf, NoCompiler> {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty.c");
    fs::write(&empty, "int main(void) { return 0; }\n").unwrap();
    match compile(&[empty], &directory.path().join("empty")) {
        Ok(output) if output.status.success() => {}
        Ok(_) => {
            let reason = "cc cannot link statically: the static C library is not installed";
            return Err(NoCompiler(reason.to_owned()));
        }
        Err(error) => return Err(NoCompiler(format!("there is no C compiler (cc): {error}"))),
    }
    let mut sources: Vec<PathBuf> = fs::read_dir(SOURCES)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "c"))
        .collect();
    sources.sort();
    let built = directory.path().join("probe");
    let output = compile(&sources, &built).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the probe does not compile:\n{said}"
    );
    // Beside this program and put there in one step: others build it at the same time.
    let own = std::env::current_exe().unwrap();
    let place = own.with_file_name("escape-probe");
    let new = own.with_file_name(format!("escape-probe.{}", std::process::id()));
    fs::copy(&built, &new).unwrap();
    fs::rename(&new, &place).unwrap();
    Ok(place)
}

/// Not position-independent: what one process keeps, another finds at the same address.
fn compile(sources: &[PathBuf], to: &Path) -> std::io::Result<Output> {
    Command::new("cc")
        .args([
            "-static", "-no-pie", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread",
        ])
        .arg("-Wno-stringop-truncation")
        .arg("-o")
        .arg(to)
        .args(sources)
        .output()
}
