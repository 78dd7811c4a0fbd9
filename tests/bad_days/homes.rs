//! The home of this suite, and how it is started, asked and refused.

use std::fs;
use std::process::Output;

use boxmaker_tests::system::{Brokerd, Home, System};
use boxmaker_tests::tools;

/// What the note holds.
pub(crate) const NOTE: &str = "beans on the south wall\n";

/// A plain user that nobody is.
pub(crate) const USER: u32 = 1_879_000_126;

/// A home of root's with the toolkit's `fs_read` for one note, and `echo`, which is a program of the host.
pub(crate) fn home() -> Home {
    furnished(Home::new(Brokerd::Real))
}

/// The same for a plain user, who starts it.
pub(crate) fn plain_home() -> Home {
    furnished(Home::of_plain_user(Brokerd::Real, USER))
}

fn furnished(home: Home) -> Home {
    home.tool("fs_read", tools::FS_READ);
    home.tool(
        "echo",
        "description = \"Answers with its arguments.\"\nkind = \"stdio\"\ncommand = [\"/usr/bin/cat\"]\n\
         profile = \"tools/base\"\n[arguments]\ntype = \"object\"\nproperties.text.type = \"string\"\n",
    );
    grant(
        &home,
        "notes",
        "fs_read",
        "constraints.paths = [\"read:@FILES@/notes\"]\n",
    );
    grant(&home, "echo", "echo", "");
    home.file("notes/a.md", NOTE);
    home
}

/// Writes a grant that also a plain user's sandbox is enough for.
pub(crate) fn grant(home: &Home, id: &str, tool: &str, rest: &str) {
    home.grant(
        id,
        &format!(
            "tool = \"{tool}\"\nmode = \"auto\"\nconfinement = \"partial\"\nmax_taint = \"secret\"\n\
             after_untrusted = \"allow\"\n{rest}"
        ),
    );
}

/// Starts it and waits until it serves.
pub(crate) fn up(home: &Home) -> System {
    let times = home.times_up();
    let mut system = home.start();
    system.wait_up(home, times);
    system
}

/// What is said by a start that is refused, with this status.
pub(crate) fn refused(home: &Home, status: i32) -> String {
    let (before, times) = (home.stderr().len(), home.times_up());
    let ended = home.start_in_vain();
    let told = home.stderr().split_off(before);
    assert_eq!(ended.code(), Some(status), "{told}");
    assert_eq!(home.times_up(), times, "{told}");
    assert!(told.starts_with("boxmaker: "), "{told}");
    told
}

/// Calls `fs_read` on the note.
pub(crate) fn read(home: &Home) -> Output {
    let path = format!("path={}", home.path("notes/a.md"));
    home.bxctl(&["call", "fs_read", &path])
}

/// Reads the note.
pub(crate) fn reads(home: &Home) {
    let output = read(home);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), NOTE);
}

/// Lets `echo` answer.
pub(crate) fn echoes(home: &Home) {
    let output = home.bxctl(&["call", "echo", "text=here"]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        output.stdout.starts_with(b"{\"text\":\"here\"}"),
        "{output:?}"
    );
}

/// What `bxctl` says to these words, which succeed.
pub(crate) fn told(home: &Home, words: &[&str]) -> String {
    let output = home.bxctl(words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The twin of what was refused: it starts, a call runs, it ends in order, and the log is sound.
pub(crate) fn serves(home: &Home) {
    let system = up(home);
    reads(home);
    assert!(system.stop().success(), "{}", home.stderr());
    home.sound();
}

/// The bytes of every file of the log, and of its anchor.
pub(crate) fn log_bytes(home: &Home) -> Vec<(String, Vec<u8>)> {
    let paths = home.paths();
    let entries = fs::read_dir(&paths.audit).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    files.push(paths.anchor);
    files.sort();
    let named = |path: std::path::PathBuf| (path.display().to_string(), fs::read(&path).unwrap());
    files.into_iter().map(named).collect()
}
