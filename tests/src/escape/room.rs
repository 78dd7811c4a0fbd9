//! A directory with everything that the acts look for: three granted trees of the plain user's, programs that carry
//! rights, a file beside all of that, and whoever waits outside.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, FileType, Mode, XattrFlags};
use tempfile::TempDir;

use super::column::Column;
use super::outside::Outside;
use super::start::Waiters;
use super::{GROUP, LEAKED, OTHER, USER};
use crate::binaries::binary;

/// `security.capability` of a file with CAP_NET_RAW, permitted and effective (`struct vfs_cap_data`, revision 2).
const NET_RAW: [u8; 20] = [
    1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// A program of another architecture, as small as it can be (elf(5)): it writes its name by one 32-bit call and ends by
/// another. Written out, because few hosts can compile one.
const I386: &[u8] = &[
    // ELF, 32 bits, little-endian, System V; an executable for the 386.
    0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 1, 0, 0, 0,
    // It starts at 0x08048054. Its one segment is described at 52; there are no sections.
    0x54, 0x80, 0x04, 0x08, 52, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 32, 0, 1, 0, 40, 0, 0, 0, 0,
    0, // All of the file, to be read and executed at 0x08048000.
    1, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x04, 0x08, 0, 0x80, 0x04, 0x08, 123, 0, 0, 0, 123, 0, 0, 0,
    5, 0, 0, 0, 0, 0x10, 0, 0, // write(1, "i386\n", 5)
    0xb8, 4, 0, 0, 0, 0xbb, 1, 0, 0, 0, 0xb9, 0x76, 0x80, 0x04, 0x08, 0xba, 5, 0, 0, 0, 0xcd, 0x80,
    // exit(0)
    0xb8, 1, 0, 0, 0, 0xbb, 0, 0, 0, 0, 0xcd, 0x80, b'i', b'3', b'8', b'6', b'\n',
];

/// The room of one column.
#[derive(Debug)]
pub struct Room {
    // Its processes end before the directory goes.
    waiters: OnceLock<Waiters>,
    directory: TempDir,
    nonce: String,
    outside: Outside,
}

impl Room {
    /// A new one. Needs root.
    ///
    /// # Panics
    /// Something of it cannot be made.
    #[must_use]
    pub fn new(probe: &Path) -> Self {
        // Not below /tmp, of which each sandbox has its own.
        let directory = TempDir::with_prefix_in("escape-", "/var/tmp").unwrap();
        let at = |below: &str| directory.path().join(below);
        set_mode(directory.path(), 0o755);
        let nonce = format!("{:016x}", rand());
        for below in [
            "bin",
            "launch",
            "mounted",
            "notes",
            "out",
            "drop",
            "core",
            "sandboxes",
        ] {
            fs::create_dir(at(below)).unwrap();
            set_mode(&at(below), 0o755);
        }
        programs(probe, &at("bin"));
        for name in ["launch-probe", "boxmaker-stage", "stage-without-a-step"] {
            copy(&binary(name), &at("launch").join(name));
        }
        fs::write(at("secret"), format!("{nonce} beside\n")).unwrap();
        fs::write(at("notes/file"), format!("{nonce} noted\n")).unwrap();
        fs::write(at("out/file"), format!("{nonce} put out\n")).unwrap();
        for name in ["second", "third", "fourth"] {
            fs::write(at("out").join(name), format!("{nonce} put out\n")).unwrap();
        }
        fs::write(at("notes/short"), format!("{nonce} soon short\n")).unwrap();
        fs::write(at("drop/file"), format!("{nonce} dropped\n")).unwrap();
        fs::write(at("notes/others"), format!("{nonce} another user's\n")).unwrap();
        fs::write(at("notes/roots"), format!("{nonce} root's\n")).unwrap();
        fs::write(at("notes/groups"), format!("{nonce} a group's\n")).unwrap();
        fs::write(at("drop/kept"), format!("{nonce} not to be read\n")).unwrap();
        fs::write(at("drop/linked"), format!("{nonce} not to be read\n")).unwrap();
        fs::write(at("bin/owners"), format!("{nonce} no program\n")).unwrap();
        chown(at("bin/owners"), Some(USER), Some(USER)).unwrap();
        set_mode(&at("bin/owners"), 0o600);
        copy(probe, &at("notes/program"));
        symlink("../secret", at("notes/link")).unwrap();
        symlink(at("secret"), at("notes/absolute")).unwrap();
        symlink("/", at("out/root")).unwrap();
        let outside = Outside::new(probe, &nonce, &at("notes"), &at("out"));
        for tree in ["notes", "out", "drop", "core", "sandboxes"] {
            own(&at(tree));
        }
        for (name, owner, group, mode) in [
            ("others", OTHER, OTHER, 0o600),
            ("roots", 0, 0, 0o600),
            ("groups", OTHER, GROUP, 0o640),
        ] {
            chown(at("notes").join(name), Some(owner), Some(group)).unwrap();
            set_mode(&at("notes").join(name), mode);
        }
        // The empty device, which anybody may use where devices are devices.
        let device = rustix::fs::makedev(1, 3);
        let kind = FileType::CharacterDevice;
        let path = at("out/device");
        rustix::fs::mknodat(CWD, &path, kind, Mode::from_raw_mode(0o666), device).unwrap();
        set_mode(&path, 0o666);
        Self {
            directory,
            nonce,
            outside,
            waiters: OnceLock::new(),
        }
    }

    /// A path in it.
    #[must_use]
    pub fn at(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    /// What nobody knows who was not told.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Whether the process that is there to be reached got the signal that it keeps back.
    pub(super) fn victim_was_told(&self) -> bool {
        self.outside.victim_was_told()
    }

    /// An act with the names of this room put in. In a sandbox `@init` and `@first` are its process 1; without one that is
    /// the machine's, so that a child of the act and the victim stand for it. Without namespaces they are the stage.
    #[must_use]
    pub fn act(&self, act: &str, column: Column) -> String {
        let sandbox = column != Column::Free;
        let one = |other: String| if sandbox { "1".to_owned() } else { other };
        let one = |other: String| match column {
            Column::Bare => "@stage".to_owned(),
            _ => one(other),
        };
        let mut act = act.replace("@/", &format!("{}/", self.directory.path().display()));
        let fixed = [
            ("@init", one("child".to_owned())),
            ("@first", one(self.outside.victim().to_string())),
            ("@nonce", self.nonce.clone()),
            ("@leaked", LEAKED.to_string()),
            ("@group", GROUP.to_string()),
            ("@other", OTHER.to_string()),
            ("@listener", format!("@escape-listener-{}", self.nonce)),
            ("@caller", format!("@escape-caller-{}", self.nonce)),
        ];
        for (name, value) in fixed.into_iter().chain(self.outside.names()) {
            act = act.replace(name, &value);
        }
        // Ours are told of those that whoever launches them has made.
        if !column.ours() && (act.contains("@staged") || act.contains("@parked")) {
            let waiters = self.waiters.get_or_init(|| Waiters::new(self));
            act = waiters.numbers.named(&act);
        }
        act
    }
}

fn rand() -> u64 {
    let mut bytes = [0; 8];
    let mut random = fs::File::open("/dev/urandom").unwrap();
    std::io::Read::read_exact(&mut random, &mut bytes).unwrap();
    u64::from_ne_bytes(bytes)
}

/// The probe, once as it is, once to be overwritten, once set-id, once with a capability.
fn programs(probe: &Path, bin: &Path) {
    for name in ["probe", "tool", "set-id", "capable"] {
        copy(probe, &bin.join(name));
    }
    set_mode(&bin.join("set-id"), 0o4755);
    fs::write(bin.join("i386"), I386).unwrap();
    set_mode(&bin.join("i386"), 0o755);
    // Nothing but its mount is to keep anybody from writing it.
    set_mode(&bin.join("tool"), 0o777);
    let capable = bin.join("capable");
    rustix::fs::setxattr(
        capable,
        "security.capability",
        &NET_RAW,
        XattrFlags::empty(),
    )
    .unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap();
    set_mode(to, 0o755);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Gives a directory and what is in it to the plain user, who keeps everybody else out.
fn own(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        std::os::unix::fs::lchown(entry.path(), Some(USER), Some(USER)).unwrap();
        if kind.is_file() {
            let program = entry.metadata().unwrap().permissions().mode() & 0o100;
            set_mode(&entry.path(), 0o600 | program);
        }
    }
    chown(directory, Some(USER), Some(USER)).unwrap();
    set_mode(directory, 0o700);
}
