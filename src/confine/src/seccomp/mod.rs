//! The system call filter: sets of calls, kept as data, become three small programs that are stacked.
//!
//! Installed in this order, because each must let the next be installed and because among equal answers the kernel
//! takes the last one's: (1) x32 calls kill; (2) calls that the sets allow pass, others are ENOSYS, so that libraries
//! fall back to older calls; (3) closed calls are EPERM, whatever (2) says. Foreign architectures are killed by (2) and
//! (3). Knows nothing of profiles and nothing of the rest of the stage.

mod interpret;
mod sets;

use proto::Hash32;
use seccompiler::{BpfProgram, TargetArch};
use sha2::{Digest, Sha256};

pub use sets::names;

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "the system call sets name the calls of x86_64; other architectures are not supported yet"
);

/// `AUDIT_ARCH_X86_64` of `linux/audit.h`: the architecture whose calls are judged by number.
pub const ARCH_X86_64: u32 = 0xc000_003e;
/// `AUDIT_ARCH_I386`: what `int 0x80` and 32-bit programs use.
pub const ARCH_I386: u32 = 0x4000_0003;
/// The bit that marks x32 calls, which have the architecture of x86_64.
pub const X32_BIT: u32 = 0x4000_0000;

/// "operation not permitted": the call is closed.
pub const EPERM: u16 = 1;
/// "function not implemented": no set allows the call.
pub const ENOSYS: u16 = 38;

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
    /// An empty list of sets; nothing could run under it.
    #[error("no system call set is named")]
    NoSet,
    /// A name that is not one of [`names`].
    #[error("no system call set is called {0:?}; there are {known}", known = names().join(" and "))]
    UnknownSet(String),
    /// A set that cannot be read; the sets are part of the program, so this is a bug.
    #[error("system call set {name:?} cannot be read")]
    Data {
        /// The set.
        name: &'static str,
        /// What is wrong with its text.
        source: serde_json::Error,
    },
    /// The sets cannot be made into programs, for example because of a call's name.
    #[error("the system call sets cannot be compiled")]
    Compile(#[source] seccompiler::Error),
    /// A program that the interpreter cannot vouch for.
    #[error("the {program} program of the system call filter is unsound: {reason}")]
    Unsound {
        /// Which one.
        program: &'static str,
        /// What it does.
        reason: String,
    },
    /// The kernel did not take a program.
    #[error("cannot install the {program} program of the system call filter")]
    Install {
        /// Which one.
        program: &'static str,
        /// What the kernel said.
        source: seccompiler::Error,
    },
}

/// The compiled programs of one filter, in the order in which they are installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs([(&'static str, BpfProgram); 3]);

/// Compiles the sets of these names, with what is always closed.
///
/// # Errors
/// [`SeccompError::NoSet`] and [`SeccompError::UnknownSet`] for the names; anything else is a bug in the sets.
pub fn compile(sets: &[String]) -> Result<Programs, SeccompError> {
    let filters = sets::Joined::read(sets)?.to_filters().to_string();
    let mut compiled = seccompiler::compile_from_json(filters.as_bytes(), TargetArch::x86_64)
        .map_err(SeccompError::Compile)?;
    let mut take = |name| compiled.remove(name).unwrap_or_default();
    let programs = [
        ("x32", x32_killer()),
        ("allow", take("allow")),
        ("refuse", take("refuse")),
    ];
    for (program, instructions) in &programs {
        interpret::check(instructions)
            .map_err(|reason| SeccompError::Unsound { program, reason })?;
    }
    Ok(Programs(programs))
}

