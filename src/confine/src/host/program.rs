//! What the kernel executes to start a program: the file itself, the interpreter that a script names, and the loader that
//! a dynamic program names (execve(2), elf(5)). Reads headers, runs nothing.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};

use super::HostError;
use super::locate::{Located, locate};

/// How many scripts may stand behind one another; the kernel gives up at about as many.
const MOST_SCRIPTS: usize = 4;
/// How much of a script's first line counts (`BINPRM_BUF_SIZE`).
const LINE: usize = 256;
/// The longest path of a loader that is read.
const MOST_PATH: u64 = 4096;

/// The kind of a program, from its first bytes.
enum Kind {
    /// Its loader, if it names one.
    Elf(Option<String>),
    /// The interpreter, and the one argument that the kernel passes on.
    Script(String, Option<String>),
}

/// Everything that is executed to start `program`; `search` is the `PATH` for `#!/usr/bin/env NAME`.
pub(super) fn chain(program: &str, search: Option<&str>) -> Result<Vec<Located>, HostError> {
    if !program.starts_with('/') {
        return Err(HostError::Program {
            path: program.to_owned(),
            reason: "it is not an absolute path".to_owned(),
        });
    }
    let mut chain = Vec::new();
    let mut next = vec![(program.to_owned(), None, 0)];
    while let Some((path, needed_by, scripts)) = next.pop() {
        let Some(at) = locate(&path)? else {
            return Err(HostError::NoProgram { path, needed_by });
        };
        let fail = |reason: String| HostError::Program {
            path: path.clone(),
            reason,
        };
        if chain.contains(&at) {
            continue;
        }
        is_executable(&at).map_err(fail)?;
        let kind = kind(&at.real).map_err(|error| fail(error.to_string()))?;
        chain.push(at);
        match kind {
            Kind::Elf(loader) => {
                next.extend(loader.map(|loader| (loader, Some(path.clone()), scripts)));
            }
            Kind::Script(..) if scripts == MOST_SCRIPTS => {
                return Err(fail(format!(
                    "more than {MOST_SCRIPTS} scripts stand behind one another"
                )));
            }
            Kind::Script(interpreter, argument) => {
                if interpreter.rsplit('/').next() == Some("env") {
                    let found = by_env(argument.as_deref(), search).map_err(fail)?;
                    next.push((found, Some(path.clone()), scripts + 1));
                }
                next.push((interpreter, Some(path), scripts + 1));
            }
        }
    }
    Ok(chain)
}

/// What the kernel starts besides for a program in this file, if it is one, for the fuzz targets.
#[cfg(fuzzing)]
#[must_use]
pub fn started_by(file: File) -> Option<String> {
    match kind_of(file).ok()? {
        Kind::Elf(loader) => loader,
        Kind::Script(interpreter, _) => Some(interpreter),
    }
}

/// The loader of one file, if it is a dynamic program of this machine. Anything else has none.
pub(super) fn loader_of(at: &Located) -> Result<Option<Located>, HostError> {
    if !at.is_file() {
        return Ok(None);
    }
    match kind(&at.real) {
        Ok(Kind::Elf(Some(loader))) => locate(&loader),
        _ => Ok(None),
    }
}

fn is_executable(at: &Located) -> Result<(), String> {
    if !at.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let metadata = fs::metadata(&at.real).map_err(|error| error.to_string())?;
    // Execute for others: inside, it is started by a uid that owns nothing on the host.
    if metadata.permissions().mode() & 0o001 == 0 {
        return Err(format!(
            "mode {:04o} does not let everyone execute it, and the sandbox has a uid of its own; chmod o+rx it",
            metadata.permissions().mode() & 0o7777
        ));
    }
    Ok(())
}

/// What `#!/usr/bin/env ARGUMENT` starts.
fn by_env(argument: Option<&str>, search: Option<&str>) -> Result<String, String> {
    let argument = argument.unwrap_or_default();
    let words = argument.strip_prefix("-S").unwrap_or(argument);
    let name = words.split([' ', '\t']).find(|word| !word.is_empty());
    let Some(name) = name.filter(|name| !name.starts_with('-') && !name.contains('=')) else {
        return Err(format!(
            "\"env {argument}\" in its first line names no program plainly"
        ));
    };
    if name.starts_with('/') {
        return Ok(name.to_owned());
    }
    if name.contains('/') {
        return Err(format!(
            "\"env {argument}\" in its first line is relative to a directory nobody knows"
        ));
    }
    let search =
        search.ok_or("its first line asks env for a program, and the profile sets no PATH")?;
    search
        .split(':')
        .filter(|directory| directory.starts_with('/'))
        .map(|directory| format!("{}/{name}", directory.trim_end_matches('/')))
        .find(|path| matches!(locate(path), Ok(Some(at)) if is_executable(&at).is_ok()))
        .ok_or_else(|| format!("{name} is nowhere in the profile's PATH"))
}

