//! Mistakes in configuration files: each is named with its file, its line and its rule, and what is right loads.

use proto::config::CgroupChoice;

use super::*;

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
fn what_is_right_of_a_wrong_configuration_is_told_apart_and_never_a_policy() {
    let good = reads(&["read:/srv"], "");
    let files = files(&[
        ("tools/read", READ),
        ("tools/bad", "kind = 3\n"),
        ("grants/good", &good),
        ("grants/half", &format!("{good}colour = 1\n")),
        ("grants/paths", &reads(&["read:/srv", "read:/srv/*"], "")),
        ("grants/torn", "tool = \n"),
        ("config.toml", "waive = [\"memory\"]\n"),
    ]);
    assert!(Policy::load(&files, 1).is_err());
    let sound = crate::Sound::of(&files);
    let tools: Vec<&str> = sound.tools().iter().map(|t| t.name().as_str()).collect();
    assert_eq!(tools, ["read"]);
    assert!(sound.tool(&ToolName::new("read").unwrap()).is_some());
    assert!(sound.tool(&ToolName::new("bad").unwrap()).is_none());
    let grants: Vec<(&str, usize)> = sound
        .grants()
        .iter()
        .map(|grant| (grant.id().as_str(), grant.paths().len()))
        .collect();
    assert_eq!(grants, [("good", 1), ("half", 1), ("paths", 1)]);
    assert_eq!(sound.config().unwrap().waive.len(), 1);
    let config = |text: &str| {
        let files = BTreeMap::from([("config.toml".to_owned(), text.into())]);
        crate::Sound::of(&files).config().is_some()
    };
    assert!(config("waive = []\n"));
    for wrong in [
        "waive = [\"caps\"]\n",
        "waives = []\n",
        "waive = \n",
        "waive = 1\n",
    ] {
        assert!(!config(wrong), "{wrong}");
    }
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
        "approvals.batch = 8",
        "session.calls = 3",
        "audit.anchor_journal = true",
        "model.upstream = \"x\"",
        "secrets.a = \"env:A\"",
        "exec.a.command = []",
        "redact.keep = []",
        "[gateway]",
    ] {
        expect(
            "config.toml",
            &format!("\n{line}\n"),
            &["2: is known to the format but not enforced"],
        );
    }
}

#[test]
fn every_way_to_limit_loads_and_no_other() {
    for (word, choice) in [
        ("auto", CgroupChoice::Auto),
        ("v1", CgroupChoice::V1),
        ("v2", CgroupChoice::V2),
        ("none", CgroupChoice::None),
    ] {
        let config = format!("cgroup = \"{word}\"\n").into_bytes();
        let files = BTreeMap::from([("config.toml".to_owned(), config)]);
        let policy = Policy::load(&files, 1).unwrap();
        assert_eq!(policy.config().cgroup, choice);
    }
    let text = "\ncgroup = \"v3\"\n";
    expect("config.toml", text, &["2: `cgroup`: unknown value `v3`"]);
}

#[test]
fn restarts_are_stated_in_times_percent_and_a_count() {
    let config = "[restart]\nbackoff_first = \"50ms\"\nbackoff_max = \"2s\"\njitter = 100\ngive_up = 3\nwindow = \"1m\"\n";
    let files = BTreeMap::from([("config.toml".to_owned(), config.into())]);
    let policy = Policy::load(&files, 1).unwrap();
    let restart = &policy.config().restart;
    assert_eq!(restart.backoff_first.as_millis(), 50);
    assert_eq!(restart.backoff_max.as_millis(), 2000);
    assert_eq!((restart.jitter, restart.give_up.get()), (100, 3));
    assert_eq!(restart.window.as_secs(), 60);
    let equal = "[restart]\nbackoff_first = \"2s\"\nbackoff_max = \"2s\"\njitter = 0\n";
    expect("config.toml", equal, &[]);
    for (line, told) in [
        ("restart.jitter = 101", "2: `restart.jitter` is 101 percent"),
        ("restart.jitter = -1", "2: `restart.jitter`: invalid value"),
        ("restart.give_up = 0", "2: `restart.give_up`: invalid value"),
        (
            "restart.window = \"0s\"",
            "2: `restart.window`: \"0s\" is out of range",
        ),
        ("restart.window = 300", "2: `restart.window`: invalid type"),
        (
            "restart.backoff_first = \"31s\"",
            "2: `restart.backoff_first` is 31s, longer than `restart.backoff_max`, 30s",
        ),
        (
            "restart.backoff_max = \"99ms\"",
            "2: `restart.backoff_first` is 100ms, longer than `restart.backoff_max`, 99ms",
        ),
        ("restart.often = true", "2: unknown key `restart.often`"),
        ("restart = [\"1s\"]", "2: `restart` is no table"),
    ] {
        expect("config.toml", &format!("\n{line}\n"), &[told]);
    }
}