/// Kills calls with the x32 bit: seccompiler looks at the architecture only, which x32 shares. Numbers with the sign
/// bit are no calls of either kind and go on to become ENOSYS.
fn x32_killer() -> BpfProgram {
    use interpret::{RETURN_ALLOW, RETURN_KILL_PROCESS};
    vec![
        interpret::load_arch(),
        interpret::jump_equal(ARCH_X86_64, 0, 3),
        interpret::load_nr(),
        interpret::jump_at_least(X32_BIT << 1, 2, 0),
        interpret::jump_at_least(X32_BIT, 0, 1),
        interpret::give(RETURN_KILL_PROCESS),
        interpret::give(RETURN_ALLOW),
    ]
}

impl Programs {
    /// SHA-256 over all programs in order: the number of instructions as 32 bits, then each instruction's code, jumps
    /// and constant, all little endian.
    #[must_use]
    pub fn hash(&self) -> Hash32 {
        let mut hash = Sha256::new();
        for (_, program) in &self.0 {
            hash.update((program.len() as u32).to_le_bytes());
            for step in program {
                hash.update(step.code.to_le_bytes());
                hash.update([step.jt, step.jf]);
                hash.update(step.k.to_le_bytes());
            }
        }
        Hash32::new(hash.finalize().into())
    }

    /// Each program as the kernel takes it, `struct sock_filter` after `struct sock_filter` in this machine's byte
    /// order, for programs that load filters from a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<Vec<u8>> {
        let bytes = |program: &BpfProgram| {
            let step = |step: &seccompiler::sock_filter| {
                let mut bytes = step.code.to_ne_bytes().to_vec();
                bytes.extend([step.jt, step.jf]);
                bytes.extend(step.k.to_ne_bytes());
                bytes
            };
            program.iter().flat_map(step).collect()
        };
        self.0.iter().map(|(_, program)| bytes(program)).collect()
    }

    /// Installs all programs on the calling thread, for good; sets its no_new_privs bit, which the kernel demands.
    /// Threads and programs that it starts inherit them, threads that run already do not.
    ///
    /// # Errors
    /// [`SeccompError::Install`]; the programs before the one it names stay.
    pub fn install(&self) -> Result<(), SeccompError> {
        for (program, instructions) in &self.0 {
            seccompiler::apply_filter(instructions)
                .map_err(|source| SeccompError::Install { program, source })?;
        }
        Ok(())
    }

    /// What the stacked programs do to a call, by interpreting them.
    #[must_use]
    pub fn verdict(&self, arch: u32, nr: u32, args: [u64; 6]) -> Verdict {
        let call = interpret::Call { arch, nr, args };
        let programs = self.0.iter().map(|(_, program)| program.as_slice());
        let answer = interpret::run_stacked(programs, &call);
        match answer & 0xffff_0000 {
            interpret::RETURN_ALLOW => Verdict::Allow,
            interpret::RETURN_ERRNO => Verdict::Errno((answer & 0xffff) as u16),
            _ => Verdict::Kill,
        }
    }

    /// Whether every call by a foreign convention kills: 32-bit calls, and x32 ones, which this kernel may not have.
    ///
    /// # Errors
    /// The first call that does not, in words.
    pub fn assert_foreign(&self) -> Result<(), String> {
        // Nothing is stricter than killing, so the first program that does it settles a call. The stage asks this at
        // every launch, and to interpret the rest of the programs each time took it milliseconds.
        let kills = |arch, nr| {
            let args = [0; 6];
            let call = interpret::Call { arch, nr, args };
            let answers = |(_, program): &(_, BpfProgram)| interpret::run(program, &call);
            self.0
                .iter()
                .any(|program| answers(program) == interpret::RETURN_KILL_PROCESS)
        };
        let beyond = [0x3fff_ffff, 0x1000, 0xffff];
        for nr in (0..1024).chain(beyond) {
            for (kind, arch, nr) in [("i386", ARCH_I386, nr), ("x32", ARCH_X86_64, nr | X32_BIT)] {
                if !kills(arch, nr) {
                    let verdict = self.verdict(arch, nr, [0; 6]);
                    return Err(format!("{kind} call {nr:#x} is not killed but {verdict:?}"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
