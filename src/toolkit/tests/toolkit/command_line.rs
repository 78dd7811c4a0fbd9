//! Words, input and exit status.

use serde_json::json;

use crate::run::{How, TOOLKIT, binary, tool};

fn toolkit(words: &[&str], input: &str) -> crate::run::Ran {
    binary(TOOLKIT, words, input.as_bytes(), &How::default())
}

#[test]
fn help_names_every_tool_in_a_few_lines() {
    let help = toolkit(&["--help"], "").result();
    for tool in toolkit::TOOLS {
        assert!(help.contains(tool.name), "{help}");
        assert!(tool.about.len() < 120, "{help}");
    }
    assert!(help.lines().count() < 12, "{help}");
}

#[test]
fn an_unknown_tool_or_too_many_words_are_a_usage_error_that_shows_the_tools() {
    for words in [&["fs_remove"][..], &[], &["fs_read", "/etc/hostname"]] {
        let ran = toolkit(words, "{}");
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""));
        assert!(ran.err.contains("fs_write"), "{}", ran.err);
    }
}

#[test]
fn bad_arguments_fail_with_the_tool_and_the_fault() {
    let error = toolkit(&["fs_read"], "").failure();
    assert_eq!(
        error,
        "fs_read: standard input is empty: give one JSON object with the arguments\n"
    );
    let error = tool("fs_read", &json!({"path": "/etc", "lines": 3})).failure();
    assert!(
        error.starts_with("fs_read: ") && error.contains("unknown field `lines`"),
        "{error}"
    );
    let error = tool("fs_write", &json!({"path": "/etc"})).failure();
    assert!(error.contains("missing field `content`"), "{error}");
}