/// Why a file is no program, or that it could not be read.
#[derive(Debug, thiserror::Error)]
enum KindError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("{0}")]
    Format(&'static str),
}

fn kind(path: &str) -> Result<Kind, KindError> {
    kind_of(File::open(path)?)
}

fn kind_of(mut file: File) -> Result<Kind, KindError> {
    let mut start = Vec::with_capacity(LINE);
    file.by_ref().take(LINE as u64).read_to_end(&mut start)?;
    if start.starts_with(b"#!") {
        return script(&start[2..]);
    }
    if start.starts_with(b"\x7fELF") {
        return elf(&file, &start).map(Kind::Elf);
    }
    Err(KindError::Format(
        "it is neither an ELF program nor a script with #!",
    ))
}

fn script(line: &[u8]) -> Result<Kind, KindError> {
    let end = line.iter().position(|byte| *byte == b'\n');
    // A line that does not end within the buffer may be cut in the middle of a name.
    let line = match end {
        Some(end) => &line[..end],
        None if line.len() + 2 < LINE => line,
        None => return Err(KindError::Format("its first line is longer than 255 bytes")),
    };
    let text = std::str::from_utf8(line)
        .map_err(|_| KindError::Format("its first line is not UTF-8"))?
        .trim_matches([' ', '\t']);
    let (interpreter, argument) = match text.split_once([' ', '\t']) {
        Some((interpreter, argument)) => {
            (interpreter, Some(argument.trim_start_matches([' ', '\t'])))
        }
        None => (text, None),
    };
    // The kernel ends a name at a zero byte, and no path holds one.
    if text.contains('\0') {
        return Err(KindError::Format("its first line holds a zero byte"));
    }
    if !interpreter.starts_with('/') {
        return Err(KindError::Format(
            "its first line names no absolute interpreter",
        ));
    }
    Ok(Kind::Script(
        interpreter.to_owned(),
        argument.map(str::to_owned),
    ))
}

/// The loader that the program header of type `PT_INTERP` names.
fn elf(file: &File, start: &[u8]) -> Result<Option<String>, KindError> {
    const PT_INTERP: u64 = 3;
    const EM_X86_64: u64 = 62;
    const CLASS_64: u64 = 2;
    const LITTLE_ENDIAN: u64 = 1;
    const HEADER: u64 = 56;
    let short = KindError::Format("its ELF header is cut short");
    let Some(header) = start.get(..64) else {
        return Err(short);
    };
    if number(header, 4, 1) != CLASS_64 {
        return Err(KindError::Format(
            "it is a 32-bit program; those are killed by the system call filter",
        ));
    }
    if number(header, 5, 1) != LITTLE_ENDIAN || number(header, 18, 2) != EM_X86_64 {
        return Err(KindError::Format("it is a program for another machine"));
    }
    let (offset, size, count) = (
        number(header, 32, 8),
        number(header, 54, 2),
        number(header, 56, 2),
    );
    if count > 0 && size != HEADER {
        return Err(KindError::Format(
            "its ELF program headers have an unknown size",
        ));
    }
    for index in 0..count {
        let mut entry = [0; HEADER as usize];
        let at = offset.checked_add(index * HEADER);
        let read = at.and_then(|at| file.read_exact_at(&mut entry, at).ok());
        if read.is_none() {
            return Err(KindError::Format(
                "its ELF program headers lie outside the file",
            ));
        }
        if number(&entry, 0, 4) != PT_INTERP {
            continue;
        }
        let (offset, length) = (number(&entry, 8, 8), number(&entry, 32, 8));
        if !(2..=MOST_PATH).contains(&length) {
            return Err(KindError::Format(
                "the path of its loader has no sensible length",
            ));
        }
        let mut path = vec![0; length as usize];
        file.read_exact_at(&mut path, offset)?;
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        return match std::str::from_utf8(path) {
            Ok(path) if path.starts_with('/') => Ok(Some(path.to_owned())),
            _ => Err(KindError::Format(
                "the path of its loader is not absolute text",
            )),
        };
    }
    Ok(None)
}

/// A little-endian number of `width` bytes at `at`; the caller has checked that they are there.
fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    bytes[at..at + width]
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
