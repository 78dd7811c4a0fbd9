//! What the owner reads, word for word: a mistake is told with its file, its line, the thing, the rule and the way out,
//! and the mistakes of every other file with it.

use super::*;

const HEAD: &str = "tool = \"read\"\nmode = \"auto\"\nmax_taint = \"private\"\n";

/// What is told of `text` as `file`, beside the four tools.
#[track_caller]
fn told(file: &str, text: &[u8], want: &[&str]) {
    let mut all = files(&[
        ("tools/read", READ),
        ("tools/copy", COPY),
        ("tools/edit", EDIT),
        ("tools/log", LOG),
    ]);
    all.insert(file.to_owned(), text.to_vec());
    let got = match Policy::load(&all, 1) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    };
    let text = String::from_utf8_lossy(text);
    assert_eq!(got, want, "{text}");
}

#[test]
fn each_kind_of_mistake_in_a_grant_is_told_in_full() {
    let in_use = "the keys here are tool, mode, max_taint, result_class, untrusted, expires, after_untrusted, confinement, as, constraints";
    for (text, want) in [
        (
            "color = 1\n".to_owned(),
            format!("grants/g.toml:4: unknown key `color`; remove it; {in_use}"),
        ),
        (
            "expire = \"2030-01-01T00:00:00.000Z\"\n".to_owned(),
            format!("grants/g.toml:4: unknown key `expire`; did you mean `expires`? {in_use}"),
        ),
        (
            "confinement = \"ful\"\n".to_owned(),
            "grants/g.toml:4: `confinement`: unknown value `ful`, expected one of `none`, `partial`, `full`; write \"full\" or \"partial\"".to_owned(),
        ),
        (
            "untrusted = \"no\"\n".to_owned(),
            "grants/g.toml:4: `untrusted`: invalid type: string \"no\", expected true or false; write true or false".to_owned(),
        ),
        (
            "untrusted = no\n".to_owned(),
            "grants/g.toml:4: not TOML: no is no value; write true or false, in small letters".to_owned(),
        ),
        (
            "as = \u{201c}ann\u{201d}\n".to_owned(),
            "grants/g.toml:4: not TOML: the text \u{201c}ann\u{201d} does not stand in straight quotes; write \"ann\"".to_owned(),
        ),
        (
            "as =\n".to_owned(),
            "grants/g.toml:4: not TOML: there is no value; write one after the `=`, or remove the line".to_owned(),
        ),
        (
            "as \"ann\"\n".to_owned(),
            "grants/g.toml:4: not TOML: the line has no `=`; write KEY = VALUE".to_owned(),
        ),
        (
            "mode = \"deny\"\n".to_owned(),
            "grants/g.toml:4: not TOML: `mode` stands twice in one table; keep one of the two".to_owned(),
        ),
        (
            "max_calls = 3\n".to_owned(),
            "grants/g.toml:4: `max_calls` is known to the format but not enforced by this version, so it cannot be stated yet; remove it, or state `expires`: calls are not counted in this version".to_owned(),
        ),
        (
            "approve_from = [\"bxctl\"]\n".to_owned(),
            "grants/g.toml:4: `approve_from` is known to the format but not enforced by this version, so it cannot be stated yet; remove it: bxctl is the only one that answers in this version".to_owned(),
        ),
        (
            "timeout = \"3s\"\n".to_owned(),
            "grants/g.toml:4: `timeout` is a key of a tool, tools/<name>.toml, not of a grant, grants/<id>.toml; remove it, or write it in a tool, tools/<name>.toml".to_owned(),
        ),
        (
            "paths = [\"read:/a\"]\n".to_owned(),
            "grants/g.toml:4: `paths` belongs in [constraints]; write it below a line [constraints], or as `constraints.paths`".to_owned(),
        ),
    ] {
        told("grants/g.toml", format!("{HEAD}{text}").as_bytes(), &[&want]);
    }
    told(
        "grants/g.toml",
        b"tool = \"reed\"\nmode = \"auto\"\nmax_taint = \"private\"\n",
        &[
            "grants/g.toml:1: there is no file tools/reed.toml; did you mean `read`? otherwise write the tool file first",
        ],
    );
    told(
        "grants/g.toml",
        b"tool = \"read\"\nmode = \"\xff\"\n",
        &["grants/g.toml:2: the file is not UTF-8; save it as UTF-8"],
    );
}

