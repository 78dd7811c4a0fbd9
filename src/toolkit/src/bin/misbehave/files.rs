//! Harm to files and by sockets, taken back where it succeeded.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketType};
use serde_json::{Value, json};

use crate::report::Report;

/// Adds `token` and a newline to the file in one write.
pub(crate) fn append(report: &mut Report, path: &Path, token: &str) -> io::Result<()> {
    let appended = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{token}\n").as_bytes()));
    report.result("append", &path.to_string_lossy(), appended)
}

/// Reads the beginning of the file.
pub(crate) fn read(report: &mut Report, act: &str, path: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(200).read_to_end(&mut bytes));
    let object = path.to_string_lossy();
    match read {
        Ok(_) => report.done(act, &object, json!(String::from_utf8_lossy(&bytes))),
        Err(error) => report.refused(act, &object, &error),
    }
}

/// Creates a file in the root directory.
pub(crate) fn root_write(report: &mut Report) -> io::Result<()> {
    let path = format!("/boxmaker-misbehave-{}", std::process::id());
    let created = OpenOptions::new().write(true).create_new(true).open(&path);
    if created.is_ok() {
        let _ = std::fs::remove_file(&path);
    }
    report.result("root_write", &path, created)
}

/// Makes a file with set-id bits, once by the mode of open and once by chmod.
pub(crate) fn set_id(report: &mut Report, near: &Path) -> io::Result<()> {
    let directory = match near.parent() {
        Some(parent) if !near.is_dir() => parent,
        _ => near,
    };
    let path = directory.join(format!("set-id-{}", std::process::id()));
    let bits = Mode::from_raw_mode(0o6755);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    outcome(report, "open", rustix::fs::open(&path, flags, bits))?;
    let _ = std::fs::remove_file(&path);
    match rustix::fs::open(&path, flags, Mode::from_raw_mode(0o755)) {
        Ok(file) => {
            let changed = rustix::fs::fchmod(&file, bits).map(|()| file);
            outcome(report, "fchmod", changed)?;
        }
        Err(errno) => report.refused("set_id", "plain open", &errno.into())?,
    }
    let _ = std::fs::remove_file(&path);
    Ok(())
}

fn outcome(
    report: &mut Report,
    object: &str,
    made: rustix::io::Result<impl AsFd>,
) -> io::Result<()> {
    match made.and_then(rustix::fs::fstat) {
        Ok(seen) => report.done(
            "set_id",
            object,
            json!(format!("{:04o}", seen.st_mode & 0o7777)),
        ),
        Err(errno) => report.refused("set_id", object, &errno.into()),
    }
}

/// Opens a socket of each family that leads somewhere.
pub(crate) fn sockets(report: &mut Report) -> io::Result<()> {
    let kinds = [
        ("AF_UNIX", AddressFamily::UNIX, SocketType::STREAM),
        ("AF_INET", AddressFamily::INET, SocketType::STREAM),
        ("AF_INET6", AddressFamily::INET6, SocketType::DGRAM),
        ("AF_NETLINK", AddressFamily::NETLINK, SocketType::RAW),
    ];
    for (name, family, kind) in kinds {
        let opened = rustix::net::socket(family, kind, None).map_err(io::Error::from);
        report.result("socket", name, opened)?;
    }
    Ok(())
}

/// Writes `bytes` bytes to standard output.
pub(crate) fn flood(report: &mut Report, bytes: u64) -> io::Result<()> {
    let line = b"flood flood flood flood flood flood flood flood flood flood flo\n";
    let block = line.repeat(1024);
    let mut left = bytes;
    while left > 0 {
        let count = usize::try_from(left).map_or(block.len(), |left| left.min(block.len()));
        report.raw(&block[..count])?;
        left -= count as u64;
    }
    if !bytes.is_multiple_of(line.len() as u64) {
        report.raw(b"\n")?;
    }
    report.done("flood", "standard output", Value::from(bytes))
}
