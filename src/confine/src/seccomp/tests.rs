mod bare;
mod closed;
mod equal;
mod kernel;
mod sound;

use std::sync::LazyLock;

use nix::libc;
use nix::libc::c_long;
use proptest::prelude::*;

use super::*;

const PERM: Verdict = Verdict::Errno(EPERM);
const NOSYS: Verdict = Verdict::Errno(ENOSYS);
const OK: Verdict = Verdict::Allow;

fn of(sets: &[&str]) -> &'static Filter {
    let sets: Vec<String> = sets.iter().map(|name| (*name).to_owned()).collect();
    filter(&sets).unwrap()
}

fn base() -> &'static Filter {
    of(&["base"])
}

fn serving() -> &'static Filter {
    of(&["base", "serve"])
}

fn verdict(filter: &Filter, nr: c_long, args: &[u64]) -> Verdict {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    filter.verdict(ARCH_X86_64, u32::try_from(nr).unwrap(), all)
}

#[test]
fn every_set_has_a_filter_alone_and_together() {
    for name in names() {
        assert_eq!(of(&[name]).sets, [name]);
    }
    assert_eq!(of(&names()).sets, names());
    for filter in &FILTERS {
        filter.assert_foreign().unwrap();
        let one = FILTERS.iter().filter(|other| other.sets == filter.sets);
        assert_eq!(one.count(), 1, "{:?}", filter.sets);
    }
}

#[test]
fn an_unknown_set_and_an_empty_list_are_errors() {
    let error = filter(&["base".to_owned(), "bass".to_owned()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no system call set is called \"bass\"; there are base and serve"
    );
    assert!(matches!(filter(&[]), Err(SeccompError::NoSet)));
}

#[test]
fn the_hash_is_of_the_program_and_not_of_the_order_of_sets() {
    let again = Filter::new(base().sets, base().program);
    assert_eq!(again.hash(), base().hash());
    assert_ne!(base().hash(), serving().hash());
    assert_eq!(of(&["serve", "base"]).hash(), serving().hash());
    assert_eq!(of(&["serve", "base", "serve"]).hash(), serving().hash());
    for at in 0..base().program.len() {
        let mut other = base().program.to_vec();
        other[at].k ^= 1;
        let other = Filter::new(base().sets, other.leak());
        assert_ne!(other.hash(), base().hash(), "{at}");
    }
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

/// A filter that answers the calls of one convention with another answer than to kill.
#[test]
fn a_filter_that_lets_a_foreign_convention_live_is_found() {
    let changed = |code: u16, from: u32, to: u32| {
        let mut program = base().program.to_vec();
        let is = |step: &Instruction| (step.code, step.k) == (code, from);
        let at = program.iter().position(is).unwrap();
        program[at].k = to;
        Filter::new(&["base"], program.leak()).assert_foreign()
    };
    let from = instruction::JUMP_GREATER_EQUAL;
    assert_eq!(changed(from, X32_BIT, X32_BIT), Ok(()));
    assert_eq!(
        changed(from, X32_BIT, X32_BIT + 7).unwrap_err(),
        "some x32 call is not killed but Errno(38)"
    );
    assert_eq!(
        changed(from, X32_BIT << 1, (X32_BIT << 1) - 1).unwrap_err(),
        "some x32 call is not killed but Errno(38)"
    );
    assert_eq!(
        changed(instruction::JUMP_EQUAL, ARCH_X86_64, ARCH_I386).unwrap_err(),
        "some i386 call is not killed but Errno(1)"
    );
    let kill = instruction::RETURN_KILL_PROCESS;
    assert_eq!(
        changed(instruction::RETURN, kill, instruction::RETURN_ALLOW).unwrap_err(),
        "some i386 call is not killed but Allow"
    );
}

#[test]
fn a_number_with_the_sign_bit_is_unknown_and_does_not_kill() {
    assert_eq!(base().verdict(ARCH_X86_64, u32::MAX, [0; 6]), NOSYS);
}

#[test]
fn calls_that_are_newer_than_the_sets_are_unknown_and_not_forbidden() {
    for nr in 463..2048 {
        assert_eq!(verdict(base(), nr, &[]), NOSYS, "{nr}");
    }
}

#[test]
fn serve_adds_accepting_and_nothing_that_connects() {
    let (base, serve) = (base(), serving());
    let mut added = Vec::new();
    for nr in 0..1024 {
        let (before, after) = (verdict(base, nr, &[1]), verdict(serve, nr, &[1]));
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
        assert_eq!(verdict(base, nr, refused), PERM, "{nr} {refused:x?}");
        assert_eq!(verdict(base, nr, passes), OK, "{nr} {passes:x?}");
        let masked: Vec<u64> = refused.iter().map(|value| value | high).collect();
        assert_eq!(verdict(base, nr, &masked), PERM, "{nr} {masked:x?}");
        let masked: Vec<u64> = passes.iter().map(|value| value | high).collect();
        assert_eq!(verdict(base, nr, &masked), OK, "{nr} {masked:x?}");
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
            assert_eq!(verdict(base, libc::SYS_open, &[0, only_opens, bit]), OK);
            assert_eq!(
                verdict(base, libc::SYS_openat, &[0, 0, only_opens, bit]),
                OK
            );
        }
    }

    check(libc::SYS_fcntl, &[3, 1026], &[3, 4]);
    check(libc::SYS_fcntl, &[3, 1024], &[3, 4]);
    check(libc::SYS_prlimit64, &[1, 0], &[0, 0]);
    check(libc::SYS_prlimit64, &[7, 0], &[0, 7]);
    for nr in [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setattr,
    ] {
        check(nr, &[1], &[0]);
        check(nr, &[1, 8], &[2, 8]);
    }
    for nr in [libc::SYS_setpriority, libc::SYS_ioprio_set] {
        check(nr, &[0, 1], &[0, 0]);
    }
    check(libc::SYS_setpriority, &[2, 0], &[1, 0]);
    check(libc::SYS_ioprio_set, &[3, 0], &[2, 0]);
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
    // Other flags of the kind stand above its bits.
    for flags in [0, libc::SOCK_CLOEXEC, libc::SOCK_NONBLOCK] {
        let kind = |kind: i32| u64::from((kind | flags) as u32);
        for datagrams in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            for connected in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
                check(
                    libc::SYS_socketpair,
                    &[1, kind(datagrams)],
                    &[1, kind(connected)],
                );
            }
        }
    }
}

#[test]
fn directories_cannot_be_watched() {
    let base = base();
    for nr in [
        libc::SYS_inotify_init,
        libc::SYS_inotify_init1,
        libc::SYS_inotify_add_watch,
        libc::SYS_fanotify_init,
    ] {
        assert_eq!(verdict(base, nr, &[0]), Verdict::Errno(ENOSYS), "{nr}");
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
        assert_eq!(verdict(base, nr, &[]), OK, "{nr}");
    }
}

proptest! {
    /// Joining another set never closes anything that was open, and nothing that is closed opens.
    #[test]
    fn joining_a_set_only_turns_unknown_calls_into_allowed_ones(
        nr in 0_u32..600,
        args in prop::array::uniform6(any::<u64>()),
    ) {
        let (base, serve) = (base(), serving());
        let before = base.verdict(ARCH_X86_64, nr, args);
        let after = serve.verdict(ARCH_X86_64, nr, args);
        prop_assert!(before == after || (before, after) == (NOSYS, OK));
    }
}
