//! The few instructions of classic BPF that a filter of ours consists of, and what it may answer. Used while this crate
//! is built, when they are put together, and in it, where they are interpreted and installed.

/// `struct sock_filter` of `linux/filter.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u16,
    /// Instructions to skip if a comparison holds.
    pub(super) jt: u8,
    /// Instructions to skip if it does not.
    pub(super) jf: u8,
    pub(super) k: u32,
}

impl Instruction {
    pub(super) const fn new(code: u16, jt: u8, jf: u8, k: u32) -> Self {
        Self { code, jt, jf, k }
    }
}

/// The codes, as `linux/bpf_common.h` puts them together. Loads read a word of `struct seccomp_data` at offset `k`.
pub(super) const LOAD_WORD: u16 = 0x20;
pub(super) const JUMP: u16 = 0x05;
pub(super) const JUMP_EQUAL: u16 = 0x15;
pub(super) const JUMP_GREATER_EQUAL: u16 = 0x35;
pub(super) const JUMP_ANY_BIT: u16 = 0x45;
pub(super) const RETURN: u16 = 0x06;

/// Where `struct seccomp_data` has the number of the call, its architecture, and the first of six arguments of 64 bits.
pub(super) const NR: u32 = 0;
pub(super) const ARCH: u32 = 4;
pub(super) const ARGUMENTS: u32 = 16;

/// What a program may return (`linux/seccomp.h`); errnos stand in the lower half of [`RETURN_ERRNO`].
pub(super) const RETURN_KILL_PROCESS: u32 = 0x8000_0000;
pub(super) const RETURN_ERRNO: u32 = 0x0005_0000;
pub(super) const RETURN_ALLOW: u32 = 0x7fff_0000;

/// "operation not permitted": the call is closed.
pub(super) const EPERM: u16 = 1;
/// "function not implemented": no set allows the call.
pub(super) const ENOSYS: u16 = 38;

/// `AUDIT_ARCH_X86_64` of `linux/audit.h`: the architecture whose calls are judged by number.
pub(super) const ARCH_X86_64: u32 = 0xc000_003e;
/// The bit that marks x32 calls, which have the architecture of x86_64.
pub(super) const X32_BIT: u32 = 0x4000_0000;
