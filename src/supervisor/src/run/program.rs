//! The program of a run: found as a shell finds it, named by its real path.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// A program that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it is.
    pub(super) path: PathBuf,
    /// Its words, the first of which is that path.
    pub(super) argv: Vec<String>,
}

/// Why there is no program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// No file of that name.
    #[error("{}: there is no such program{where_}; name it by its path, or correct the name", name.display())]
    NotFound {
        /// As it was typed.
        name: PathBuf,
        /// Where it was looked for.
        where_: &'static str,
    },
    /// A file that cannot be executed.
    #[error("{}: it cannot be executed: {why}", path.display())]
    NotExecutable {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// A word that is no text.
    #[error("{0:?} is not UTF-8: the record of a run has its words as text; use another name")]
    Text(OsString),
}

/// Finds the first of `words` in `PATH`, or where it says.
///
/// # Errors
/// As [`ProgramError`].
pub(super) fn find(words: &[OsString]) -> Result<Found, ProgramError> {
    let name = words.first().map(PathBuf::from).unwrap_or_default();
    let path = locate(&name, env::var_os("PATH").as_deref())?;
    let text = |word: &OsStr| {
        let text = word.to_str().map(str::to_owned);
        text.ok_or_else(|| ProgramError::Text(word.to_owned()))
    };
    let mut argv = vec![text(path.as_os_str())?];
    for word in words.iter().skip(1) {
        argv.push(text(word)?);
    }
    Ok(Found { path, argv })
}

/// The path of `name`: itself where it holds a slash, else the first file of `directories` that can be executed. Links are
/// kept: some programs look at what they are called.
fn locate(name: &Path, directories: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    let not_found = |where_| ProgramError::NotFound {
        name: name.to_owned(),
        where_,
    };
    let failed = |path: &Path| {
        let (path, error) = (path.to_owned(), executable(path).err());
        error.map(|why| ProgramError::NotExecutable { path, why })
    };
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        let path = std::path::absolute(name).map_err(|_| not_found(""))?;
        return match failed(&path) {
            None => Ok(path),
            Some(ProgramError::NotExecutable { why, .. })
                if why.kind() == io::ErrorKind::NotFound =>
            {
                Err(not_found(""))
            }
            Some(error) => Err(error),
        };
    }
    let mut refused = None;
    for directory in env::split_paths(directories.unwrap_or_default()) {
        // A relative entry means another directory from wherever it is read.
        if !directory.is_absolute() || name.as_os_str().is_empty() {
            continue;
        }
        let path = directory.join(name);
        match failed(&path) {
            None => return Ok(path),
            Some(ProgramError::NotExecutable { why, .. })
                if why.kind() == io::ErrorKind::NotFound => {}
            Some(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| not_found(" in PATH")))
}

fn executable(path: &Path) -> io::Result<()> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    Ok(rustix::fs::access(path, Access::EXEC_OK)?)
}

/// Where the program starts: where boxmaker was started. What is not granted there is not seen; in a place that every
/// sandbox has of its own it is the root.
pub(super) fn working_directory() -> String {
    let here = env::current_dir().ok();
    let here = here.and_then(|here| here.into_os_string().into_string().ok());
    let own = |here: &str| {
        ["/proc", "/sys", "/dev"]
            .iter()
            .any(|own| Path::new(here).starts_with(own))
    };
    here.filter(|here| !own(here))
        .unwrap_or_else(|| "/".to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for (name, mode) in [("first/tool", 0o644), ("second/tool", 0o755)] {
            fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            fs::write(path(name), "").unwrap();
            fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let directories = env::join_paths([path("first"), path("second"), path("none")]).unwrap();
        let found = |name: &str| locate(Path::new(name), Some(&directories));
        assert_eq!(found("tool").unwrap(), path("second/tool"));
        let missing = found("toll").unwrap_err().to_string();
        assert!(missing.contains("no such program in PATH"), "{missing}");
        let by_path = path("first/tool").display().to_string();
        let refused = found(&by_path).unwrap_err();
        assert!(matches!(refused, ProgramError::NotExecutable { .. }));
        let missing = found("./not/there").unwrap_err();
        assert!(matches!(missing, ProgramError::NotFound { .. }));
        let only = locate(Path::new("tool"), Some(path("first").as_os_str()));
        assert!(matches!(only, Err(ProgramError::NotExecutable { .. })));
        let none = find(&[]).unwrap_err();
        assert!(matches!(none, ProgramError::NotFound { .. }));
    }
}