#[test]
fn a_key_that_slipped_below_a_header_is_told_where_it_belongs() {
    let above = "move the line up, above the first line that begins with `[`: there it is a key of a grant, grants/<id>.toml";
    let low = |line: &str| format!("{HEAD}[constraints]\npaths = [\"read:/a\"]\n{line}\n");
    for (text, want) in [
        (
            low("confinement = \"full\""),
            format!(
                "grants/g.toml:6: `confinement` stands below [constraints] and belongs above it; {above}"
            ),
        ),
        (
            low("expires = \"2030-01-01T00:00:00.000Z\""),
            format!(
                "grants/g.toml:6: `expires` stands below [constraints] and belongs above it; {above}"
            ),
        ),
        (
            low("max_calls = 3"),
            "grants/g.toml:6: `constraints.max_calls` is known to the format but not enforced by this version, so it cannot be stated yet; remove it, or state `expires`: calls are not counted in this version".to_owned(),
        ),
        (
            low("confinment = \"full\""),
            "grants/g.toml:6: unknown key `constraints.confinment`; did you mean `confinement`? that belongs above [constraints]".to_owned(),
        ),
        (
            format!("{HEAD}constraints = {{ paths = [\"read:/a\"], untrusted = true }}\n"),
            "grants/g.toml:4: `constraints.untrusted` is a key of a grant, grants/<id>.toml, not of constraints; write it as `untrusted`, outside of constraints".to_owned(),
        ),
    ] {
        told("grants/g.toml", text.as_bytes(), &[&want]);
    }
    // What slipped is not missing as well.
    let text = "tool = \"read\"\n[constraints]\npaths = [\"read:/a\"]\nmode = \"auto\"\nmax_taint = \"private\"\n";
    told(
        "grants/g.toml",
        text.as_bytes(),
        &[
            &format!(
                "grants/g.toml:4: `mode` stands below [constraints] and belongs above it; {above}"
            ),
            &format!(
                "grants/g.toml:5: `max_taint` stands below [constraints] and belongs above it; {above}"
            ),
        ],
    );
    let above = "move the line up, above the first line that begins with `[`: there it is a key of a tool, tools/<name>.toml";
    for (below, at) in [
        ("[resources]\n", 7),
        ("[arguments]\n", 10),
        ("[arguments.properties]\n", 12),
    ] {
        let header = below.trim_end();
        let outer = header.trim_matches(['[', ']']).split('.').next().unwrap();
        let text = READ.replace("profile = \"tools/base\"\n", "");
        let text = text.replace(below, &format!("{below}profile = \"tools/base\"\n"));
        told(
            "tools/read.toml",
            text.as_bytes(),
            &[&format!(
                "tools/read.toml:{}: `profile` stands below [{outer}] and belongs above it; {above}",
                at
            )],
        );
    }
}

