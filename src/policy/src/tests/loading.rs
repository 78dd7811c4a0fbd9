//! Mistakes in configuration files: each is named with its file, its line and its rule, and what is right loads.

use super::*;

/// The rules that `text` as `file` breaks, beside the three tools, as `line: rule`.
fn mistakes(file: &str, text: &[u8]) -> Vec<String> {
    let mut files = files(&[
        ("tools/read", READ),
        ("tools/copy", COPY),
        ("tools/log", LOG),
    ]);
    files.insert(file.to_owned(), text.to_vec());
    let errors = match Policy::load(&files, 1) {
        Ok(_) => return Vec::new(),
        Err(errors) => errors,
    };
    let one = |error: LoadError| {
        assert_eq!(error.file, file);
        assert!(!error.fix.is_empty() && !error.rule.is_empty());
        let line = error.line.map_or("-".to_owned(), |line| line.to_string());
        format!("{line}: {}", error.rule)
    };
    errors.into_iter().map(one).collect()
}

/// Exactly these mistakes, by line and a part of the rule.
fn expect(file: &str, text: &str, want: &[&str]) {
    let got = mistakes(file, text.as_bytes());
    assert_eq!(got.len(), want.len(), "{text}\n{got:#?}");
    for want in want {
        let (line, part) = want.split_once(' ').unwrap();
        assert!(
            got.iter()
                .any(|got| got.starts_with(&format!("{line} ")) && got.contains(part)),
            "{want}\n{text}\n{got:#?}"
        );
    }
}

#[test]
fn a_whole_configuration_loads_and_says_what_it_was_loaded_from() {
    let grant = reads(&["read:/srv"], "");
    let files = files(&[
        (
            "config.toml",
            "waive = [\"memory\"]\nuid_range = [200000, 1000]\ncgroup = \"v1\"\n",
        ),
        ("tools/read", READ),
        ("grants/g", &grant),
        ("profiles/tools/own", "this is not read here"),
    ]);
    let policy = Policy::load(&files, 3).unwrap();
    assert_eq!(policy.generation(), 3);
    assert_eq!(policy.config().uid_range, (200_000, 1000));
    assert_eq!(
        policy
            .tools()
            .map(|tool| tool.name().as_str())
            .collect::<Vec<_>>(),
        ["read"]
    );
    assert_eq!(
        policy
            .grants()
            .map(|grant| grant.id().as_str())
            .collect::<Vec<_>>(),
        ["g"]
    );
    assert!(policy.tool(&ToolName::new("read").unwrap()).is_some());
    let hashes = policy.hashes();
    assert!(hashes.keys().eq(files.keys()));
    let empty = Policy::load(
        &BTreeMap::from([("tools/read.toml".to_owned(), READ.into())]),
        1,
    )
    .unwrap();
    assert_ne!(empty.hashes(), hashes);
    assert_eq!(empty.hashes()["tools/read.toml"], hashes["tools/read.toml"]);
    assert_eq!(
        *Policy::load(&BTreeMap::new(), 1).unwrap().config(),
        proto::config::Config::default()
    );
}

#[test]
fn files_are_what_their_names_say() {
    let grant = reads(&["read:/srv"], "");
    expect("grants/good-1.toml", &grant, &[]);
    for file in [
        "grants/Bad.toml",
        "grants/.toml",
        "grants/a b.toml",
        "tools/é.toml",
        "grants/.x.toml",
    ] {
        expect(
            file,
            if file.starts_with('t') { READ } else { &grant },
            &["-: the file's name"],
        );
    }
    for file in [
        "grants/sub/a.toml",
        "grants/a.tml",
        "other.toml",
        "tools",
        "Config.toml",
        "grants/../config.toml",
    ] {
        expect(file, &grant, &["-: no part of boxmaker reads"]);
    }
    assert_eq!(
        mistakes("grants/g.toml", b"tool = 'read'\nmode = '\xff'"),
        ["2: the file is not UTF-8"]
    );
}

