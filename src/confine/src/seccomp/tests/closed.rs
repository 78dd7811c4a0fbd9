//! Calls that no argument opens.

use super::*;

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
        let filter = of(sets);
        for nr in closed {
            assert_eq!(verdict(filter, nr, &[]), PERM, "{nr} in {sets:?}");
        }
    }
    for nr in unlisted {
        assert_eq!(verdict(base(), nr, &[]), NOSYS, "{nr}");
    }
}
