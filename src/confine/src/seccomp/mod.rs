//! The system call filter. Sets of calls, kept as data, are joined and compiled to one program for each way to join them
//! while this crate is built (`compiler/`); here a program is found by the names of its sets, vouched for and installed.
//!
//! A closed call is EPERM, whatever allows it; a call that no set allows is ENOSYS, so that libraries fall back to older
//! calls; x32 calls and those of foreign architectures kill. Knows nothing of profiles and nothing of the rest of the
//! stage.

#[cfg(test)]
mod compiler;
mod instruction;
mod interpret;
mod reach;
#[cfg(any(test, feature = "reference"))]
pub mod reference;

use std::sync::OnceLock;

use proto::Hash32;
use sha2::{Digest, Sha256};

use instruction::Instruction;

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "the system call sets name the calls of x86_64; other architectures are not supported yet"
);

/// `AUDIT_ARCH_X86_64` of `linux/audit.h`: the architecture whose calls are judged by number.
pub const ARCH_X86_64: u32 = instruction::ARCH_X86_64;
/// `AUDIT_ARCH_I386`: what `int 0x80` and 32-bit programs use.
pub const ARCH_I386: u32 = 0x4000_0003;
/// The bit that marks x32 calls, which have the architecture of x86_64.
pub const X32_BIT: u32 = instruction::X32_BIT;

/// "operation not permitted": the call is closed.
pub const EPERM: u16 = instruction::EPERM;
/// "function not implemented": no set allows the call.
pub const ENOSYS: u16 = instruction::ENOSYS;

/// Every name that a profile's `seccomp` may hold.
const NAMES: &[&str] = include!(concat!(env!("OUT_DIR"), "/names.rs"));

/// Every way to narrow them where a sandbox has no namespaces, by the names of the sets that do.
const NARROWED: &[&[&str]] = include!(concat!(env!("OUT_DIR"), "/narrowed.rs"));

/// The filter of each way to join the sets and to narrow what comes of it; there are `2^NAMES - 1` ways to join them.
static FILTERS: [Filter; ((1 << NAMES.len()) - 1) * NARROWED.len()] =
    include!(concat!(env!("OUT_DIR"), "/filters.rs"));

/// What closes, besides, the calls that no namespace and no rule of Landlock holds back. No profile names it.
pub(crate) const BARE: &str = "bare";
/// What closes, with [`BARE`], changing the mode of what is held open.
pub(crate) const BARE_FIXED: &str = "bare-fixed";
/// What closes, with [`BARE`], what a Landlock before ABI 6 leaves open. The stage, which has to send signals, does
/// without it.
pub(crate) const BARE_OLD: &str = "bare-old";

/// What a filter does to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The kernel carries it out, as far as it is concerned.
    Allow,
    /// It returns this errno and does nothing.
    Errno(u16),
    /// The process dies by SIGSYS.
    Kill,
}

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
pub enum SeccompError {
    /// No set that allows anything; nothing could run under it.
    #[error("no system call set is named")]
    NoSet,
    /// A name that is not one of [`names`].
    #[error("no system call set is called {0:?}; there are {known}", known = names().join(" and "))]
    UnknownSet(String),
    /// The kernel did not take the program.
    #[error("cannot install the system call filter")]
    Install(#[source] seccompiler::Error),
}

/// Every name that a profile's `seccomp` may hold.
#[must_use]
pub fn names() -> Vec<&'static str> {
    NAMES.to_vec()
}

/// The filter of the sets of these names together, in any order, with what is always closed. Costs nothing but the
/// search for it. Besides what a profile may name there are the sets that narrow it where a sandbox has no namespaces.
///
/// # Errors
/// [`SeccompError::NoSet`] and [`SeccompError::UnknownSet`].
pub fn filter(sets: &[String]) -> Result<&'static Filter, SeccompError> {
    let known = || NAMES.iter().chain(NARROWED.iter().copied().flatten());
    if let Some(unknown) = sets.iter().find(|set| !known().any(|name| name == set)) {
        return Err(SeccompError::UnknownSet(unknown.clone()));
    }
    let named = |name: &str| sets.iter().any(|set| set == name);
    FILTERS
        .iter()
        .find(|filter| known().all(|name| named(name) == filter.sets.contains(name)))
        .ok_or(SeccompError::NoSet)
}

/// The sets of the stage itself, if the program's are narrower than a stage can work with.
#[must_use]
pub(crate) fn of_stage(sets: &[String]) -> Option<Vec<String>> {
    let rest = sets.iter().filter(|set| *set != BARE_OLD).cloned();
    sets.iter()
        .any(|set| set == BARE_OLD)
        .then(|| rest.collect())
}

