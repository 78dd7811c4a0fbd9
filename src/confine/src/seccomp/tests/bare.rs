//! What is closed besides in a sandbox without namespaces: each refusal beside the same call without it, or without
//! what makes it one.

use super::*;

fn bare() -> &'static Filter {
    of(&["base", "bare"])
}

fn closed_by(narrowed: &Filter, wider: &Filter, nr: c_long, args: &[u64]) {
    assert_eq!(verdict(wider, nr, args), OK, "{nr} {args:x?}");
    assert_eq!(verdict(narrowed, nr, args), PERM, "{nr} {args:x?}");
}

#[test]
fn what_changes_the_users_files_by_path_is_closed() {
    for nr in [
        libc::SYS_chmod,
        libc::SYS_fchmodat,
        libc::SYS_chown,
        libc::SYS_lchown,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_utime,
        libc::SYS_utimes,
        libc::SYS_futimesat,
        libc::SYS_utimensat,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
    ] {
        closed_by(bare(), base(), nr, &[]);
    }
    let fixed = of(&["base", "bare", "bare-fixed"]);
    closed_by(fixed, bare(), libc::SYS_fchmod, &[3, 0o644]);
}

#[test]
fn what_reaches_the_users_other_processes_is_closed() {
    for nr in [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setattr,
    ] {
        closed_by(bare(), base(), nr, &[4711]);
        assert_eq!(verdict(bare(), nr, &[0]), OK);
    }
    for (nr, which) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        closed_by(bare(), base(), nr, &[which, 4711]);
        closed_by(bare(), base(), nr, &[which + 1, 0]);
        assert_eq!(verdict(bare(), nr, &[which, 0]), OK);
    }
    let old = of(&["base", "bare", "bare-old"]);
    for nr in [
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_tgkill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_pidfd_send_signal,
    ] {
        closed_by(old, bare(), nr, &[]);
    }
    for owner in [8, 15] {
        closed_by(old, bare(), libc::SYS_fcntl, &[3, owner]);
    }
    assert_eq!(verdict(old, libc::SYS_fcntl, &[3, 4]), OK);
}

#[test]
fn what_an_old_landlock_lets_be_emptied_is_closed() {
    let old = of(&["base", "bare", "bare-old"]);
    let [truncates, writes, creates] =
        [libc::O_TRUNC, libc::O_WRONLY, libc::O_CREAT].map(|flag| flag as u64);
    closed_by(old, bare(), libc::SYS_truncate, &[]);
    closed_by(old, bare(), libc::SYS_open, &[0, truncates]);
    closed_by(
        old,
        bare(),
        libc::SYS_openat,
        &[0, 0, truncates | creates, 0o644],
    );
    for passes in [0, writes, writes | truncates, 2 | truncates] {
        assert_eq!(verdict(old, libc::SYS_open, &[0, passes]), OK);
        assert_eq!(verdict(old, libc::SYS_openat, &[0, 0, passes]), OK);
    }
    assert_eq!(verdict(old, libc::SYS_ftruncate, &[]), OK);
}

#[test]
fn drivers_and_the_mark_are_closed() {
    let sets_flags = 0x4008_6602;
    closed_by(bare(), base(), libc::SYS_ioctl, &[3, sets_flags]);
    for asks in [libc::TCGETS, libc::FIOCLEX, libc::FIONBIO, libc::FIONREAD] {
        assert_eq!(verdict(bare(), libc::SYS_ioctl, &[3, asks]), OK);
    }
    let mark = u64::from(libc::RLIMIT_RTTIME);
    closed_by(bare(), base(), libc::SYS_setrlimit, &[mark]);
    closed_by(bare(), base(), libc::SYS_prlimit64, &[0, mark]);
    assert_eq!(verdict(bare(), libc::SYS_prlimit64, &[0, 7]), OK);
}

#[test]
fn what_narrows_is_no_set_by_itself_and_none_for_profiles() {
    for name in [BARE, BARE_FIXED, BARE_OLD] {
        assert!(!names().contains(&name));
        assert!(matches!(
            filter(&[name.to_owned()]),
            Err(SeccompError::NoSet)
        ));
    }
}

proptest! {
    #[test]
    fn narrowing_only_closes(nr in 0_u32..600, args in prop::array::uniform6(any::<u64>())) {
        for sets in NARROWED {
            for wider in [["base"].as_slice(), &["base", "serve"]] {
                let before = of(wider).verdict(ARCH_X86_64, nr, args);
                let after = of(&[wider, sets].concat()).verdict(ARCH_X86_64, nr, args);
                prop_assert!(before == after || after == PERM);
            }
        }
    }
}
