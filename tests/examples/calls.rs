//! Each example, called once as it is meant to be and once as it is not.

use boxmaker_tests::binaries::skipped_without_root;
use serde_json::{Value, json};

use crate::room::{Room, skipped_without_program};

#[test]
fn the_owners_notes_are_read_listed_examined_and_searched() {
    if skipped_without_root("the_owners_notes_are_read") {
        return;
    }
    let room = Room::new();
    let note = room
        .home
        .file("notes/garden.md", "Beans\nPeas\nThe hose leaks\n");
    room.home.file("notes/.gitignore", "*.bak\n");
    room.home.file("notes/old.bak", "The hose leaks\n");
    let notes = room.home.path("notes");
    let other = room.home.file("data/a.json", "{}");
    let mut room = room;
    room.start();
    let text = room.call("fs_read", &json!({"path": note})).result();
    assert_eq!(text, "Beans\nPeas\nThe hose leaks\n");
    let text = room.call("fs_list", &json!({"path": notes})).result();
    assert!(
        text.contains("garden.md") && text.contains("1 hidden entry"),
        "{text}"
    );
    let text = room.call("fs_stat", &json!({"path": note})).result();
    assert!(
        text.contains("size      26 bytes") && text.contains("mode      0600"),
        "{text}"
    );
    assert!(text.contains("(this tool's own)"), "{text}");
    let search = json!({"path": notes, "pattern": "h.se", "context": 1});
    let text = room.call("fs_search", &search).result();
    let expected = format!("{note}-2-Peas\n{note}:3:The hose leaks\n");
    assert!(text.starts_with(&expected), "{text}");
    assert!(
        text.contains("ignored = true") && text.ends_with("1 match in 1 of 1 file]\n"),
        "{text}"
    );
    for tool in ["fs_read", "fs_list", "fs_stat", "fs_search"] {
        let mut arguments = json!({"path": other});
        if tool == "fs_search" {
            arguments["pattern"] = json!("x");
        }
        let refusal = room.call(tool, &arguments).refusal();
        assert!(refusal.contains("no_grant"), "{tool}: {refusal}");
    }
}

#[test]
fn a_draft_is_written_read_back_and_edited_and_no_other_file_is_read_by_the_edit() {
    if skipped_without_root("a_draft_is_written") {
        return;
    }
    let room = Room::running();
    let draft = room.home.path("drafts/letter.md");
    let write = json!({"path": draft, "content": "Dear Sir,\nno.\n"});
    room.call("fs_write", &write).result();
    let edit = |old: &str| json!({"path": draft, "old": old, "new": "yes, please"});
    let text = room.call("fs_edit", &edit("no")).result();
    assert!(text.starts_with("1 occurrence replaced"), "{text}");
    assert!(!text.contains("in place"), "{text}");
    let text = room.call("fs_read", &json!({"path": draft})).result();
    assert_eq!(text, "Dear Sir,\nyes, please.\n");
    let refusal = room.call("fs_edit", &edit("e")).refusal();
    assert!(
        refusal.contains("occurs 4 times") && refusal.contains("lines 1 and 2"),
        "{refusal}"
    );
    assert_eq!(
        std::fs::read_to_string(&draft).unwrap(),
        "Dear Sir,\nyes, please.\n"
    );
    let metadata = std::fs::metadata(&draft).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&metadata), 1000);

    // What its sandbox lets be read of the granted tree is the one file.
    let plan = room.plan("fs_edit", &edit("e"));
    let rules: Vec<&Value> = plan["landlock"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| rule["rule"].is_object())
        .collect();
    let drafts = room.home.path("drafts");
    let expected = [
        json!({"path": drafts, "rule": {"tree": "write_files"}}),
        json!({"path": draft, "rule": {"tree": "read"}}),
    ];
    assert_eq!(rules, expected.iter().collect::<Vec<_>>());
    // The notes may be read by other tools, and not edited.
    let note = room.home.file("notes/a.md", "no");
    let refusal = room.call("fs_edit", &json!({"path": note, "old": "no", "new": "yes"}));
    assert!(refusal.refusal().contains("no_grant"));
}

#[test]
fn ripgrep_searches_code_with_its_fixed_options() {
    if skipped_without_root("ripgrep_searches_code") || skipped_without_program("rg") {
        return;
    }
    let room = Room::new();
    let file = room
        .home
        .file("code/p/main.rs", "fn main() {\n    // -x marks it\n}\n");
    room.home.file("code/p/.hidden", "-x");
    let code = room.home.path("code/p");
    let mut room = room;
    room.start();
    let call = |pattern: &str| json!({"pattern": pattern, "path": code});
    let text = room.call("rg", &call("-x marks")).result();
    assert_eq!(text, format!("{file}:2:    // -x marks it\n"));
    // An option is a pattern here: nothing is listed, no configuration is read.
    let refusal = room.call("rg", &call("--files")).refusal();
    assert!(
        refusal.contains("status 1") || refusal.contains("failed"),
        "{refusal}"
    );
    let refusal = room.call("rg", &call("(")).refusal();
    assert!(refusal.contains("unclosed group"), "{refusal}");
    let outside = json!({"pattern": "x", "path": "/usr/share"});
    assert!(room.call("rg", &outside).refusal().contains("no_grant"));
}

#[test]
fn jq_filters_a_file() {
    if skipped_without_root("jq_filters_a_file") || skipped_without_program("jq") {
        return;
    }
    let room = Room::new();
    let file = room.home.file(
        "data/a.json",
        r#"{"items":[{"name":"é","n":1},{"name":"b","n":2}]}"#,
    );
    let mut room = room;
    room.start();
    let call = |filter: &str| json!({"filter": filter, "file": file});
    let text = room.call("jq", &call(".items[] | {name}")).result();
    assert_eq!(text, "{\"name\":\"é\"}\n{\"name\":\"b\"}\n");
    let text = room.call("jq", &call("(-1)")).result();
    assert_eq!(text, "-1\n");
    // All that it could tell of its surroundings.
    let text = room.call("jq", &call("env | keys")).result();
    assert_eq!(text, "[\"HOME\",\"LANG\",\"PATH\"]\n");
    let refusal = room.call("jq", &call("--version")).refusal();
    assert!(refusal.contains("bad_arguments"), "{refusal}");
    let refusal = room.call("jq", &call(".items[")).refusal();
    assert!(
        refusal.contains("compile error") || refusal.contains("syntax error"),
        "{refusal}"
    );
}

#[test]
fn a_python_script_of_the_owners_works_on_the_file_of_a_call() {
    if skipped_without_root("a_python_script") || skipped_without_program("columns") {
        return;
    }
    let room = Room::new();
    let file = room
        .home
        .file("data/a.csv", "plant,kg\nbeans,3\npeas,2\nbeans,4\n");
    let mut room = room;
    room.start();
    let text = room.call("columns", &json!({"file": file})).result();
    let expected = "plant: 3 values, 2 different\nkg: 3 values, 3 different, 2 to 4, mean 3\n";
    assert_eq!(text, expected);
    // The interpreter takes no program from a call.
    let refusal = room.call("columns", &json!({"file": "-"})).refusal();
    assert!(refusal.contains("denied"), "{refusal}");
    let refusal = room
        .call("columns", &json!({"file": file, "script": file}))
        .refusal();
    assert!(refusal.contains("bad_arguments"), "{refusal}");
}
