//! Canaries: acts that succeed before a layer and must fail after it with an errno that only that layer gives.
//!
//! File acts happen in a tmpfs that is mounted nowhere, so no rule of the plan covers it, no file of anybody is
//! touched, and nothing of it is left for the program to see. Where nothing can be mounted it is a directory that the
//! launcher makes beside the scratch directory and removes before the program starts. Everything in it is open to every
//! uid, so a refusal cannot come from file permissions.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use proto::Layer;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Ipv4Addr, SocketAddrUnix, SocketAddrV4, SocketType, bind, connect, getsockname,
    listen, socket,
};
use rustix::process::{Pid, test_kill_process};
use rustix::time::ClockId;

use super::Tried;
use crate::seccomp::Filter;

type Act = fn(&Canaries, &str) -> Result<(), Errno>;

/// Per right of Landlock: its name, the act, the errno before, the errnos that only Landlock gives.
const FILES: &[(&str, Act, Option<Errno>, &[Errno])] = &[
    // The file is no program: exec comes as far as its format, or no further than Landlock.
    ("execute", execute, Some(Errno::NOEXEC), &[Errno::ACCESS]),
    ("write_file", write_file, None, &[Errno::ACCESS]),
    ("read_file", read_file, None, &[Errno::ACCESS]),
    ("read_dir", read_dir, None, &[Errno::ACCESS]),
    ("remove_dir", remove_dir, None, &[Errno::ACCESS]),
    ("remove_file", remove_file, None, &[Errno::ACCESS]),
    (
        "make_char",
        |c, when| c.make(when, FileType::CharacterDevice),
        None,
        &[Errno::ACCESS],
    ),
    ("make_dir", make_dir, None, &[Errno::ACCESS]),
    (
        "make_reg",
        |c, when| c.make(when, FileType::RegularFile),
        None,
        &[Errno::ACCESS],
    ),
    (
        "make_sock",
        |c, when| c.make(when, FileType::Socket),
        None,
        &[Errno::ACCESS],
    ),
    (
        "make_fifo",
        |c, when| c.make(when, FileType::Fifo),
        None,
        &[Errno::ACCESS],
    ),
    ("make_sym", make_sym, None, &[Errno::ACCESS]),
    ("refer", refer, None, &[Errno::ACCESS, Errno::XDEV]),
    ("truncate", truncate, None, &[Errno::ACCESS]),
];

/// Acts that the filter alone refuses in a sandbox without namespaces.
const BARE: &[(&str, Act)] = &[("fchmodat", chmod)];

/// Acts that it refuses to the program alone, where Landlock is too old to.
const NARROWER: &[(&str, Act)] = &[("kill", call_itself), ("truncate", truncate)];

/// Rights that no act without capabilities can prove, and the scope of signals, which needs somebody outside.
pub(crate) const UNPROVABLE: &[(Layer, &str)] = &[
    (Layer::LandlockFs, "make_block"),
    (Layer::LandlockFs, "ioctl_dev"),
    (Layer::LandlockScope, "signal"),
    (Layer::Seccomp, "x32"),
    (Layer::Seccomp, "foreign architecture"),
];

/// Everything the canaries need, made while it still can be.
pub(crate) struct Canaries {
    root: OwnedFd,
    ports: Vec<OwnedFd>,
    abstract_name: SocketAddrUnix,
    listener: OwnedFd,
    callers: Vec<OwnedFd>,
    /// Somebody outside, who can be named where there is no pid namespace.
    outsider: Option<Pid>,
    bare: bool,
    narrower: Option<&'static Filter>,
    /// A port of this process's own, to connect to.
    port: u16,
    tried: Vec<Tried>,
}