/// One program for the kernel.
#[derive(Debug)]
pub struct Filter {
    sets: &'static [&'static str],
    program: &'static [Instruction],
    hash: OnceLock<Hash32>,
}

impl Filter {
    const fn new(sets: &'static [&'static str], program: &'static [Instruction]) -> Self {
        let hash = OnceLock::new();
        Self {
            sets,
            program,
            hash,
        }
    }

    /// SHA-256 of the program: the number of instructions as 32 bits, then each instruction's code, jumps and constant,
    /// all little endian. Computed once in a process.
    #[must_use]
    pub fn hash(&self) -> Hash32 {
        *self.hash.get_or_init(|| {
            let mut hash = Sha256::new();
            hash.update((self.program.len() as u32).to_le_bytes());
            for step in self.program {
                hash.update(step.code.to_le_bytes());
                hash.update([step.jt, step.jf]);
                hash.update(step.k.to_le_bytes());
            }
            Hash32::new(hash.finalize().into())
        })
    }

    /// The program as the kernel takes it, `struct sock_filter` after `struct sock_filter` in this machine's byte order,
    /// for programs that load filters from a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = |step: &Instruction| {
            let mut bytes = step.code.to_ne_bytes().to_vec();
            bytes.extend([step.jt, step.jf]);
            bytes.extend(step.k.to_ne_bytes());
            bytes
        };
        self.program.iter().flat_map(bytes).collect()
    }

    /// Installs the program on the calling thread, for good; sets its no_new_privs bit, which the kernel demands.
    /// Threads and programs that it starts inherit it, threads that run already do not.
    ///
    /// # Errors
    /// [`SeccompError::Install`].
    pub fn install(&self) -> Result<(), SeccompError> {
        seccompiler::apply_filter(&self.program()).map_err(SeccompError::Install)
    }

    /// What the program does to a call, by interpreting it.
    #[must_use]
    pub fn verdict(&self, arch: u32, nr: u32, args: [u64; 6]) -> Verdict {
        verdict(interpret::run(self.program, &interpret::Call { arch, nr, args }).0)
    }

    /// How many instructions the program takes to judge a call of this architecture's own.
    #[cfg(any(test, feature = "reference"))]
    #[must_use]
    pub fn steps(&self, nr: u32, args: [u64; 6]) -> usize {
        let arch = ARCH_X86_64;
        interpret::run(self.program, &interpret::Call { arch, nr, args }).1
    }

    /// The program as [`seccompiler::apply_filter`] takes it.
    #[must_use]
    pub fn program(&self) -> Vec<seccompiler::sock_filter> {
        installable(self.program)
    }

    /// Whether every call by a foreign convention kills, whatever its number and arguments: those of every architecture
    /// but x86-64, and x32 ones, which this kernel may not have.
    ///
    /// # Errors
    /// What else such a call may be answered, in words.
    pub fn assert_foreign(&self) -> Result<(), String> {
        let every = 0..=u32::MAX;
        let foreign = [
            ("i386", ARCH_I386..=ARCH_I386, every.clone()),
            ("foreign", 0..=ARCH_X86_64 - 1, every.clone()),
            ("foreign", ARCH_X86_64 + 1..=u32::MAX, every),
            (
                "x32",
                ARCH_X86_64..=ARCH_X86_64,
                X32_BIT..=(X32_BIT << 1) - 1,
            ),
        ];
        for (kind, arch, nr) in foreign {
            for answer in reach::answers(self.program, arch, nr) {
                if answer != instruction::RETURN_KILL_PROCESS {
                    let verdict = verdict(answer);
                    return Err(format!("some {kind} call is not killed but {verdict:?}"));
                }
            }
        }
        Ok(())
    }
}

fn installable(program: &[Instruction]) -> Vec<seccompiler::sock_filter> {
    let step = |&Instruction { code, jt, jf, k }: &Instruction| seccompiler::sock_filter {
        code,
        jt,
        jf,
        k,
    };
    program.iter().map(step).collect()
}

fn verdict(answer: u32) -> Verdict {
    match answer & 0xffff_0000 {
        instruction::RETURN_ALLOW => Verdict::Allow,
        instruction::RETURN_ERRNO => Verdict::Errno((answer & 0xffff) as u16),
        _ => Verdict::Kill,
    }
}

#[cfg(test)]
mod tests;