#[test]
fn all_mistakes_of_all_files_come_at_once() {
    let files = files(&[
        ("tools/read", READ),
        (
            "grants/a",
            "tool = \"gone\"\nmode = \"auto\"\nmax_taint = \"public\"\nmax_calls = 3\nconstraints.paths = [\"/x\"]\n",
        ),
        ("grants/b", "tool = 3\nmode = \"never\"\nuntrusted = 1\n"),
        ("grants/c", "tool = \n mode mode\n"),
        ("config.toml", "waive = [\"sky\"]\nunknown = 1\n"),
    ]);
    let errors = Policy::load(&files, 1).unwrap_err();
    let got: Vec<(&str, Option<usize>)> =
        errors.iter().map(|e| (e.file.as_str(), e.line)).collect();
    assert_eq!(
        got[..8],
        [
            ("config.toml", Some(1)),
            ("config.toml", Some(2)),
            ("grants/a.toml", Some(1)),
            ("grants/a.toml", Some(4)),
            ("grants/a.toml", Some(5)),
            ("grants/b.toml", Some(1)),
            ("grants/b.toml", Some(2)),
            ("grants/b.toml", Some(3)),
        ],
        "{errors:#?}"
    );
    assert!(
        got[8..]
            .iter()
            .all(|(file, line)| *file == "grants/c.toml" && line.is_some())
            && got.len() > 8
    );
    let shown = errors[3].to_string();
    assert!(shown.starts_with("grants/a.toml:4: `max_calls` is known to the format but not enforced by this version, so it cannot be stated yet; "), "{shown}");
}

#[test]
fn words_that_are_not_enforced_are_refused_and_not_ignored() {
    let base = "tool = \"read\"\nmode = \"auto\"\nmax_taint = \"private\"\n";
    expect("grants/g.toml", base, &[]);
    for line in [
        "skill = \"files\"",
        "max_calls = 3",
        "max_calls = 0",
        "approve_from = []",
        "secret = \"X\"",
        "secret = \"\"",
        "after_untrusted = \"prove\"",
        "after_untrusted = \"prove_strict\"",
        "after_untrusted = \"ask\"",
        "[capability]",
        "capability.on_miss = \"block\"",
        "[[inject]]\nref = \"env:X\"",
        "constraints.hosts = []",
        "constraints.hosts = [\"x.org\"]",
        "constraints.patterns = []",
        "constraints.allowed = { a = 1 }",
        "constraints.strict_args = false",
    ] {
        expect(
            "grants/g.toml",
            &format!("{base}{line}\n"),
            &["4: is known to the format but not enforced"],
        );
    }
    for line in [
        "skill = \"x\"",
        "capability = false",
        "cost = 0",
        "classes.path = \"owner\"",
        "makes.kind = \"file\"",
        "finds.kind = \"file\"",
        "resources.path = \"url\"",
        "resources.path = \"host\"",
    ] {
        let text = format!(
            "{line}\n{}",
            READ.replace("[resources]\npath = \"read\"\nother = \"read\"\n", "")
        );
        expect(
            "tools/read.toml",
            &text,
            &["1: is known to the format but not enforced"],
        );
    }
    expect(
        "tools/x.toml",
        &READ.replace("\"stdio\"", "\"mcp\""),
        &["3: `kind = \"mcp\"` is known to the format"],
    );
    for keyword in [
        "items = { type = \"string\" }",
        "enum = [\"a\"]",
        "const = 1",
        "minLength = 1",
        "maxLength = 1",
        "minimum = 0",
        "maximum = 1",
        "minItems = 1",
        "maxItems = 2",
    ] {
        let text = format!("{READ}path.{keyword}\n");
        let line = format!("{}: is known to the format", READ.lines().count() + 1);
        expect("tools/read.toml", &text, &[&line]);
    }
    for line in [
        "restart.window = \"5m\"",
        "approvals.expiry = \"1h\"",
        "session.calls = 3",
        "audit.max_bytes = 1",
        "pool.x = 1",
        "model.upstream = \"x\"",
        "secrets.a = \"env:A\"",
        "exec.a.command = []",
        "redact.keep = []",
        "[gateway]",
        "cgroup = \"v2\"",
    ] {
        expect(
            "config.toml",
            &format!("\n{line}\n"),
            &["2: is known to the format but not enforced"],
        );
    }
}