impl Canaries {
    /// Fills the empty directory `root` and opens the sockets. `narrower` is what the program has besides of a filter.
    pub(crate) fn plant(
        root: OwnedFd,
        bare: bool,
        narrower: Option<&'static Filter>,
    ) -> io::Result<Self> {
        // The umask of whoever started the supervisor must not close what is meant to be open.
        let mask = rustix::process::umask(Mode::empty());
        let all = Mode::from_raw_mode(0o777);
        for directory in ["a", "b", "a/remove-dir-before", "a/remove-dir-after"] {
            rustix::fs::mkdirat(&root, directory, all)?;
        }
        for file in ["a/file", "a/remove-before", "a/remove-after"] {
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&root, file, flags, all)?;
            rustix::io::write(&file, b"boxmaker: no program\n")?;
        }
        rustix::process::umask(mask);
        let tcp = || socket(AddressFamily::INET, SocketType::STREAM, None);
        let unix = || socket(AddressFamily::UNIX, SocketType::STREAM, None);
        let ports = (0..4).map(|_| tcp()).collect::<Result<Vec<_>, _>>()?;
        let callers = (0..2).map(|_| unix()).collect::<Result<Vec<_>, _>>()?;
        let listener = unix()?;
        // Where the network is shared, with other pid namespaces too, the number alone would not do.
        let now = rustix::time::clock_gettime(ClockId::Boottime);
        let name = format!(
            "boxmaker-canary-{}-{}-{}",
            rustix::process::getpid().as_raw_pid(),
            now.tv_sec,
            now.tv_nsec
        );
        let abstract_name = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        bind(&listener, &abstract_name)?;
        listen(&listener, 2)?;
        for socket in ports.iter().chain(&callers).chain([&listener]) {
            rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::CLOEXEC)?;
        }
        Ok(Self {
            root,
            ports,
            abstract_name,
            listener,
            callers,
            outsider: rustix::process::getppid().filter(|_| bare),
            bare,
            narrower,
            port: 1,
            tried: Vec::new(),
        })
    }

    /// Lets every uid in, where the root is a directory of the launcher's: only now, so that nobody else could put anything in
    /// the way of what was made.
    pub(crate) fn open_to_all(&self) -> io::Result<()> {
        let mode = Mode::from_raw_mode(0o711);
        Ok(rustix::fs::chmodat(
            &self.root,
            ".",
            mode,
            AtFlags::empty(),
        )?)
    }

    /// Tries everything before the layers.
    pub(crate) fn before(&mut self) {
        for (what, act, ..) in FILES {
            self.note(Layer::LandlockFs, what, act(self, "before"));
        }
        self.note(Layer::LandlockNet, "bind_tcp", self.bind_tcp(0));
        // Nobody listens there, and it is nobody else's: where the network is the host's, no other would do.
        if let Some(own) = self.own_port() {
            self.port = own;
        }
        self.note(Layer::LandlockNet, "connect_tcp", self.connect_tcp(1));
        self.note(
            Layer::LandlockScope,
            "abstract_unix_socket",
            self.call_abstract(0),
        );
        self.note(Layer::Seccomp, "personality", personality());
        // With a uid of its own it may not anyway, and nothing is proven by that.
        let signalled = self.call_outside();
        if signalled.is_ok() {
            self.note(Layer::LandlockScope, "signal", signalled);
        }
        let bare = if self.bare { BARE } else { &[] };
        let narrower = self.narrower.map_or([].as_slice(), |_| NARROWER);
        for (what, act) in bare.iter().chain(narrower) {
            self.note(Layer::Seccomp, what, act(self, "before"));
        }
    }

    /// Tries what Landlock refuses, after Landlock and before the filter, which refuses some of it as well.
    pub(crate) fn after_landlock(&mut self) {
        for (what, act, before, refusals) in FILES {
            let after = act(self, "after");
            let is_before = |errno| errno == *before;
            self.judge(Layer::LandlockFs, what, after, is_before, refusals);
        }
        let none = |errno: Option<Errno>| errno.is_none();
        let (net, scope) = (Layer::LandlockNet, Layer::LandlockScope);
        let bound = self.bind_tcp(2);
        self.judge(net, "bind_tcp", bound, none, &[Errno::ACCESS]);
        let connected = self.connect_tcp(3);
        // Nobody listens there: before, the network answers, whatever it answers.
        let answered = |errno| errno != Some(Errno::ACCESS);
        self.judge(net, "connect_tcp", connected, answered, &[Errno::ACCESS]);
        let called = self.call_abstract(1);
        self.judge(scope, "abstract_unix_socket", called, none, &[Errno::PERM]);
        let signalled = self.call_outside();
        self.judge(scope, "signal", signalled, none, &[Errno::PERM]);
    }

    /// Tries what only the filter refuses, after the filter, and tells how everything came out.
    pub(crate) fn after_seccomp(&mut self) -> Vec<Tried> {
        let none = |errno: Option<Errno>| errno.is_none();
        let layer = Layer::Seccomp;
        self.judge(layer, "personality", personality(), none, &[Errno::NOSYS]);
        for (what, act) in BARE {
            let after = act(self, "after");
            self.judge(layer, what, after, none, &[Errno::PERM]);
        }
        for (what, after) in self
            .narrower
            .map_or_else(Vec::new, |filter| self.under(filter))
        {
            self.judge(layer, what, after, none, &[Errno::PERM]);
        }
        std::mem::take(&mut self.tried)
    }

    /// Every descriptor that it holds.
    pub(crate) fn held(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let sockets = self.ports.iter().chain(&self.callers);
        sockets.chain([&self.root, &self.listener]).map(AsFd::as_fd)
    }

    /// What the program's own filter answers, on a thread that has it as the program will.
    fn under(&self, filter: &Filter) -> Vec<(&'static str, Result<(), Errno>)> {
        let run = || match filter.install() {
            Ok(()) => NARROWER
                .iter()
                .map(|(what, act)| (*what, act(self, "after")))
                .collect(),
            Err(_) => Vec::new(),
        };
        // Nothing comes back from a thread that could not be had, and so nothing is proven.
        std::thread::scope(|scope| scope.spawn(run).join().unwrap_or_default())
    }

    fn note(&mut self, layer: Layer, what: &str, outcome: Result<(), Errno>) {
        let before = outcome.err().map_or(0, Errno::raw_os_error);
        let what = what.to_owned();
        self.tried.push(Tried {
            layer,
            what,
            before,
            after: 0,
            proven: false,
        });
    }

    fn judge(
        &mut self,
        layer: Layer,
        what: &str,
        outcome: Result<(), Errno>,
        before: impl Fn(Option<Errno>) -> bool,
        refusals: &[Errno],
    ) {
        let is = |tried: &&mut Tried| tried.layer == layer && tried.what == what;
        let Some(tried) = self.tried.iter_mut().find(is) else {
            return;
        };
        let first = (tried.before != 0).then(|| Errno::from_raw_os_error(tried.before));
        tried.after = outcome.err().map_or(0, Errno::raw_os_error);
        tried.proven =
            before(first) && outcome.err().is_some_and(|errno| refusals.contains(&errno));
    }

    fn make(&self, when: &str, kind: FileType) -> Result<(), Errno> {
        let name = format!("a/{}-{when}", kind.as_raw_mode());
        // A character device with number 0:0 needs no capability (mknod(2)).
        rustix::fs::mknodat(&self.root, name, kind, Mode::from_raw_mode(0o600), 0)
    }

    fn bind_tcp(&self, index: usize) -> Result<(), Errno> {
        bind(
            self.port(index)?,
            &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
        )
    }

    fn connect_tcp(&self, index: usize) -> Result<(), Errno> {
        connect(
            self.port(index)?,
            &SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port),
        )
    }

    fn own_port(&self) -> Option<u16> {
        let name = getsockname(self.port(0).ok()?).ok()?;
        Some(SocketAddrV4::try_from(name).ok()?.port()).filter(|port| *port != 0)
    }

    fn port(&self, index: usize) -> Result<&OwnedFd, Errno> {
        self.ports.get(index).ok_or(Errno::BADF)
    }

    /// Asks whether a signal may be sent to whoever is outside.
    fn call_outside(&self) -> Result<(), Errno> {
        test_kill_process(self.outsider.ok_or(Errno::SRCH)?)
    }

    fn call_abstract(&self, index: usize) -> Result<(), Errno> {
        connect(
            self.callers.get(index).ok_or(Errno::BADF)?,
            &self.abstract_name,
        )
    }
}

