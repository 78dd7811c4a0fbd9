//! The program `boxmaker`; everything is in the library.

fn main() -> std::process::ExitCode {
    supervisor::cli::main()
}
