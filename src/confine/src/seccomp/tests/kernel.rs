//! The filter as this kernel carries it out, on threads and programs of its own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use nix::libc;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::*;

/// Does something on a thread of its own, free or under the base set.
fn on_thread<T: Send>(confined: bool, act: impl FnOnce() -> T + Send) -> T {
    let filter = base();
    let run = || {
        if confined {
            filter.install().unwrap();
        }
        act()
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[test]
fn the_kernel_answers_enosys_to_the_canary_and_only_under_the_filter() {
    let query = || nix::sys::personality::get().map(|_| ());
    assert_eq!(on_thread(false, query), Ok(()));
    assert_eq!(on_thread(true, query), Err(nix::errno::Errno::ENOSYS));
}

#[test]
fn the_kernel_refuses_a_socket_but_not_a_pair() {
    let socket = || {
        rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)
            .map(drop)
            .err()
    };
    let pair = |family| {
        let flags = SocketFlags::CLOEXEC;
        rustix::net::socketpair(family, SocketType::STREAM, flags, None)
            .map(drop)
            .err()
    };
    assert_eq!(on_thread(false, socket), None);
    assert_eq!(on_thread(true, socket), Some(Errno::PERM));
    assert_eq!(on_thread(true, || pair(AddressFamily::UNIX)), None);
    // Without the filter the family itself refuses, with another errno.
    let inet = || pair(AddressFamily::INET);
    assert_eq!(on_thread(false, inet), Some(Errno::OPNOTSUPP));
    assert_eq!(on_thread(true, inet), Some(Errno::PERM));
}

#[test]
fn the_kernel_refuses_set_id_bits_and_leaves_other_modes_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    fs::write(&path, "").unwrap();
    let chmod = |mode| fs::set_permissions(&path, Permissions::from_mode(mode));
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
    for bad in [0o4755, 0o2755] {
        on_thread(false, || chmod(bad)).unwrap();
        assert_eq!(mode(), bad);
        on_thread(true, || chmod(0o755)).unwrap();
        assert_eq!(mode(), 0o755);
        let refused = on_thread(true, || chmod(bad)).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        assert_eq!(mode(), 0o755);
    }
}

#[test]
fn the_kernel_refuses_namespaces_and_lets_programs_and_threads_start() {
    let start = || {
        let child = std::process::Command::new("/bin/sh")
            .args(["-c", "exit 7"])
            .status();
        thread::spawn(|| 5).join().unwrap() + child.unwrap().code().unwrap()
    };
    assert_eq!(on_thread(true, start), 12);
    let unshare = || nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUTS).err();
    if nix::unistd::geteuid().is_root() {
        assert_eq!(on_thread(false, unshare), None);
    }
    assert_eq!(on_thread(true, unshare), Some(nix::errno::Errno::EPERM));
}

/// What a program prints, free or under the base set; it must succeed and say nothing else.
fn output(confined: bool, directory: &Path, words: &[&str]) -> String {
    let run = || {
        Command::new(words[0])
            .args(&words[1..])
            .current_dir(directory)
            .env("HOME", directory)
            .output()
            .unwrap()
    };
    let output = on_thread(confined, run);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{words:?}: {} {complaints}",
        output.status
    );
    assert_eq!(complaints, "", "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn ordinary_programs_do_the_same_under_the_base_set() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let python = "
import asyncio, os, select, socket, subprocess, tempfile, threading, time
print(subprocess.run(['/bin/sh', '-c', 'echo child'], capture_output=True).stdout)
found = []
threads = [threading.Thread(target=lambda: found.append(1)) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(found))
async def main():
    process = await asyncio.create_subprocess_exec('/bin/echo', 'async', stdout=-1)
    return (await process.communicate())[0]
print(asyncio.run(main()))
a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(9))
with tempfile.NamedTemporaryFile() as file:
    os.chmod(file.name, 0o600); os.utime(file.name); print(os.stat(file.name).st_mode)
time.sleep(0.001); print(select.select([], [], [], 0))
";
    let programs: &[&[&str]] = &[
        &[
            "/bin/sh",
            "-c",
            "ls -a / | sort | tail -n 1; echo $((6 * 7)); (exit 0) & wait",
        ],
        &[
            "/bin/bash",
            "-c",
            "read -r x < <(echo sub); echo $x; cat <<< here; ulimit -n; kill -0 $$",
        ],
        &["/usr/bin/git", "init", "--quiet", "repo"],
        &[
            "/usr/bin/git",
            "-C",
            "repo",
            "-c",
            "user.name=x",
            "-c",
            "user.email=x",
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            "m",
        ],
        &["/usr/bin/git", "-C", "repo", "log", "--format=%s %an"],
        &["/usr/bin/python3", "-c", python],
        &[
            "/usr/bin/perl",
            "-e",
            "print qx(echo perl), -s '/bin/sh' > 0",
        ],
    ];
    for words in programs {
        if Path::new(words[0]).exists() {
            let free = output(false, directory, words);
            assert_eq!(output(true, directory, words), free, "{words:?}");
        } else {
            println!("skipped: there is no {}", words[0]);
        }
    }
}