fn execute(canaries: &Canaries, _when: &str) -> Result<(), Errno> {
    let name = CString::new("a/file").map_err(|_| Errno::INVAL)?;
    let flags = nix::fcntl::AtFlags::empty();
    let none: &[CString] = &[];
    match nix::unistd::execveat(canaries.root.as_fd(), &name, &[&name], none, flags) {
        Ok(never) => match never {},
        Err(errno) => Err(Errno::from_raw_os_error(errno as i32)),
    }
}

fn open(canaries: &Canaries, name: &str, flags: OFlags) -> Result<(), Errno> {
    rustix::fs::openat(&canaries.root, name, flags | OFlags::CLOEXEC, Mode::empty()).map(drop)
}

fn write_file(canaries: &Canaries, _when: &str) -> Result<(), Errno> {
    open(canaries, "a/file", OFlags::WRONLY)
}

fn read_file(canaries: &Canaries, _when: &str) -> Result<(), Errno> {
    open(canaries, "a/file", OFlags::RDONLY)
}

fn read_dir(canaries: &Canaries, _when: &str) -> Result<(), Errno> {
    open(canaries, "a", OFlags::RDONLY | OFlags::DIRECTORY)
}

fn remove_dir(canaries: &Canaries, when: &str) -> Result<(), Errno> {
    rustix::fs::unlinkat(
        &canaries.root,
        format!("a/remove-dir-{when}"),
        AtFlags::REMOVEDIR,
    )
}