#[test]
fn each_kind_of_mistake_in_a_tool_or_the_configuration_is_told_in_full() {
    for (from, to, want) in [
        (
            "timeout",
            "timout = \"3s\"",
            "tools/x.toml:6: unknown key `timout`; did you mean `timeout`? the keys here are description, kind, command, profile, arguments, side_effect, timeout, max_output, result, resources",
        ),
        (
            "kind",
            "kind = \"stdioo\"",
            "tools/x.toml:3: `kind`: unknown value `stdioo`, expected `stdio` or `argv`; write \"stdio\" or \"argv\"",
        ),
        (
            "max_output",
            "max_output = \"1M\"",
            "tools/x.toml:6: `max_output`: invalid type: string \"1M\", expected a whole number that is not negative and not huge; write a number of bytes",
        ),
        (
            "max_taint",
            "max_taint = \"private\"",
            "tools/x.toml:6: `max_taint` is a key of a grant, grants/<id>.toml, not of a tool, tools/<name>.toml; remove it, or write it in a grant, grants/<id>.toml",
        ),
        (
            "memory",
            "memory = \"1G\"",
            "tools/x.toml:6: `memory` is a key of a profile, profiles/<name>.toml, not of a tool, tools/<name>.toml; remove it, or write it in a profile, profiles/<name>.toml",
        ),
        (
            "command",
            "command = \"toolkit fs_read\"",
            "tools/x.toml:4: `command`: invalid type: string \"toolkit fs_read\", expected a list; write a list: the program, then its words",
        ),
    ] {
        let line = READ.lines().find(|line| line.starts_with(from));
        let text = READ.replace(line.unwrap_or("side_effect = false"), to);
        told("tools/x.toml", text.as_bytes(), &[want]);
    }
    for (text, want) in [
        (
            "[restart]\nexpiry = \"10m\"\n",
            "config.toml:2: `restart.expiry` belongs in [approvals]; move it below a line [approvals]",
        ),
        (
            "[restart]\nwaive = [\"memory\"]\n",
            "config.toml:2: `waive` stands below [restart] and belongs above it; move the line up, above the first line that begins with `[`: there it is a key of config.toml",
        ),
        (
            "[pool]\ncgroup = \"v2\"\n",
            "config.toml:2: `cgroup` stands below [pool] and belongs above it; move the line up, above the first line that begins with `[`: there it is a key of config.toml",
        ),
        (
            "give_up = 3\n",
            "config.toml:1: `give_up` belongs in [restart]; write it below a line [restart], or as `restart.give_up`",
        ),
        (
            "[restarts]\ngive_up = 3\n",
            "config.toml:1: unknown key `restarts`; did you mean `restart`? the keys here are waive, uid_range, cgroup, restart, approvals, session, audit, pool",
        ),
        (
            "[restart]\nexpirey = \"10m\"\n",
            "config.toml:2: unknown key `restart.expirey`; did you mean `expiry`? that belongs in [approvals]",
        ),
        (
            "[approvals]\nbatch = 8\n",
            "config.toml:2: `approvals.batch` is known to the format but not enforced by this version, so it cannot be stated yet; remove it: every question is shown and answered alone in this version",
        ),
        (
            "[restart]\ngive_up = -1\n",
            "config.toml:2: `restart.give_up`: invalid value: integer `-1`, expected a whole number above 0; write how many ends within `window` are the last",
        ),
        (
            "waive = [\"memry\"]\n",
            "config.toml:1: `waive`: unknown value `memry`, expected one of `mount`, `pid`, `net`, `ipc`, `uts`, `cgroup-ns`, `uid`, `caps`, `nnp`, `seccomp`, `landlock-fs`, `landlock-net`, `landlock-scope`, `memory`, `pids`, `cpu`, `descriptors`, `terminal`, `rlimits`, `dumpable`, `parent-death`, `mount-flags`, `outside`; write a list of layers, such as [\"memory\", \"pids\"]",
        ),
    ] {
        told("config.toml", text.as_bytes(), &[want]);
    }
}

