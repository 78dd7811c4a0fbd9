//! The home of these suites: which tools there are, and what the owner grants.

use boxmaker_tests::system::{Brokerd, Home};
use boxmaker_tests::tools;

/// What the vault holds.
pub(crate) const CODE: &str = "7391-QUIET-HARBOUR\n";
/// What the notes hold.
pub(crate) const NOTE: &str = "beans on the south wall\n";

/// A home with the toolkit's files tools, `echo` that answers with its standard input, `act` that does what it is told,
/// `touch` whose first act is the file `marks/touched`, and `asked` that needs an answer.
pub(crate) fn home(brokerd: Brokerd) -> Home {
    let home = Home::new(brokerd);
    home.tool("fs_read", tools::FS_READ);
    home.tool(
        "fs_write",
        include_str!("../../profiles/examples/tools/fs_write.toml"),
    );
    let stdio = |command: &str, properties: &str| {
        format!(
            "description = \"For a test.\"\nkind = \"stdio\"\ncommand = {command}\nprofile = \"tools/base\"\n\
             [arguments]\ntype = \"object\"\n{properties}"
        )
    };
    let text = "required = [\"text\"]\nproperties.text.type = \"string\"\n";
    let acts = "required = [\"acts\"]\nproperties.acts.type = \"array\"\nproperties.ms.type = \"integer\"\n\
                properties.token.type = \"string\"\n";
    home.tool("echo", &stdio("[\"/usr/bin/cat\"]", text));
    home.tool("asked", &stdio("[\"/usr/bin/cat\"]", text));
    home.tool("act", &stdio("[\"boxmaker-misbehave\"]", acts));
    let touch = "[\"boxmaker-misbehave\", \"--touch\", \"@FILES@/marks/touched\"]";
    home.tool("touch", &stdio(touch, acts));

    let grant = |id: &str, tool: &str, rest: &str| {
        home.grant(id, &format!("tool = \"{tool}\"\nmode = \"auto\"\n{rest}"));
    };
    let any = "max_taint = \"secret\"\nafter_untrusted = \"allow\"\n";
    let private = "max_taint = \"private\"\nuntrusted = false\n";
    let paths = |paths: &str| format!("[constraints]\npaths = [{paths}]\n");
    grant(
        "notes",
        "fs_read",
        &format!("{private}{}", paths("\"read:@FILES@/notes\"")),
    );
    grant(
        "old",
        "fs_read",
        &format!(
            "{private}expires = \"2020-01-01T00:00:00.000Z\"\n{}",
            paths("\"read:@FILES@/notes\"")
        ),
    );
    grant(
        "vault",
        "fs_read",
        &format!(
            "max_taint = \"secret\"\nresult_class = \"secret\"\n{}",
            paths("\"read:@FILES@/vault\"")
        ),
    );
    grant(
        "out",
        "fs_write",
        &format!("{any}{}", paths("\"write:@FILES@/out\"")),
    );
    grant(
        "touch",
        "touch",
        &format!("{any}{}", paths("\"write:@FILES@/marks\"")),
    );
    grant("echo", "echo", any);
    grant("act", "act", &format!("{any}result_class = \"secret\"\n"));
    let closed = paths("\"read:@FILES@/notes/closed\"");
    home.grant(
        "closed",
        &format!("tool = \"fs_read\"\nmode = \"deny\"\n{closed}"),
    );
    home.grant("asked", &format!("tool = \"asked\"\nmode = \"ask\"\n{any}"));

    home.file("notes/a.md", NOTE);
    home.file("notes/closed/b.md", "closed\n");
    home.file("notes2/a.md", "not granted\n");
    home.file("vault/code.txt", CODE);
    home.folder("out");
    home.folder("marks");
    home
}