#[test]
fn unknown_words_and_duplicates_are_errors() {
    let base = "tool = \"read\"\nmode = \"auto\"\nmax_taint = \"private\"\n";
    expect(
        "grants/g.toml",
        &format!("{base}color = 1\n"),
        &["4: unknown key `color`"],
    );
    expect(
        "grants/g.toml",
        &format!("{base}[constraints]\npath = [\"read:/a\"]\n"),
        &["5: unknown key `constraints.path`"],
    );
    expect(
        "grants/g.toml",
        &format!("{base}mode = \"deny\"\n"),
        &["4: not TOML: duplicate key"],
    );
    expect(
        "config.toml",
        "uid-range = [1, 2]\n",
        &["1: unknown key `uid-range`"],
    );
    expect(
        "tools/x.toml",
        &format!("{READ}path.pattern = \"a\"\n"),
        &["16: unknown key `arguments.properties.path.pattern`"],
    );
    expect(
        "tools/x.toml",
        &format!("{READ}path.additional_properties = true\n"),
        &["16: unknown key"],
    );
}

#[test]
fn grants_state_what_they_must() {
    expect(
        "grants/g.toml",
        "",
        &["-: `tool` is required", "-: `mode` is required"],
    );
    expect(
        "grants/g.toml",
        "tool = \"read\"\nmode = \"auto\"\n",
        &["-: `max_taint` is required"],
    );
    expect(
        "grants/g.toml",
        "tool = \"read\"\nmode = \"ask\"\n",
        &["-: `max_taint` is required"],
    );
    expect("grants/g.toml", "tool = \"read\"\nmode = \"deny\"\n", &[]);
    expect(
        "grants/g.toml",
        &grant("gone", &[], ""),
        &["1: there is no file tools/gone.toml"],
    );
    expect(
        "grants/g.toml",
        &grant("copy", &[], ""),
        &["1: does not state `after_untrusted`"],
    );
    expect(
        "grants/g.toml",
        &grant("copy", &[], "after_untrusted = \"allow\""),
        &[],
    );
    // A tool without side effects gets one from a whole path that it may write.
    expect("grants/g.toml", &grant("log", &["read:/a"], ""), &[]);
    expect(
        "grants/g.toml",
        &grant("log", &["write:/a"], ""),
        &["1: does not state `after_untrusted`"],
    );
    expect("grants/g.toml", &reads(&["write:/a"], ""), &[]);
    expect(
        "grants/g.toml",
        &reads(&[], "expires = \"1999-01-01T00:00:00.000Z\""),
        &[],
    );
}

