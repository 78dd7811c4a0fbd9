//! `bxctl grants`, `bxctl tools` and `bxctl check` on configuration files.

use crate::host::Host;

const READ: &str = r#"
description = "Read one text file."
kind = "stdio"
command = ["/usr/bin/cat"]
profile = "tools/base"
side_effect = false
resources = { path = "read" }
[arguments]
type = "object"
required = ["path"]
properties.first.type = "integer"
properties.path.type = "string"
"#;
const NOTES: &str = r#"
tool = "fs_read"
mode = "auto"
max_taint = "private"
expires = "2999-12-31T00:00:00.000Z"
[constraints]
paths = ["read:/srv/notes", "read:/srv/plans"]
"#;
const NO_KEYS: &str =
    "tool = \"fs_read\"\nmode = \"deny\"\n[constraints]\npaths = [\"read:/srv/notes/keys\"]\n";

fn host() -> Host {
    let host = Host::new();
    host.file("tools/fs_read.toml", READ);
    host.file("grants/notes.toml", NOTES);
    host.file("grants/no-keys.toml", NO_KEYS);
    host
}

#[test]
fn grants_are_a_table_that_fits_80_columns() {
    let ended = host().run(&["grants"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(
        ended.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ended.out
    );
    for part in [
        "no-keys",
        "notes",
        "deny",
        "auto",
        "read:/srv/notes",
        "2999-12-31",
        "full",
        "private",
    ] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
}

#[test]
fn grants_as_json_are_the_files_with_their_defaults() {
    let json = host().run(&["grants", "--json"]).json();
    let notes = &json["grants"][1];
    assert_eq!(
        (&notes["id"], &notes["expired"]),
        (&"notes".into(), &false.into())
    );
    assert_eq!(notes["result_class"], "private");
    assert_eq!(notes["constraints"]["paths"][1], "read:/srv/plans");
    let json = host().run(&["grants", "--tool", "other", "--json"]).json();
    assert_eq!(json["grants"].as_array().unwrap().len(), 0);
}

#[test]
fn an_expired_grant_says_so() {
    let host = host();
    host.file("grants/old.toml", &NOTES.replace("2999", "2001"));
    let ended = host.run(&["grants"]);
    assert!(
        ended
            .out
            .lines()
            .any(|line| line.starts_with("old ") && line.contains(" expired ")),
        "{}",
        ended.out
    );
    assert_eq!(
        host.run(&["grants", "--json"]).json()["grants"][2]["expired"],
        true
    );
}

#[test]
fn tools_are_listed_with_their_arguments_and_grants() {
    let ended = host().run(&["tools"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(
        ended.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ended.out
    );
    for part in [
        "Read one text file.",
        "path: path to read",
        "[first]: integer",
        "no-keys",
    ] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    let json = host().run(&["tools", "--json"]).json();
    let tool = &json["tools"][0];
    assert_eq!(
        (&tool["name"], &tool["has_side_effects"]),
        (&"fs_read".into(), &false.into())
    );
    assert_eq!(tool["grants"], serde_json::json!(["no-keys", "notes"]));
    assert_eq!(tool["timeout"], "30s");
}

#[test]
fn check_counts_what_is_right() {
    let ended = host().run(&["check"]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{ended:?}");
    let (counts, left) = ended
        .out
        .split_once("ok: ")
        .and_then(|(_, rest)| rest.split_once('\n'))
        .unwrap();
    assert!(
        counts.starts_with("2 grants, 1 tool, ") && counts.ends_with(" profiles"),
        "{ended:?}"
    );
    assert!(
        left.starts_with("left to `boxmaker up`: where granted paths"),
        "{ended:?}"
    );
    let json = host().run(&["check", "--json"]).json();
    assert_eq!(
        (&json["ok"], &json["grants"], &json["tools"]),
        (&true.into(), &2.into(), &1.into())
    );
    assert!(json["profiles"].as_u64().unwrap() >= 2);
    assert_eq!(json["errors"], serde_json::json!([]));
    assert_eq!(json["unseen"], serde_json::json!([]));
    assert_eq!(
        json["left_to_up"],
        serde_json::json!(["granted_paths", "as_without_root"])
    );
}

#[test]
fn check_warns_of_paths_that_are_not_there_and_grants_that_let_nothing_run() {
    let host = host();
    let there = host.home().join("notes");
    std::fs::create_dir(&there).unwrap();
    let there = there.to_str().unwrap();
    let deny = format!(
        "tool = \"fs_read\"\nmode = \"deny\"\nconstraints.paths = [\"read:{there}/keys\"]\n"
    );
    host.file("grants/no-keys.toml", &deny);
    let grant = |line: &str, path: &str| {
        let text = "tool = \"fs_read\"\nmode = \"auto\"\nmax_taint = \"private\"\n";
        format!("{text}{line}\nconstraints.paths = [\"read:{there}{path}\"]\n")
    };
    host.file(
        "grants/notes.toml",
        &grant("expires = \"2001-01-01T00:00:00.000Z\"", "/plans"),
    );
    let ended = host.run(&["check"]);
    let way = "correct the path, or make it, for which boxmaker need not be started again";
    let warnings = [
        format!("warning: grants/no-keys.toml:3: {there}/keys is not there: nothing is denied until it is; {way}\n"),
        "warning: grants/notes.toml:4: the grant lets nothing run: it expired at 2001-01-01T00:00:00.000Z; write a later time, or remove the file\n".to_owned(),
        format!("warning: grants/notes.toml:5: {there}/plans is not there: a call finds nothing until it is; {way}\n"),
    ];
    assert_eq!(ended.status, 0, "{ended:?}");
    let told = ended.out.split_once("ok: ").unwrap().0;
    assert_eq!(told, warnings.concat());
    let json = host.run(&["check", "--json"]).json();
    assert_eq!(
        (&json["ok"], &json["warnings"][1]["line"]),
        (&true.into(), &4.into())
    );
    assert_eq!(json["warnings"].as_array().unwrap().len(), 3);
    // The twin: nothing to warn of.
    std::fs::write(std::path::Path::new(there).join("keys"), "x").unwrap();
    host.file("grants/notes.toml", &grant("", ""));
    let ended = host.run(&["check"]);
    assert!(ended.out.starts_with("ok: "), "{ended:?}");
    assert_eq!(
        host.run(&["check", "--json"]).json()["warnings"],
        serde_json::json!([])
    );
}

#[test]
fn check_tells_what_cannot_be_used_of_every_file_at_once() {
    let host = host();
    host.file(
        "grants/no-keys.toml",
        "tool = \"fs_read\"\nmode = \"deny\"\nmdoe = 1\n",
    );
    host.file(
        "tools/fs_read.toml",
        &READ.replace("/usr/bin/cat", "/usr/bin/no-such"),
    );
    let ended = host.run(&["check"]);
    assert_eq!(ended.status, 1, "{ended:?}");
    let of_files = [
        "grants/no-keys.toml:3: unknown key `mdoe`; did you mean `mode`? ",
        "tools/fs_read.toml:4: program /usr/bin/no-such: No such file or directory (os error 2); install it or correct `command`",
    ];
    for told in of_files {
        assert!(ended.out.contains(told), "{told}: {ended:?}");
    }
    // The same beside files that were not read.
    host.file("grants/notes.txt", "");
    std::fs::create_dir(host.config().join("tools/x.toml")).unwrap();
    let ended = host.run(&["check"]);
    assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{ended:?}");
    let config = host.config();
    let of_directory = [
        format!(
            "{}/grants/notes.txt would be read by nobody: rules are read from names that end in .toml\n  rename it to end in .toml",
            config.display()
        ),
        format!(
            "{}/tools/x.toml is neither a file nor a directory\n  move it away",
            config.display()
        ),
    ];
    let told = of_directory.iter().map(String::as_str).chain(of_files);
    for told in told {
        assert!(ended.err.contains(told), "{told}: {ended:?}");
    }
    assert_eq!(host.run(&["grants"]).status, 2);
}

#[test]
fn check_names_file_line_rule_and_way_out_of_every_error() {
    let host = host();
    host.file(
        "grants/bad.toml",
        "tool = \"fs_read\"\nmode = \"auto\"\nmax_tint = \"private\"\n",
    );
    host.file("profiles/own.toml", "extends = \"tools/none\"\n");
    let ended = host.run(&["check"]);
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(ended.out.contains("grants/bad.toml:3: "), "{ended:?}");
    assert!(ended.out.contains("profiles/own.toml"), "{ended:?}");
    assert!(
        ended.out.lines().all(|line| line.contains("; ")),
        "{ended:?}"
    );
    let json = host.run(&["check", "--json"]).json();
    assert_eq!(json["ok"], false);
    let errors = json["errors"].as_array().unwrap();
    let named =
        |error: &&serde_json::Value| error["file"] == "grants/bad.toml" && error["line"] == 3;
    assert!(errors.iter().any(|error| named(&error)), "{json}");
}

#[test]
fn a_tool_without_its_profile_is_an_error_at_the_line_that_names_it() {
    let host = host();
    host.file(
        "tools/fs_read.toml",
        &READ.replace("tools/base", "tools/mine"),
    );
    let ended = host.run(&["check"]);
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(
        ended
            .out
            .starts_with("tools/fs_read.toml:5: there is no profile \"tools/mine\"; "),
        "{ended:?}"
    );
    host.file("profiles/tools/mine.toml", "extends = \"tools/base\"\n");
    assert_eq!(host.run(&["check"]).status, 0);
}

#[test]
fn a_program_or_user_that_is_not_there_is_an_error_at_the_line_that_names_it() {
    let host = host();
    host.file(
        "tools/fs_read.toml",
        &READ.replace("/usr/bin/cat", "/usr/bin/no-such"),
    );
    let user = NOTES.replace("mode", "as = \"nobody-at-all\"\nmode");
    host.file("grants/notes.toml", &user);
    let ended = host.run(&["check"]);
    assert_eq!(ended.status, 1, "{ended:?}");
    for told in [
        "grants/notes.toml:3: there is no user \"nobody-at-all\"; ",
        "tools/fs_read.toml:4: program /usr/bin/no-such: ",
    ] {
        assert!(ended.out.contains(told), "{ended:?}");
    }
    // A listing says what the files say.
    assert_eq!(host.run(&["tools"]).status, 0);
    host.file(
        "tools/fs_read.toml",
        &READ.replace("/usr/bin/cat", "/etc/passwd"),
    );
    host.file("grants/notes.toml", &user.replace("nobody-at-all", "root"));
    let json = host.run(&["check", "--json"]).json();
    assert_eq!(json["errors"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(json["errors"][0]["line"], 4);
    host.file("tools/fs_read.toml", READ);
    assert_eq!(host.run(&["check"]).status, 0);
}

#[test]
fn one_of_boxmakers_own_programs_stands_beside_bxctl() {
    let host = host();
    host.file("tools/fs_read.toml", &READ.replace("/usr/bin/cat", "bxctl"));
    assert_eq!(host.run(&["check"]).status, 0);
    host.file(
        "tools/fs_read.toml",
        &READ.replace("/usr/bin/cat", "no-such"),
    );
    let ended = host.run(&["check"]);
    let beside = std::path::Path::new(env!("CARGO_BIN_EXE_bxctl")).with_file_name("no-such");
    assert!(
        ended
            .out
            .contains(&format!("program {}: ", beside.display())),
        "{ended:?}"
    );
}

#[test]
fn a_configuration_that_others_may_write_is_refused_with_the_way_out() {
    use std::os::unix::fs::PermissionsExt as _;
    let host = host();
    let grant = host.config().join("grants/notes.toml");
    for command in ["check", "grants", "tools"] {
        assert_eq!(host.run(&[command]).status, 0);
        std::fs::set_permissions(&grant, std::fs::Permissions::from_mode(0o666)).unwrap();
        let ended = host.run(&[command]);
        std::fs::set_permissions(&grant, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(ended.status, 2, "{ended:?}");
        for told in [
            "grants/notes.toml may be written by everybody",
            "chmod go-w ",
        ] {
            assert!(ended.err.contains(told), "{ended:?}");
        }
    }
}

#[test]
fn a_listing_of_a_wrong_configuration_shows_the_errors_and_is_status_2() {
    let host = host();
    host.file("grants/bad.toml", "mode = \"auto\"\n");
    for words in [["grants"], ["tools"]] {
        let ended = host.run(&words);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{ended:?}");
        assert!(ended.err.contains("grants/bad.toml"), "{ended:?}");
    }
}

#[test]
fn a_configuration_that_is_not_there_is_unusable_input() {
    let host = host();
    for command in ["grants", "tools", "check"] {
        let ended = host.run(&[command, "--config", "/nonexistent"]);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{ended:?}");
        assert!(
            ended.err.contains("/nonexistent") && ended.err.contains("--config DIR"),
            "{ended:?}"
        );
    }
}
