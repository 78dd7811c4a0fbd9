//! What the stage reads back of itself. The files are opened before Landlock and read after everything: a descriptor
//! of `/proc/self` shows the state of the moment in which it is read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::FdFlags;
use rustix::process::{DumpableBehavior, Resource};

use super::mark;
use super::status::Status;
use super::{Inside, SeenLimit, SeenMount, Tried};
use crate::plan::Plan;

/// Open files of `/proc/self`.
pub(crate) struct Readings {
    status: File,
    stat: File,
    mountinfo: File,
    limits: File,
    descriptors: Dir,
}

impl Readings {
    pub(crate) fn open() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            status: File::open("/proc/self/status")?,
            stat: File::open("/proc/self/stat")?,
            mountinfo: File::open("/proc/self/mountinfo")?,
            limits: File::open("/proc/self/limits")?,
            // Made from the descriptor itself: one that is opened again would have to pass Landlock later.
            descriptors: Dir::new(rustix::fs::open("/proc/self/fd", flags, Mode::empty())?)?,
        })
    }

    /// Reads everything back. `foreign` is what there is to say of foreign architectures, `known` are the descriptors that may be open besides the standard three and the ones
    /// held here.
    pub(crate) fn read(
        mut self,
        tried: Vec<Tried>,
        plan: &Plan,
        foreign: Option<String>,
        known: &[BorrowedFd<'_>],
    ) -> io::Result<Inside> {
        let stat = text(&mut self.stat)?;
        // Without namespaces both are the host's, which nobody judges.
        let (mut owners, mut mounts, mut mark) = (Vec::new(), Vec::new(), None);
        if plan.is_bare() {
            // Not by a call: the filter refuses it.
            mark = mark::of_limits(&text(&mut self.limits)?);
        } else {
            for (path, ..) in plan.trees() {
                owners.push(rustix::fs::stat(path)?.st_uid);
            }
            let lines = text(&mut self.mountinfo)?;
            mounts.extend(lines.lines().filter_map(mount));
        }
        Ok(Inside {
            status: Status::parse(&text(&mut self.status)?).map_err(io::Error::other)?,
            secure_bits: rustix::thread::capabilities_secure_bits()?.bits(),
            dumpable: rustix::process::dumpable_behavior()? == DumpableBehavior::Dumpable,
            parent_death: rustix::process::parent_process_death_signal()?
                .map(rustix::process::Signal::as_raw),
            subreaper: rustix::process::child_subreaper()?.is_some(),
            mark,
            pid: rustix::process::getpid().as_raw_pid(),
            // 0 when the session's leader is outside the pid namespace.
            session: nix::unistd::getsid(None).map_err(io::Error::from)?.as_raw(),
            terminal: terminal(&stat)?,
            core: limit(Resource::Core),
            files: limit(Resource::Nofile),
            processes: limit(Resource::Nproc),
            descriptors: self.unknown(known)?,
            mounts,
            hostname: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            domain: rustix::system::uname()
                .domainname()
                .to_string_lossy()
                .into_owned(),
            owners,
            tried,
            foreign,
        })
    }

    /// Descriptors above the standard three that nobody accounts for, or that exec would keep.
    fn unknown(&mut self, known: &[BorrowedFd<'_>]) -> io::Result<Vec<String>> {
        let own = [
            self.status.as_fd(),
            self.stat.as_fd(),
            self.mountinfo.as_fd(),
            self.limits.as_fd(),
            self.descriptors.fd()?,
        ];
        let mut expected = Vec::new();
        let mut wrong = Vec::new();
        for descriptor in known.iter().chain(&own) {
            expected.push(descriptor.as_raw_fd());
            if !rustix::io::fcntl_getfd(descriptor)?.contains(FdFlags::CLOEXEC) {
                wrong.push(format!("{} stays open over exec", descriptor.as_raw_fd()));
            }
        }
        while let Some(entry) = self.descriptors.read() {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Ok(number) = name.parse::<i32>() else {
                continue;
            };
            if number > 2 && !expected.contains(&number) {
                let target = rustix::fs::readlinkat(self.descriptors.fd()?, &name, Vec::new());
                let target = target.map(|target| target.to_string_lossy().into_owned());
                wrong.push(format!("{number}: {}", target.unwrap_or_default()));
            }
        }
        Ok(wrong)
    }
}

fn text(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Field 7 of `/proc/self/stat`; the second field may hold anything but ends with the last `)`.
pub(super) fn terminal(stat: &str) -> io::Result<i64> {
    stat.rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(4))
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| io::Error::other("/proc/self/stat has no terminal field"))
}

fn limit(resource: Resource) -> SeenLimit {
    let limit = rustix::process::getrlimit(resource);
    (limit.current, limit.maximum)
}

/// One line of mountinfo (proc_pid_mountinfo(5)): the fifth field is where, the sixth are its options.
pub(super) fn mount(line: &str) -> Option<SeenMount> {
    let mut fields = line.split_ascii_whitespace().skip(4);
    let path = unescape(fields.next()?);
    let options = fields.next()?.split(',').map(str::to_owned).collect();
    Some(SeenMount { path, options })
}

/// Space, tab, newline and backslash stand as three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|_| first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_with_a_space_in_its_name_is_read() {
        let line = r"36 35 98:0 /m /mnt\040two ro,nosuid,relatime - ext4 /dev/root rw";
        let seen = mount(line).unwrap();
        assert_eq!(seen.path, "/mnt two");
        assert_eq!(seen.options, ["ro", "nosuid", "relatime"]);
    }

    #[test]
    fn a_process_name_with_brackets_does_not_shift_the_terminal() {
        assert_eq!(terminal("7 (a) b) S 1 7 7 34816 -1").unwrap(), 34816);
    }
}