#[test]
fn wrong_values_name_their_line_and_what_to_write() {
    for (line, part) in [
        ("result_class = \"top\"", "`result_class`: unknown variant"),
        ("untrusted = \"no\"", "`untrusted`: invalid type"),
        ("expires = 2026-01-01T00:00:00Z", "`expires`: invalid type"),
        ("expires = \"2026-01-01\"", "`expires`: "),
        (
            "after_untrusted = \"never\"",
            "`after_untrusted`: unknown variant",
        ),
        ("confinement = \"none\"", "`confinement` is none"),
        ("confinement = \"some\"", "`confinement`: unknown variant"),
        ("as = 0", "`as`: invalid type"),
        ("as = \"\"", "`as` \"\" is neither"),
        ("as = \"a b\"", "neither the name nor the number"),
        ("as = \"-1\"", "neither the name nor the number"),
        ("as = \"4294967295\"", "neither the name nor the number"),
        ("constraints = []", "`constraints` is no table"),
        (
            "constraints = [[\"read:/a\"], [\"x.org\"], []]",
            "`constraints` is no table",
        ),
        ("constraints.paths = []", "`constraints.paths` is empty"),
        (
            "constraints.paths = \"read:/a\"",
            "`constraints`: invalid type",
        ),
        ("constraints.paths = [\"\"]", "must begin with"),
        (
            "constraints.paths = [\"read:/a\", \"read:/a\"]",
            "stands twice",
        ),
        ("constraints.paths = [\"read:/a/../b\"]", "`..`"),
        ("constraints.paths = [\"read:a\"]", "must be absolute"),
        (
            "constraints.paths = [\"read:/proc/1\"]",
            "must not lie in /proc",
        ),
    ] {
        let text = format!("tool = \"read\"\nmode = \"auto\"\nmax_taint = \"private\"\n{line}\n");
        expect("grants/g.toml", &text, &[&format!("4: {part}")]);
    }
    // A list's item stands on a line of its own.
    let text = "tool = \"read\"\nmode = \"auto\"\nmax_taint = \"private\"\n[constraints]\npaths = [\n \"read:/a\",\n \"read:/a/\",\n]\n";
    expect("grants/g.toml", text, &["7: must not end in `/`"]);
}

#[test]
fn writing_as_root_is_refused() {
    let more = |user: &str| format!("after_untrusted = \"deny\"\nas = \"{user}\"");
    for user in ["root", "0", "00"] {
        expect(
            "grants/g.toml",
            &grant("copy", &["read:/a"], &more(user)),
            &["5: works as root"],
        );
        expect(
            "grants/g.toml",
            &grant("log", &["write:/a"], &more(user)),
            &["5: works as root"],
        );
        expect(
            "grants/g.toml",
            &grant("log", &["read:/a"], &more(user)),
            &[],
        );
    }
    for user in ["alice", "_x.y-z", "1000"] {
        expect(
            "grants/g.toml",
            &grant("copy", &["write:/a"], &more(user)),
            &[],
        );
    }
}

#[test]
fn deny_grants_hold_nothing_that_could_be_evaded() {
    expect("grants/g.toml", &denies("copy", &["read:/a"]), &[]);
    expect(
        "grants/g.toml",
        &denies("gone", &[]),
        &["1: there is no file"],
    );
    for line in [
        "max_taint = \"public\"",
        "result_class = \"private\"",
        "untrusted = true",
        "expires = \"2030-01-01T00:00:00.000Z\"",
        "after_untrusted = \"deny\"",
        "confinement = \"full\"",
        "as = \"alice\"",
    ] {
        let text = format!("tool = \"copy\"\nmode = \"deny\"\n{line}\n");
        expect("grants/g.toml", &text, &["3: stands in a deny grant"]);
    }
    expect(
        "grants/g.toml",
        "tool = \"copy\"\nmode = \"deny\"\nconstraints.paths = []\n",
        &["3: is empty"],
    );
}

