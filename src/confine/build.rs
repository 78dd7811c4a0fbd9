//! Compiles the system call sets, once, when this crate is built: every way to join them is known by then, so no process
//! of boxmaker holds a compiler, and what is tested is what is installed.

#[path = "src/seccomp/compiler/mod.rs"]
mod compiler;
#[path = "src/seccomp/instruction.rs"]
mod instruction;

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/seccomp");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?);

    // Three expressions: the names of all sets, every way to narrow them, and a filter for each way to join some of them
    // and to narrow what comes of it.
    let names = compiler::names();
    fs::write(out.join("names.rs"), format!("&{names:?}"))?;
    let narrowed = compiler::narrowed().map(|names| format!("&{names:?}"));
    fs::write(
        out.join("narrowed.rs"),
        format!("&[{}]", narrowed.join(", ")),
    )?;
    let mut filters = String::from("[\n");
    for (sets, program) in compiler::compile_all()? {
        write!(filters, "Filter::new(&{sets:?}, &[")?;
        for step in program {
            let compiler::Instruction { code, jt, jf, k } = step;
            write!(filters, "Instruction::new({code}, {jt}, {jf}, {k}), ")?;
        }
        filters.push_str("]),\n");
    }
    filters.push(']');
    fs::write(out.join("filters.rs"), filters)?;
    Ok(())
}
