//! Runs a program where no namespace can be made, as under the filter of a container: `without-namespaces PROGRAM WORD…`.
//! unshare(2), setns(2) and the namespace flags of clone(2) get EPERM, clone3(2) gets ENOSYS so that clone(2) is used.

#![expect(
    clippy::unwrap_used,
    reason = "whatever cannot be set up fails the test that started it"
)]

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// Every kind of namespace that clone(2) takes a flag for.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

fn main() {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let (program, rest) = words.split_first().unwrap();
    let with_flag = |flag: libc::c_int| {
        let flag = u64::from(flag.unsigned_abs());
        let wanted = SeccompCmpOp::MaskedEq(flag);
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, wanted, flag).unwrap();
        SeccompRule::new(vec![condition]).unwrap()
    };
    let refused = BTreeMap::from([
        (libc::SYS_unshare, Vec::new()),
        (libc::SYS_setns, Vec::new()),
        (libc::SYS_clone, NAMESPACES.map(with_flag).to_vec()),
    ]);
    install(refused, libc::EPERM);
    install(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        libc::ENOSYS,
    );
    let error = Command::new(program).args(rest).exec();
    panic!("{}: {error}", program.display());
}

fn install(refused: BTreeMap<i64, Vec<SeccompRule>>, errno: libc::c_int) {
    let filter = SeccompFilter::new(
        refused,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.unsigned_abs()),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}