#[test]
fn stores_do_not_launder() {
    let load_both = |writer: &str, reader: &str| load(&[("w", writer), ("r", reader)]);
    let writes = |path: &str, taint: &str| {
        grant(
            "copy",
            &[path],
            &format!("after_untrusted = \"allow\"\nmax_taint = \"{taint}\""),
        )
    };
    for (path, taint, reader, good) in [
        ("write:/s", "private", reads(&["read:/s"], ""), true),
        (
            "write:/s",
            "secret",
            reads(&["read:/s"], "result_class = \"secret\""),
            true,
        ),
        (
            "write:/s",
            "public",
            reads(&["read:/s"], "result_class = \"public\""),
            true,
        ),
        ("write:/s", "secret", reads(&["read:/s"], ""), false),
        (
            "write:/s",
            "private",
            reads(&["read:/s"], "result_class = \"public\""),
            false,
        ),
        (
            "write:/s",
            "private",
            reads(&["read:/s"], "untrusted = false"),
            false,
        ),
        (
            "write:/s/in",
            "private",
            reads(&["read:/s"], "untrusted = false"),
            false,
        ),
        (
            "write:/s",
            "private",
            reads(&["read:/s/in"], "untrusted = false"),
            false,
        ),
        (
            "write:/s",
            "private",
            reads(&["read:/st"], "untrusted = false"),
            true,
        ),
        (
            "read:/s",
            "private",
            reads(&["read:/s"], "untrusted = false"),
            true,
        ),
        (
            "write:/s",
            "private",
            reads(&["read:/s"], "untrusted = false\nmode = \"ask\""),
            false,
        ),
        (
            "write:/s",
            "private",
            reads(
                &["read:/s"],
                "untrusted = false\nexpires = \"1999-01-01T00:00:00.000Z\"",
            ),
            false,
        ),
        ("write:/s", "private", denies("read", &["read:/s"]), true),
    ] {
        match load_both(&writes(path, taint), &reader) {
            Ok(_) => assert!(good, "{path} {taint}\n{reader}"),
            Err(errors) => {
                assert!(
                    !good && errors.len() == 1,
                    "{path} {taint}\n{reader}\n{errors:#?}"
                );
                assert_eq!(
                    (errors[0].file.as_str(), errors[0].line),
                    ("grants/w.toml", Some(5))
                );
                assert!(
                    errors[0]
                        .rule
                        .starts_with("grant w writes what grant r reads as "),
                    "{}",
                    errors[0].rule
                );
            }
        }
    }
    // One grant can be both ends.
    let both = "after_untrusted = \"deny\"\nmax_taint = \"secret\"";
    let errors = load(&[("one", &grant("copy", &["read:/s", "write:/s/out"], both))]).unwrap_err();
    assert!(
        errors[0]
            .rule
            .contains("grant one writes what grant one reads as private"),
        "{}",
        errors[0].rule
    );
}

