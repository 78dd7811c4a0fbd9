//! `fs_stat`: what one name is, without opening it.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, StatxTimestamp, readlinkat, statx};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use serde::Deserialize;

use crate::fact;
use crate::failure::{Failure, SystemError, reason};
use crate::input::{PathArgument, parse};
use crate::visible::{visible, visible_path};

/// Why a name was not examined.
#[derive(Debug, thiserror::Error)]
pub enum StatError {
    /// A step failed.
    #[error(transparent)]
    System(#[from] SystemError),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: PathArgument,
}

pub(crate) fn run(input: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    let arguments: Arguments = parse(input)?;
    let text = examine(arguments.path.as_path()).map_err(StatError::from)?;
    out.write_all(text.as_bytes()).map_err(Failure::Output)
}

fn examine(path: &Path) -> Result<String, SystemError> {
    let seen = look(path, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| SystemError::new("examine", path, errno))?;
    let mut text = format!("{}\n", visible_path(path));
    facts(&mut text, &seen);
    if kind(&seen) == FileType::Symlink {
        target(&mut text, path);
    }
    Ok(text)
}

fn look(path: &Path, flags: AtFlags) -> Result<Statx, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    // Not to wake what is mounted only when somebody looks.
    statx(CWD, path, flags | AtFlags::NO_AUTOMOUNT, wanted)
}

fn kind(seen: &Statx) -> FileType {
    FileType::from_raw_mode(seen.stx_mode.into())
}

fn facts(text: &mut String, seen: &Statx) {
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:9} {value}");
    };
    let kind = kind(seen);
    fact("type", fact::kind(kind));
    match kind {
        FileType::RegularFile => {
            let disk = seen.stx_blocks.saturating_mul(512);
            fact("size", &format!("{} bytes, {disk} on disk", seen.stx_size));
        }
        FileType::CharacterDevice | FileType::BlockDevice => {
            fact(
                "device",
                &format!("{}:{}", seen.stx_rdev_major, seen.stx_rdev_minor),
            );
        }
        _ => {}
    }
    let mode = u32::from(seen.stx_mode) & 0o7777;
    fact("mode", &format!("{mode:04o} {}", permissions(mode)));
    let own = |is_own| if is_own { " (this tool's own)" } else { "" };
    let (uid, gid) = (seen.stx_uid, seen.stx_gid);
    fact(
        "owner",
        &format!("uid {uid}{}", own(uid == geteuid().as_raw())),
    );
    fact(
        "group",
        &format!("gid {gid}{}", own(gid == getegid().as_raw())),
    );
    fact("names", &seen.stx_nlink.to_string());
    fact("modified", &time(&seen.stx_mtime));
    fact("changed", &time(&seen.stx_ctime));
    fact("accessed", &time(&seen.stx_atime));
    // Not every file system keeps it.
    if StatxFlags::from_bits_retain(seen.stx_mask).contains(StatxFlags::BTIME) {
        fact("created", &time(&seen.stx_btime));
    }
}

/// Where a link says that it leads, and what is there.
fn target(text: &mut String, path: &Path) {
    let says = match readlinkat(CWD, path, Vec::new()) {
        Ok(says) => visible(says.as_bytes()),
        Err(errno) => format!("unreadable: {}", reason(errno)),
    };
    let _ = writeln!(text, "{:9} {says}", "target");
    let there = match look(path, AtFlags::empty()) {
        Ok(seen) => match kind(&seen) {
            FileType::RegularFile => format!("a file of {} bytes", seen.stx_size),
            kind => format!("a {}", fact::kind(kind)),
        },
        Err(errno) => format!("nothing: {}", reason(errno)),
    };
    let _ = writeln!(text, "{:9} {there}", "leads to");
}

fn time(time: &StatxTimestamp) -> String {
    fact::time(time.tv_sec)
}

/// The nine letters of ls(1), with those for the set-id and sticky bits.
fn permissions(mode: u32) -> String {
    let mut letters: Vec<char> = "rwxrwxrwx".chars().collect();
    for (at, letter) in letters.iter_mut().enumerate() {
        if mode & (0o400 >> at) == 0 {
            *letter = '-';
        }
    }
    for (bit, at, letter) in [(0o4000, 2, 's'), (0o2000, 5, 's'), (0o1000, 8, 't')] {
        if mode & bit != 0 {
            letters[at] = match letters[at] {
                '-' => letter.to_ascii_uppercase(),
                _ => letter,
            };
        }
    }
    letters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_the_letters_of_ls() {
        for (mode, letters) in [
            (0o644, "rw-r--r--"),
            (0o7777, "rwsrwsrwt"),
            (0o7000, "--S--S--T"),
            (0o751, "rwxr-x--x"),
        ] {
            assert_eq!(permissions(mode), letters);
        }
    }
}
