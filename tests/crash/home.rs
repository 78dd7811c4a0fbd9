//! The home of this suite: a tool that appends its input to a file, files whose reading taints, and a brokerd that may
//! end as often as the test wants.

use std::fs;

use boxmaker_tests::system::{Brokerd, Home, System};
use boxmaker_tests::tools;

/// Where the tool appends.
const MARKS: &str = "marks/log";

const STAYS: &str = r#"
description = "Leaves a process behind and ends only when it is killed."
kind = "stdio"
command = ["boxmaker-misbehave"]
profile = "tools/base"
[arguments]
type = "object"
required = ["acts"]
properties.acts.type = "array"
"#;

/// Who starts the supervisor, and which uids are nobody else's.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Starter {
    /// Root, with sandboxes from this uid on.
    Root(u32),
    /// This user, who is nobody else; a plain user who runs the tests is the starter instead.
    Plain(u32),
}

/// How many uids a root's home has.
const UIDS: u32 = 100;

/// Uids of this process's own, so that the suite may run twice on one host: a block for each of the tests, counted by
/// `test`.
pub(crate) fn block(test: u32) -> u32 {
    // Above those that systemd gives to containers, and below those that it keeps.
    1_880_000_000 + std::process::id() % 100_000 * 1_000 + test * UIDS
}

impl Starter {
    /// The uids that only processes of this home can have.
    pub(crate) fn uids(self) -> std::ops::Range<u32> {
        match self {
            Self::Root(first) => first..first + UIDS,
            Self::Plain(user) => user..user + 1,
        }
    }
}

/// A home whose brokerd is started again at once, however often it ends.
pub(crate) fn home(starter: Starter) -> Home {
    let (home, level) = match starter {
        Starter::Root(_) => (Home::new(Brokerd::Real), "full"),
        Starter::Plain(user) => (Home::of_plain_user(Brokerd::Real, user), "partial"),
    };
    let config = home.directory().join("config/config.toml");
    let mut text = fs::read_to_string(&config).unwrap();
    if let Starter::Root(first) = starter {
        text += &format!("uid_range = [{first}, {UIDS}]\n");
    }
    let restart = "backoff_first = \"1ms\"\nbackoff_max = \"2ms\"\ngive_up = 100000\n";
    // Stages wait as they do by default: they are what a crash can leave.
    let text = text.replace("pool.\"tools/*\" = 0", "pool.\"tools/*\" = 2");
    home.configure("config.toml", &format!("{text}[restart]\n{restart}"));

    home.tool("token", tools::MARK);
    home.tool("stays", STAYS);
    home.tool("fs_read", tools::FS_READ);
    let grant = |id: &str, tool: &str, rest: &str, paths: &str| {
        home.grant(
            id,
            &format!(
                "tool = \"{tool}\"\nmode = \"auto\"\nconfinement = \"{level}\"\n{rest}{paths}\n"
            ),
        );
    };
    let read = |below: &str| format!("constraints.paths = [\"read:@FILES@/{below}\"]");
    let clean = "untrusted = false\n";
    let any = "max_taint = \"secret\"\n";
    let effect = "after_untrusted = \"allow\"\n";
    let marks = "constraints.paths = [\"write:@FILES@/marks\"]";
    grant("token", "token", &format!("{any}{clean}{effect}"), marks);
    grant("stays", "stays", &format!("{any}{clean}{effect}"), "");
    let notes = format!("max_taint = \"private\"\n{clean}");
    grant("notes", "fs_read", &notes, &read("notes"));
    let vault = format!("{any}{clean}result_class = \"secret\"\n");
    grant("vault", "fs_read", &vault, &read("vault"));
    grant("mail", "fs_read", any, &read("mail"));

    home.file("notes/a.md", "beans\n");
    home.file("vault/a.md", "7391\n");
    home.file("mail/a.md", "do as I say\n");
    home.file(MARKS, "");
    home
}

/// A system that serves.
pub(crate) fn up(home: &Home) -> System {
    let times = home.times_up();
    let mut system = home.start();
    system.wait_up(home, times);
    system
}

/// What the tool has appended, each as the arguments that it got.
pub(crate) fn marks(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.path(MARKS)).unwrap();
    let whole = |part: &str| format!("{part}}}");
    assert!(text.is_empty() || text.ends_with('}'), "{text:?}");
    text.split_terminator('}').map(whole).collect()
}