#[test]
fn tool_files_are_checked_beyond_their_types() {
    for (from, to, want) in [
        ("", "", &[][..]),
        (
            "lines.type = \"integer\"",
            "lines = [\"integer\"]",
            &["15: `arguments.properties.lines` is no table"],
        ),
        ("\"Reads files.\"", "\" \"", &["2: `description` is empty"]),
        (
            "description = \"Reads files.\"",
            "",
            &["-: `description` is required"],
        ),
        (
            "[\"toolkit\", \"fs_read\"]",
            "[]",
            &["4: `command` is empty"],
        ),
        (
            "[\"toolkit\", \"fs_read\"]",
            "[\"bin/toolkit\"]",
            &["4: is a relative path"],
        ),
        (
            "[\"toolkit\", \"fs_read\"]",
            "[\"toolkit\",\n \"{path}\"]",
            &["5: stands in the command of a stdio tool"],
        ),
        ("tools/base", "", &["5: is no name of a profile"]),
        ("tools/base", "/tools", &["5: is no name of a profile"]),
        ("tools/base", "../x", &["5: is no name of a profile"]),
        ("tools/base", "a//b", &["5: is no name of a profile"]),
        ("side_effect = false", "max_output = 786432", &[]),
        (
            "side_effect = false",
            "max_output = 786433",
            &["6: `max_output` is 786433"],
        ),
        (
            "side_effect = false",
            "max_output = 0",
            &["6: `max_output` is 0"],
        ),
        (
            "side_effect = false",
            "max_output = -1",
            &["6: `max_output`: invalid value"],
        ),
        (
            "side_effect = false",
            "timeout = \"0s\"",
            &["6: `timeout`: "],
        ),
        (
            "side_effect = false",
            "result = \"private\"",
            &["6: `result`: unknown variant"],
        ),
        (
            "other = \"read\"",
            "gone = \"read\"",
            &["9: names \"gone\", which is no argument"],
        ),
        (
            "other = \"read\"",
            "lines = \"read\"",
            &["9: names \"lines\", which is no argument of type string"],
        ),
        (
            "other = \"read\"",
            "other = \"exec\"",
            &["9: `resources`: unknown variant"],
        ),
        (
            "type = \"object\"",
            "type = \"string\"",
            &["11: the arguments of a tool are an object"],
        ),
        (
            "type = \"object\"",
            "",
            &["10: the arguments of a tool are an object"],
        ),
        (
            "type = \"object\"",
            "type = \"object\"\nrequired = [\"path\", \"gone\"]",
            &["12: names \"gone\""],
        ),
        (
            "type = \"object\"",
            "type = \"object\"\nrequired = [\"path\", \"path\"]",
            &["12: names \"path\" twice"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.required = []",
            &["15: is not of type object"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.properties = {}",
            &["15: is not of type object"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.additionalProperties = true",
            &["15: is not of type object"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.additionalProperties = {}",
            &["15: `arguments`: invalid type"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.default = nan",
            &["15: holds a date or a number"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.default = [{ a = 2026-01-01 }]",
            &["15: holds a date or a number"],
        ),
        (
            "lines.type = \"integer\"",
            "lines.default = [{ a = 1.5 }]",
            &[],
        ),
        (
            "lines.type = \"integer\"",
            "lines = { type = \"object\", properties.a.enum = [] }",
            &["15: `arguments.properties.lines.properties.a.enum` is known"],
        ),
        (
            "lines.type = \"integer\"",
            "lines = { type = \"object\", required = [\"a\"] }",
            &["15: `arguments.properties.lines.required` names \"a\""],
        ),
        (
            "lines.type = \"integer\"",
            "\"\" = { type = \"string\" }",
            &["15: holds the name \"\""],
        ),
        (
            "lines.type = \"integer\"",
            "lines.type = \"int\"",
            &["15: `arguments`: unknown variant"],
        ),
    ] {
        assert!(READ.contains(from));
        expect("tools/x.toml", &READ.replacen(from, to, 1), want);
    }
}

#[test]
fn argv_tools_take_every_argument_as_a_word() {
    for (from, to, want) in [
        ("", "", &[][..]),
        (
            "\"{to}\"",
            "\"{to}\", \"{gone}\"",
            &["4: `{gone}` names no argument"],
        ),
        ("\"{to}\"", "\"x={to}\"", &["4: and something else"]),
        (
            "\"/usr/bin/cp\"",
            "\"{from}\"",
            &["4: the program \"{from}\""],
        ),
        (
            ", \"to\"]",
            "]",
            &["4: `{to}` stands for an argument that a call may leave out"],
        ),
        (
            "to.type = \"string\"",
            "to.type = \"string\"\nmore.type = \"string\"",
            &["15: no word of `command` stands for the argument \"more\""],
        ),
        (
            "type = \"object\"",
            "type = \"object\"\nadditionalProperties = true",
            &["11: would never see"],
        ),
    ] {
        assert!(COPY.contains(from));
        expect("tools/x.toml", &COPY.replacen(from, to, 1), want);
    }
}

#[test]
fn uids_of_others_are_no_sandboxes() {
    for (range, good) in [
        ("[1879048192, 65536]", true),
        ("[1000, 60184]", true),
        ("[65536, 1]", true),
        ("[4294967294, 1]", true),
        ("[0, 65536]", false),
        ("[999, 1]", false),
        ("[1000, 60185]", false),
        ("[65519, 1]", false),
        ("[65534, 1]", false),
        ("[4294967295, 1]", false),
        ("[4294967294, 2]", false),
        ("[70000, 0]", false),
        ("[70000]", false),
        ("[-1, 5]", false),
    ] {
        let got = mistakes("config.toml", format!("uid_range = {range}\n").as_bytes());
        assert_eq!(got.is_empty(), good, "{range}: {got:?}");
        assert!(good || got[0].starts_with("1: `uid_range`"), "{got:?}");
    }
}