#[test]
fn a_granted_path_that_is_written_wrong_is_told_with_the_right_one() {
    let plain = "a granted path is a plain prefix: it holds everything below it, and";
    for (entry, rule, fix) in [
        (
            "read:/srv/notes/*",
            format!("{plain} `*` stands for nothing else"),
            "write \"read:/srv/notes\"",
        ),
        (
            "write:/srv/notes/**/*",
            format!("{plain} `*` stands for nothing else"),
            "write \"write:/srv/notes\"",
        ),
        (
            "read:/srv/*.md",
            format!("{plain} `*` stands for nothing else"),
            "write each path in full, as an entry of its own, or the directory that holds them all",
        ),
        (
            "read:/*",
            format!("{plain} `*` stands for nothing else"),
            "write each path in full, as an entry of its own, or the directory that holds them all",
        ),
        (
            "read:/srv/note?",
            format!("{plain} `?` stands for nothing else"),
            "write each path in full, as an entry of its own, or the directory that holds them all",
        ),
        (
            "read:/srv/[ab]/x",
            format!("{plain} `[` stands for nothing else"),
            "write each path in full, as an entry of its own, or the directory that holds them all",
        ),
        (
            "/srv/notes",
            "a granted path must begin with `read:/` or `write:/`".to_owned(),
            "write \"read:/srv/notes\" to let it be read, \"write:/srv/notes\" to let it be written",
        ),
        (
            "rw:/srv/notes",
            "a granted path must begin with `read:/` or `write:/`".to_owned(),
            "write an entry that begins with `read:` for what may be read, and one with `write:` for what may be written",
        ),
        (
            "write:~/notes",
            "a granted path must be absolute".to_owned(),
            "write the directory out, such as \"write:/home/ann/notes\"",
        ),
        (
            "read:notes",
            "a granted path must be absolute".to_owned(),
            "write it as \"read:/srv/notes\" or \"write:/srv/notes\"",
        ),
        (
            "write:/srv/notes/",
            "a path must not end in `/`".to_owned(),
            "write \"write:/srv/notes\"",
        ),
        (
            "read:/srv/../etc",
            "a path must not hold the component `..`".to_owned(),
            "write the path that it leads to",
        ),
        (
            "read:/srv//notes",
            "a path must not hold `//`".to_owned(),
            "write one `/`",
        ),
        (
            "read:/proc/1",
            "a path must not lie in /proc".to_owned(),
            "remove it: what the kernel shows there depends on who looks, so no tool gets it",
        ),
    ] {
        let want = format!("grants/g.toml:4: {entry:?} in `constraints.paths`: {rule}; {fix}");
        let text = format!("{HEAD}constraints.paths = [{entry:?}]\n");
        told("grants/g.toml", text.as_bytes(), &[&want]);
        // A deny grant that is written so would deny nothing.
        let want = want.replace(":4: ", ":3: ");
        let text = format!("tool = \"read\"\nmode = \"deny\"\nconstraints.paths = [{entry:?}]\n");
        told("grants/g.toml", text.as_bytes(), &[&want]);
    }
    let text = format!("{HEAD}constraints.paths = [\"read:/srv/notes\"]\n");
    told("grants/g.toml", text.as_bytes(), &[]);
}

#[test]
fn no_mistake_of_one_file_hides_those_of_another() {
    let files = files(&[
        ("config.toml", "waive = 3\n"),
        ("tools/read", READ),
        ("tools/bad", "kind = \"stdio\"\nkind = \"argv\"\n"),
        ("tools/thin", "kind = \"stdio\"\n"),
        (
            "grants/a",
            "tool = \"bad\"\nmode = \"auto\"\nmax_taint = \"top\"\n",
        ),
        (
            "grants/b",
            "tool = \"gone\"\nmode = \"auto\"\nmax_taint = \"private\"\n",
        ),
        ("grants/c", "tool = \"read\n"),
        (
            "grants/d",
            "tool = \"read\"\nmode = \"auto\"\nmax_taint = \"private\"\nconstraints.paths = [\"read:/srv/*\"]\n",
        ),
    ]);
    let errors = Policy::load(&files, 1).unwrap_err();
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "config.toml:1: `waive`: invalid type: integer `3`, expected a list; write a list of layers, such as [\"memory\", \"pids\"]",
            "grants/a.toml:3: `max_taint`: unknown value `top`, expected one of `public`, `private`, `secret`; write \"public\", \"private\" or \"secret\"",
            "grants/b.toml:1: there is no file tools/gone.toml; write the tool file first, or correct the name",
            "grants/c.toml:1: not TOML: invalid basic string, expected `\"`; correct the line",
            "grants/d.toml:4: \"read:/srv/*\" in `constraints.paths`: a granted path is a plain prefix: it holds everything below it, and `*` stands for nothing else; write \"read:/srv\"",
            "tools/bad.toml:2: not TOML: `kind` stands twice in one table; keep one of the two",
            "tools/thin.toml: `arguments` is required; write a table [arguments] with type = \"object\"",
            "tools/thin.toml: `command` is required; write a list: the program, then its words",
            "tools/thin.toml: `description` is required; say in a sentence what the tool does",
            "tools/thin.toml: `profile` is required; write the name of a profile, such as \"tools/base\"",
        ]
    );
}