#[test]
fn a_session_has_a_ceiling_of_refused_calls() {
    let read = |text: &str| {
        let files = BTreeMap::from([("config.toml".to_owned(), text.into())]);
        let policy = Policy::load(&files, 1).unwrap();
        policy.config().session.denials.get()
    };
    assert_eq!((read("session.denials = 1"), read("")), (1, 1000));
    for (line, told) in [
        ("session.denials = 0", "2: `session.denials`: invalid value"),
        (
            "session.denials = \"5\"",
            "2: `session.denials`: invalid type",
        ),
        ("session.denied = 5", "2: unknown key `session.denied`"),
        ("session = 5", "2: `session` is no table"),
    ] {
        expect("config.toml", &format!("\n{line}\n"), &[told]);
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
        &["4: not TOML: `mode` stands twice"],
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
fn uids_of_others_are_no_sandboxes() {
    for (range, good) in [
        ("[1879048192, 65536]", true),
        ("[1000, 60184]", true),
        ("[65536, 80]", true),
        ("[4294967215, 80]", true),
        ("[0, 65536]", false),
        ("[920, 81]", false),
        ("[999, 80]", false),
        ("[1000, 60185]", false),
        ("[65440, 80]", false),
        ("[65535, 80]", false),
        ("[4294967216, 80]", false),
        ("[4294967295, 80]", false),
        ("[70000, 79]", false),
        ("[70000, 0]", false),
        ("[70000]", false),
        ("[-1, 80]", false),
    ] {
        let got = mistakes("config.toml", format!("uid_range = {range}\n").as_bytes());
        assert_eq!(got.is_empty(), good, "{range}: {got:?}");
        assert!(good || got[0].starts_with("1: `uid_range`"), "{got:?}");
    }
}

#[test]
fn a_range_has_a_uid_for_every_role_and_every_call_at_once() {
    expect("config.toml", "uid_range = [70000, 80]\n", &[]);
    expect(
        "config.toml",
        "cgroup = \"none\"\nuid_range = [70000, 79]\n",
        &["2: fewer uids than the 80 of 16 roles and 64 calls: 79"],
    );
}

#[test]
fn what_cannot_be_waived_or_is_waived_twice_is_an_error_at_its_line() {
    for layer in proto::Layer::ALL {
        let text = format!("waive = [\n\"{layer}\",\n]\n");
        match layer.as_str() {
            "caps" | "nnp" | "seccomp" => {
                let told =
                    format!("2: `waive` names `{layer}`: a sandbox without it has level none");
                expect("config.toml", &text, &[&told]);
            }
            _ => expect("config.toml", &text, &[]),
        }
    }
    expect(
        "config.toml",
        "waive = [\"memory\", \"pids\",\n\"memory\"]\n",
        &["2: `waive` names `memory` twice"],
    );
}

#[test]
fn the_line_of_a_key_is_found_however_its_table_is_written() {
    for (text, path, line) in [
        ("a = 1\nas = \"x\"\n", &["as"] as &[&str], Some(2)),
        (
            "\nconstraints.paths = [\n \"/a\",\n \"/b\"]\n",
            &["constraints", "paths", "1"],
            Some(4),
        ),
        (
            "[constraints]\npaths = [\"/a\"]\n",
            &["constraints", "paths", "0"],
            Some(2),
        ),
        (
            "[constraints]\npaths = [\"/a\"]\n",
            &["constraints", "paths", "7"],
            Some(2),
        ),
        ("# as = 1\n", &["as"], None),
        ("as =\n", &["as"], None),
    ] {
        assert_eq!(
            crate::line_of(text.as_bytes(), path),
            line,
            "{text:?} {path:?}"
        );
    }
}

#[test]
fn a_log_has_room_for_a_megabyte_at_least() {
    let load = |bytes: u64| {
        let text = format!("[audit]\nmax_bytes = {bytes}\n");
        Policy::load(&files(&[("config.toml", &text)]), 1)
    };
    assert_eq!(
        load(1_048_576).unwrap().config().audit.max_bytes.get(),
        1_048_576
    );
    let errors = load(1_048_575).unwrap_err();
    let error = errors[0].to_string();
    assert!(
        error.starts_with("config.toml:2: `audit.max_bytes` is 1048575, less than 1048576"),
        "{error}"
    );
}