fn remove_file(canaries: &Canaries, when: &str) -> Result<(), Errno> {
    rustix::fs::unlinkat(&canaries.root, format!("a/remove-{when}"), AtFlags::empty())
}

fn make_dir(canaries: &Canaries, when: &str) -> Result<(), Errno> {
    rustix::fs::mkdirat(
        &canaries.root,
        format!("a/dir-{when}"),
        Mode::from_raw_mode(0o700),
    )
}

fn make_sym(canaries: &Canaries, when: &str) -> Result<(), Errno> {
    rustix::fs::symlinkat("nowhere", &canaries.root, format!("a/link-{when}"))
}

fn refer(canaries: &Canaries, when: &str) -> Result<(), Errno> {
    let (root, name) = (&canaries.root, format!("b/link-{when}"));
    rustix::fs::linkat(root, "a/file", root, name, AtFlags::empty())
}

/// By path, because a descriptor that was opened for writing carries the right with it.
fn truncate(canaries: &Canaries, _when: &str) -> Result<(), Errno> {
    let path = format!("/proc/self/fd/{}/a/file", canaries.root.as_raw_fd());
    nix::unistd::truncate(path.as_str(), 4).map_err(|errno| Errno::from_raw_os_error(errno as i32))
}

/// Of the file that was made to see whether one can be: it belongs to whoever this process is.
fn chmod(canaries: &Canaries, _when: &str) -> Result<(), Errno> {
    let name = format!("a/{}-before", FileType::RegularFile.as_raw_mode());
    let mode = Mode::from_raw_mode(0o777);
    rustix::fs::chmodat(&canaries.root, name, mode, AtFlags::empty())
}

fn call_itself(_canaries: &Canaries, _when: &str) -> Result<(), Errno> {
    test_kill_process(rustix::process::getpid())
}

/// Reads the execution domain: harmless, always allowed by the kernel, in no set of calls.
fn personality() -> Result<(), Errno> {
    nix::sys::personality::get()
        .map(drop)
        .map_err(|errno| Errno::from_raw_os_error(errno as i32))
}