#[test]
fn a_grant_that_lets_nothing_run_loads_and_is_warned_of() {
    let warnings = |grants: &[(&str, &str)]| {
        let mut all = files(&[
            ("tools/read", READ),
            ("tools/copy", COPY),
            ("tools/log", LOG),
        ]);
        for (id, text) in grants {
            all.insert(format!("grants/{id}.toml"), text.as_bytes().to_vec());
        }
        let policy = Policy::load(&all, 1).unwrap();
        let warnings = policy.warnings(&all, at(NOW));
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let copies = |paths: &[&str]| grant("copy", paths, "after_untrusted = \"deny\"");
    // A grant by itself.
    for (text, want) in [
        (reads(&["read:/a"], ""), &[][..]),
        (
            reads(&["read:/a"], &format!("expires = \"{NOW}\"")),
            &[
                "grants/g.toml:4: the grant lets nothing run: it expired at 2026-06-01T12:00:00.000Z; write a later time, or remove the file",
            ],
        ),
        (
            reads(&["read:/a"], "expires = \"2026-06-01T12:00:00.001Z\""),
            &[],
        ),
        (
            reads(&[], ""),
            &[
                "grants/g.toml:1: the grant covers only calls of read without `path`: it holds no `read:` path; write below a line [constraints]: paths = [\"read:/srv/notes\"]",
            ],
        ),
        (
            reads(&["write:/a"], ""),
            &[
                "grants/g.toml:5: the grant covers only calls of read without `path`: it holds no `read:` path; add an entry such as \"read:/srv/notes\"",
            ],
        ),
        (copies(&["read:/a", "write:/b"]), &[]),
        (
            copies(&["read:/a"]),
            &[
                "grants/g.toml:5: the grant covers no call: every call of copy names a path in `to`, and the grant holds no `write:` path; add an entry such as \"write:/srv/notes\"",
            ],
        ),
        (
            copies(&[]),
            &[
                "grants/g.toml:1: the grant covers no call: every call of copy names a path in `to`, and the grant holds no `write:` path; write below a line [constraints]: paths = [\"write:/srv/notes\"]",
            ],
        ),
        (grant("log", &[], ""), &[]),
    ] {
        assert_eq!(warnings(&[("g", &text)]), want, "{text}");
    }
    // And with a deny grant beside it.
    let hidden = |tool: &str, paths: &[&str], denied: &[&str]| {
        let more = if tool == "copy" {
            "after_untrusted = \"deny\""
        } else {
            ""
        };
        let told = warnings(&[
            ("g", &grant(tool, paths, more)),
            ("no", &denies(tool, denied)),
        ]);
        let want = "grants/g.toml:1: the grant lets nothing run: deny grant no overrides every call that it covers; remove one of the two, or narrow the deny grant";
        assert!(
            told.len() < 2 && told.iter().all(|told| told == want),
            "{told:?}"
        );
        told.len() == 1
    };
    let both = ["read:/a", "write:/a/b"];
    for (tool, paths, denied, want) in [
        ("read", &["read:/a"][..], &[][..], true),
        ("read", &["read:/a"], &["read:/a"], false),
        ("copy", &both, &["read:/a"], true),
        ("copy", &both, &["write:/"], true),
        ("copy", &both, &["read:/a/b"], false),
        ("log", &["read:/a"], &["read:/a"], true),
        ("log", &["read:/a"], &["read:/a/b"], false),
        ("log", &[], &["read:/a"], false),
    ] {
        assert_eq!(
            hidden(tool, paths, denied),
            want,
            "{tool} {paths:?} {denied:?}"
        );
    }
}
