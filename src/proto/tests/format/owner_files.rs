//! Files that the owner writes, with the fixtures `grant/`, `tool/`, `profile/` and `config/`: one that states every
//! key, one that states as little as it may, so that each default is in a test.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::config::{Approvals, Audit, CgroupChoice, Config, Restart, SessionCeilings};
use proto::grant::{AfterUntrusted, Constraints, Grant, Mode};
use proto::profile::{LimitsFile, ProfileFile};
use proto::tool::{Resource, ResultKind, Schema, SchemaType, ToolFile, ToolKind};
use proto::{DataClass, Layer, Level};
use serde::de::DeserializeOwned;

use crate::fixtures;
use crate::samples::{time, tool};

fn text(name: &str) -> String {
    String::from_utf8(fixtures::bytes(name)).unwrap()
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    toml::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn refusal<T: DeserializeOwned>(text: &str) -> String {
    match toml::from_str::<T>(text) {
        Ok(_) => panic!("this was taken:\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_grant_that_states_every_key_is_its_fixture() {
    let grant = Grant {
        tool: tool(),
        mode: Mode::Ask,
        max_taint: Some(DataClass::Secret),
        result_class: DataClass::Public,
        untrusted: false,
        expires: Some(time()),
        after_untrusted: Some(AfterUntrusted::Allow),
        confinement: Level::Partial,
        run_as: Some("ann".into()),
        secret: Some("token".into()),
        constraints: Constraints {
            paths: vec!["read:/srv/notes".into(), "write:/srv/out".into()],
            hosts: vec!["api.example.org".into()],
            patterns: vec!["to=*@example.org".into()],
        },
    };
    assert_eq!(read::<Grant>("grant/every_key.toml"), grant);
}

#[test]
fn a_grant_that_states_little_gets_the_defaults() {
    let grant = Grant {
        tool: tool(),
        mode: Mode::Deny,
        max_taint: None,
        result_class: DataClass::Private,
        untrusted: true,
        expires: None,
        after_untrusted: None,
        confinement: Level::Full,
        run_as: None,
        secret: None,
        constraints: Constraints::default(),
    };
    assert_eq!(read::<Grant>("grant/few_keys.toml"), grant);
}

#[test]
fn a_tool_file_that_states_every_key_is_its_fixture() {
    let described = |kind, text: Option<&str>| Schema {
        kind: Some(kind),
        description: text.map(str::to_owned),
        ..nothing()
    };
    let tool = ToolFile {
        description: "Read one text file.".into(),
        kind: ToolKind::Stdio,
        command: vec!["toolkit".into(), "fs_read".into()],
        profile: "tools/base".into(),
        side_effect: false,
        timeout: Duration::from_millis(1500),
        max_output: 1024,
        result: ResultKind::Secret,
        resources: BTreeMap::from([
            ("path".into(), Resource::Read),
            ("to".into(), Resource::Write),
        ]),
        arguments: Schema {
            kind: Some(SchemaType::Object),
            title: Some("Arguments".into()),
            required: vec!["path".into()],
            additional_properties: true,
            properties: BTreeMap::from([
                (
                    "path".into(),
                    described(SchemaType::String, Some("Which file.")),
                ),
                ("to".into(), described(SchemaType::String, None)),
                (
                    "first".into(),
                    Schema {
                        default: Some(1.into()),
                        ..described(SchemaType::Integer, None)
                    },
                ),
            ]),
            ..nothing()
        },
    };
    assert_eq!(read::<ToolFile>("tool/every_key.toml"), tool);
}

#[test]
fn a_tool_file_that_states_little_gets_the_defaults() {
    let tool = ToolFile {
        description: "Show the history of a repository.".into(),
        kind: ToolKind::Argv,
        command: vec!["/usr/bin/git".into(), "log".into()],
        profile: "tools/base".into(),
        side_effect: true,
        timeout: Duration::from_secs(30),
        max_output: 262_144,
        result: ResultKind::Text,
        resources: BTreeMap::new(),
        arguments: Schema {
            kind: Some(SchemaType::Object),
            ..nothing()
        },
    };
    assert_eq!(read::<ToolFile>("tool/few_keys.toml"), tool);
}

/// The schema that a table without keys is.
fn nothing() -> Schema {
    Schema {
        kind: None,
        properties: BTreeMap::new(),
        required: Vec::new(),
        additional_properties: false,
        title: None,
        description: None,
        default: None,
    }
}

#[test]
fn a_profile_that_states_every_key_is_its_fixture() {
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    let profile = ProfileFile {
        extends: Some("tools/base".into()),
        namespaces: words(&["user?", "mount", "pid", "net", "ipc", "uts", "cgroup"]),
        view: words(&["/usr", "/lib"]),
        exec: words(&["/usr/bin/python3*"]),
        env: Some(BTreeMap::from([("LANG".into(), "C.UTF-8".into())])),
        seccomp: words(&["base"]),
        limits: LimitsFile {
            memory: Some("512M".into()),
            pids: Some(64),
            cpu: Some("100%".into()),
            files: Some(256),
            wall: Some("60s".into()),
            scratch: Some("64M".into()),
        },
    };
    assert_eq!(read::<ProfileFile>("profile/every_key.toml"), profile);
}

#[test]
fn a_profile_says_nothing_where_it_states_nothing() {
    let empty = ProfileFile {
        extends: Some("tools/base".into()),
        exec: Some(Vec::new()),
        ..ProfileFile::default()
    };
    assert_eq!(read::<ProfileFile>("profile/few_keys.toml"), empty);
}

#[test]
fn a_configuration_that_states_every_key_is_its_fixture() {
    let config = Config {
        waive: vec![Layer::LandlockNet, Layer::Memory],
        uid_range: (70_000, 1_000),
        cgroup: CgroupChoice::V1,
        restart: Restart {
            backoff_first: Duration::from_millis(250),
            backoff_max: Duration::from_secs(60),
            jitter: 50,
            give_up: 3.try_into().unwrap(),
            window: Duration::from_secs(3600),
        },
        approvals: Approvals {
            expiry: Duration::from_secs(90),
        },
        session: SessionCeilings {
            denials: 50.try_into().unwrap(),
        },
        audit: Audit {
            max_bytes: 1_073_741_824.try_into().unwrap(),
        },
        pool: [("tools/*".to_owned(), 0), ("tools/python".to_owned(), 4)].into(),
    };
    assert_eq!(read::<Config>("config/every_key.toml"), config);
}

#[test]
fn an_empty_configuration_gets_the_defaults() {
    let config = Config {
        waive: Vec::new(),
        uid_range: (1_879_048_192, 65_536),
        cgroup: CgroupChoice::Auto,
        restart: Restart {
            backoff_first: Duration::from_millis(100),
            backoff_max: Duration::from_secs(30),
            jitter: 20,
            give_up: 10.try_into().unwrap(),
            window: Duration::from_secs(300),
        },
        approvals: Approvals {
            expiry: Duration::from_secs(600),
        },
        session: SessionCeilings {
            denials: 1000.try_into().unwrap(),
        },
        audit: Audit {
            max_bytes: 8_589_934_592.try_into().unwrap(),
        },
        pool: BTreeMap::new(),
    };
    assert_eq!(read::<Config>("config/few_keys.toml"), config);
    assert_eq!(Config::default(), config);
}

#[test]
fn every_table_of_an_owners_file_refuses_an_unknown_key() {
    type Refused = fn(&str) -> String;
    let cases: [(&str, Refused, &[&str]); 4] = [
        (
            "grant/every_key.toml",
            refusal::<Grant>,
            &["", "[constraints]"],
        ),
        (
            "tool/every_key.toml",
            refusal::<ToolFile>,
            &["", "[arguments]", "[arguments.properties.path]"],
        ),
        (
            "profile/every_key.toml",
            refusal::<ProfileFile>,
            &["", "[limits]"],
        ),
        (
            "config/every_key.toml",
            refusal::<Config>,
            &["", "[restart]", "[approvals]", "[session]", "[audit]"],
        ),
    ];
    for (name, refused, tables) in cases {
        for table in tables {
            let whole = text(name);
            let spoiled = match *table {
                "" => format!("surprise = 1\n{whole}"),
                table => whole.replace(table, &format!("{table}\nsurprise = 1")),
            };
            let said = refused(&spoiled);
            assert!(
                said.contains("unknown field `surprise`"),
                "{name} {table}: {said}"
            );
        }
    }
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let twice = format!("tool = \"fs_write\"\n{}", text("grant/few_keys.toml"));
    assert!(refusal::<Grant>(&twice).contains("duplicate key"));
}

#[test]
fn words_of_the_format_that_nothing_enforces_yet_are_no_values() {
    let grant = |line: &str| format!("{}{line}\n", text("grant/few_keys.toml"));
    for word in ["prove", "prove_strict", "ask"] {
        let said = refusal::<Grant>(&grant(&format!("after_untrusted = \"{word}\"")));
        assert!(
            said.contains(&format!("unknown variant `{word}`")),
            "{said}"
        );
    }
    for line in [
        "max_calls = 20",
        "skill = \"files\"",
        "approve_from = [\"bxctl\"]",
    ] {
        let said = refusal::<Grant>(&grant(line));
        assert!(said.contains("unknown field"), "{said}");
    }
    for table in [
        "[capability]\non_miss = \"block\"",
        "[[inject]]\nref = \"env:X\"",
    ] {
        assert!(refusal::<Grant>(&grant(table)).contains("unknown field"));
    }
    for line in ["capability = false", "cost = 0", "skill = \"files\""] {
        let tool = format!("{line}\n{}", text("tool/few_keys.toml"));
        assert!(refusal::<ToolFile>(&tool).contains("unknown field"));
    }
    let mcp = text("tool/few_keys.toml").replace("argv", "mcp");
    assert!(refusal::<ToolFile>(&mcp).contains("unknown variant `mcp`"));
    for keyword in [
        "enum = [1]",
        "minLength = 1",
        "items = { type = \"string\" }",
        "pattern = \"x\"",
    ] {
        let tool = format!("{}{keyword}\n", text("tool/few_keys.toml"));
        assert!(
            refusal::<ToolFile>(&tool).contains("unknown field"),
            "{keyword}"
        );
    }
    for table in [
        "[restart]\noften = true",
        "[approvals]\nbatch = 8",
        "[session]\ncalls = 3",
        "[audit]\nanchor_journal = true",
        "[model]",
        "[secrets]",
        "[redact]",
    ] {
        assert!(
            refusal::<Config>(table).contains("unknown field"),
            "{table}"
        );
    }
}

#[test]
fn a_timeout_lies_between_nothing_and_a_day() {
    let tool = |timeout: &str| format!("timeout = \"{timeout}\"\n{}", text("tool/few_keys.toml"));
    for (written, meant) in [("1ms", 1), ("2m", 120_000), ("1day", 86_400_000)] {
        let read: ToolFile = toml::from_str(&tool(written)).unwrap();
        assert_eq!(read.timeout, Duration::from_millis(meant));
    }
    for wrong in ["0s", "86401s", "-1s", "30", "", "soon"] {
        refusal::<ToolFile>(&tool(wrong));
    }
}
