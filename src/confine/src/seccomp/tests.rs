use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use nix::libc;
use nix::libc::c_long;
use proptest::prelude::*;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::*;

const PERM: Verdict = Verdict::Errno(EPERM);
const NOSYS: Verdict = Verdict::Errno(ENOSYS);
const OK: Verdict = Verdict::Allow;

fn programs(sets: &[&str]) -> Programs {
    let sets: Vec<String> = sets.iter().map(|name| (*name).to_owned()).collect();
    compile(&sets).unwrap()
}

fn base() -> Programs {
    programs(&["base"])
}

fn verdict(programs: &Programs, nr: c_long, args: &[u64]) -> Verdict {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    programs.verdict(ARCH_X86_64, u32::try_from(nr).unwrap(), all)
}

#[test]
fn every_set_compiles_alone_and_together() {
    for name in names() {
        programs(&[name]).assert_foreign().unwrap();
    }
    programs(&names()).assert_foreign().unwrap();
}

#[test]
fn an_unknown_set_and_an_empty_list_are_errors() {
    let error = compile(&["base".to_owned(), "bass".to_owned()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no system call set is called \"bass\"; there are base and serve"
    );
    assert!(matches!(compile(&[]), Err(SeccompError::NoSet)));
}

#[test]
fn the_hash_is_of_the_programs_and_not_of_the_order_of_sets() {
    assert_eq!(base().hash(), base().hash());
    assert_ne!(base().hash(), programs(&["base", "serve"]).hash());
    assert_eq!(
        programs(&["serve", "base"]).hash(),
        programs(&["base", "serve"]).hash()
    );
}

#[test]
fn calls_by_a_foreign_convention_kill_where_the_native_call_passes() {
    let base = base();
    base.assert_foreign().unwrap();
    let read = libc::SYS_read as u32;
    assert_eq!(base.verdict(ARCH_X86_64, read, [0; 6]), OK);
    assert_eq!(base.verdict(ARCH_I386, read, [0; 6]), Verdict::Kill);
    assert_eq!(
        base.verdict(ARCH_X86_64, read | X32_BIT, [0; 6]),
        Verdict::Kill
    );
    let aarch64 = 0xc000_00b7;
    assert_eq!(base.verdict(aarch64, 63, [0; 6]), Verdict::Kill);
}

#[test]
fn without_the_x32_program_the_foreign_assertion_fails() {
    let mut weak = base();
    weak.0[0].1 = vec![interpret::give(interpret::RETURN_ALLOW)];
    assert_eq!(
        weak.assert_foreign().unwrap_err(),
        "x32 call 0x40000000 is not killed but Errno(38)"
    );
}

#[test]
fn a_number_with_the_sign_bit_is_unknown_and_does_not_kill() {
    assert_eq!(base().verdict(ARCH_X86_64, u32::MAX, [0; 6]), NOSYS);
}

#[test]
fn calls_that_are_newer_than_the_sets_are_unknown_and_not_forbidden() {
    for nr in 463..2048 {
        assert_eq!(verdict(&base(), nr, &[]), NOSYS, "{nr}");
    }
}

/// Calls that no argument opens, and what they answer.
#[test]
fn closed_calls_answer_eperm_and_unlisted_ones_enosys() {
    let closed = [
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_process_madvise,
        libc::SYS_process_mrelease,
        libc::SYS_kcmp,
        libc::SYS_pidfd_getfd,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_userfaultfd,
        libc::SYS_name_to_handle_at,
        libc::SYS_open_by_handle_at,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_kexec_file_load,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_acct,
        libc::SYS_quotactl,
        libc::SYS_quotactl_fd,
        libc::SYS_syslog,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_adjtimex,
        libc::SYS_clock_adjtime,
        libc::SYS_iopl,
        libc::SYS_ioperm,
        libc::SYS_vhangup,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        libc::SYS_socket,
    ];
    let unlisted = [
        libc::SYS_personality,
        libc::SYS_clone3,
        libc::SYS_openat2,
        libc::SYS_fchmodat2,
        libc::SYS_modify_ldt,
        libc::SYS_memfd_create,
        libc::SYS_memfd_secret,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_accept4,
        libc::SYS_shmget,
        libc::SYS_mq_open,
        libc::SYS_io_setup,
        libc::SYS_fanotify_init,
    ];
    for sets in [["base"].as_slice(), &["base", "serve"]] {
        let programs = programs(sets);
        for nr in closed {
            assert_eq!(verdict(&programs, nr, &[]), PERM, "{nr} in {sets:?}");
        }
    }
    for nr in unlisted {
        assert_eq!(verdict(&base(), nr, &[]), NOSYS, "{nr}");
    }
}

#[test]
fn serve_adds_accepting_and_nothing_that_connects() {
    let (base, serve) = (base(), programs(&["base", "serve"]));
    let mut added = Vec::new();
    for nr in 0..1024 {
        let (before, after) = (verdict(&base, nr, &[1]), verdict(&serve, nr, &[1]));
        if before != after {
            assert_eq!((before, after), (NOSYS, OK), "{nr}");
            added.push(nr);
        }
    }
    assert_eq!(
        added,
        [
            libc::SYS_accept,
            libc::SYS_listen,
            libc::SYS_accept4,
            libc::SYS_memfd_create
        ]
    );
}

/// Each refusal beside the same call without what makes it one.
#[test]
fn arguments_decide_only_where_they_must() {
    let base = base();
    let high = 0xdead_beef_0000_0000;
    let check = |nr, refused: &[u64], passes: &[u64]| {
        assert_eq!(verdict(&base, nr, refused), PERM, "{nr} {refused:x?}");
        assert_eq!(verdict(&base, nr, passes), OK, "{nr} {passes:x?}");
        let masked: Vec<u64> = refused.iter().map(|value| value | high).collect();
        assert_eq!(verdict(&base, nr, &masked), PERM, "{nr} {masked:x?}");
        let masked: Vec<u64> = passes.iter().map(|value| value | high).collect();
        assert_eq!(verdict(&base, nr, &masked), OK, "{nr} {masked:x?}");
    };

    let thread = 0x003d_0f00; // what pthread_create passes
    for flag in [
        0x80,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ] {
        let flag = u64::from(flag as u32);
        check(libc::SYS_clone, &[thread | flag], &[thread]);
        check(libc::SYS_clone, &[flag | 17], &[0x0120_0000 | 17]);
    }

    for bit in [0o4000, 0o2000, 0o6000] {
        for nr in [
            libc::SYS_chmod,
            libc::SYS_fchmod,
            libc::SYS_creat,
            libc::SYS_mkdir,
            libc::SYS_mknod,
        ] {
            check(nr, &[0, 0o755 | bit], &[0, 0o1777]);
            check(nr, &[0, 0o100_755 | bit], &[bit, 0o100_755]);
        }
        for nr in [libc::SYS_fchmodat, libc::SYS_mkdirat, libc::SYS_mknodat] {
            check(nr, &[0, 0, 0o755 | bit], &[bit, bit, 0o1777]);
        }
        let (creat, tmpfile, excl) = (
            u64::from(libc::O_CREAT as u32),
            u64::from(libc::O_TMPFILE as u32),
            u64::from(libc::O_EXCL as u32),
        );
        for makes in [creat, tmpfile, creat | excl, creat | tmpfile] {
            check(
                libc::SYS_open,
                &[0, makes | 1, bit | 0o644],
                &[0, makes | 1, 0o644],
            );
            check(
                libc::SYS_openat,
                &[0, 0, makes | 1, bit | 0o644],
                &[0, 0, makes | 1, 0o644],
            );
        }
        for only_opens in [0, 1, excl, u64::from(libc::O_DIRECTORY as u32)] {
            assert_eq!(verdict(&base, libc::SYS_open, &[0, only_opens, bit]), OK);
            assert_eq!(
                verdict(&base, libc::SYS_openat, &[0, 0, only_opens, bit]),
                OK
            );
        }
    }

    check(libc::SYS_ioctl, &[0, libc::TIOCSTI], &[0, libc::TIOCGWINSZ]);
    check(
        libc::SYS_ioctl,
        &[0, libc::TIOCLINUX],
        &[0, libc::TIOCNOTTY],
    );
    for family in [
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
        libc::AF_VSOCK,
        0,
    ] {
        check(
            libc::SYS_socketpair,
            &[u64::from(family as u32), 1],
            &[1, 1],
        );
    }
}

#[test]
fn what_the_stage_and_ordinary_programs_need_is_allowed() {
    let base = base();
    for nr in [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_close,
        libc::SYS_recvmsg,
        libc::SYS_sendmsg,
        libc::SYS_poll,
        libc::SYS_ppoll,
        libc::SYS_signalfd4,
        libc::SYS_rt_sigprocmask,
        libc::SYS_wait4,
        libc::SYS_waitid,
        libc::SYS_clone,
        libc::SYS_vfork,
        libc::SYS_execve,
        libc::SYS_exit_group,
        libc::SYS_kill,
        libc::SYS_getrusage,
        libc::SYS_openat,
        libc::SYS_newfstatat,
        libc::SYS_getdents64,
        libc::SYS_prctl,
        libc::SYS_seccomp,
        libc::SYS_pipe2,
        libc::SYS_mmap,
        libc::SYS_futex,
        libc::SYS_rseq,
        libc::SYS_set_robust_list,
        libc::SYS_getrandom,
        libc::SYS_epoll_pwait,
    ] {
        assert_eq!(verdict(&base, nr, &[]), OK, "{nr}");
    }
}

proptest! {
    /// Joining another set never closes anything that was open, and nothing that is closed opens.
    #[test]
    fn joining_a_set_only_turns_unknown_calls_into_allowed_ones(
        nr in 0_u32..600,
        args in prop::array::uniform6(any::<u64>()),
    ) {
        let (base, serve) = (base(), programs(&["base", "serve"]));
        let before = base.verdict(ARCH_X86_64, nr, args);
        let after = serve.verdict(ARCH_X86_64, nr, args);
        prop_assert!(before == after || (before, after) == (NOSYS, OK));
    }
}

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
