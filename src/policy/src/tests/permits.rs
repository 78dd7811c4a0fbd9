//! What a permit hands to the launch, and what it refuses whoever asks.

use super::*;
use crate::{Binding, BindingAccess};

fn binding(root: &str, path: &str, access: BindingAccess, whole: bool) -> Binding {
    Binding {
        root: root.to_owned(),
        path: path.to_owned(),
        access,
        whole,
    }
}

#[test]
fn named_paths_are_bound_beneath_the_innermost_granted_path() {
    use BindingAccess::{Read, Write};
    let paths = ["read:/in", "read:/in/sub", "write:/in/sub", "write:/out"];
    let text = grant("copy", &paths, "after_untrusted = \"deny\"");
    let policy = policy(&[("g", &text)]);
    let permit = permit(&policy, "copy", "g", r#"{"from":"/in/sub/a","to":"/out"}"#).unwrap();
    assert_eq!(
        permit.bindings(),
        [
            binding("/in/sub", "/in/sub/a", Read, false),
            binding("/out", "/out", Write, false)
        ]
    );
    assert_eq!(permit.argv(), ["/usr/bin/cp", "--", "/in/sub/a", "/out"]);
    assert_eq!((permit.input(), permit.cwd().as_str()), ("", "/"));
    assert_eq!(
        (permit.tool().name().as_str(), permit.grant().id().as_str()),
        ("copy", "g")
    );
}

#[test]
fn an_edited_path_is_covered_only_where_it_may_be_read_and_written() {
    use BindingAccess::{Read, Write};
    let both = ["read:/srv", "write:/srv/out"];
    let edits =
        |paths: &[&str]| policy(&[("g", &grant("edit", paths, "after_untrusted = \"deny\""))]);
    let call = r#"{"path":"/srv/out/a"}"#;
    let permitted = permit(&edits(&both), "edit", "g", call).unwrap();
    assert_eq!(
        permitted.bindings(),
        [
            binding("/srv", "/srv/out/a", Read, false),
            binding("/srv/out", "/srv/out/a", Write, false)
        ]
    );
    for (paths, call) in [
        (&both[..1], call),
        (&both[1..], call),
        (&both[..], r#"{"path":"/srv/a"}"#),
    ] {
        let denial = permit(&edits(paths), "edit", "g", call).unwrap_err();
        assert_eq!(denial.reason, DenyReason::NoGrant, "{paths:?} {call}");
    }
}

#[test]
fn a_relative_path_is_joined_to_the_root_and_passed_as_it_was_spelled() {
    let policy = policy(&[("g", &reads(&["read:/srv/notes"], ""))]);
    let call = "{\n \"path\" : \"sub/a\" }";
    let permit = permit(&policy, "read", "g", call).unwrap();
    let bound = binding("/srv/notes", "/srv/notes/sub/a", BindingAccess::Read, false);
    assert_eq!(permit.bindings(), [bound]);
    assert_eq!(permit.cwd(), "/srv/notes");
    assert_eq!(permit.input(), call);
    assert_eq!(permit.argv(), ["toolkit", "fs_read"]);
}

#[test]
fn whole_paths_are_bound_only_where_no_argument_is_a_path() {
    let paths = ["read:/repo", "write:/repo/cache"];
    let more = "after_untrusted = \"deny\"\nmax_taint = \"public\"";
    let policy = policy(&[
        ("log", &grant("log", &paths, more)),
        ("read", &reads(&["read:/srv"], "")),
    ]);
    let whole = permit(&policy, "log", "log", r#"{"count":1}"#).unwrap();
    assert_eq!(
        whole.bindings(),
        [
            binding("/repo", "/repo", BindingAccess::Read, true),
            binding("/repo/cache", "/repo/cache", BindingAccess::Write, true)
        ]
    );
    assert_eq!(whole.cwd(), "/");
    let none = permit(&policy, "read", "read", "{}").unwrap();
    assert_eq!((none.bindings(), none.cwd().as_str()), (&[][..], "/"));
}

#[test]
fn a_permit_is_refused_for_the_reason_that_a_decision_would_give() {
    let policy = policy(&[
        ("good", &reads(&["read:/srv"], "")),
        (
            "old",
            &reads(&["read:/srv"], "expires = \"2020-01-01T00:00:00.000Z\""),
        ),
        (
            "ask",
            &reads(&["read:/srv"], "mode = \"ask\"\nmax_taint = \"secret\""),
        ),
        ("other", &grant("log", &[], "")),
        ("deny", &denies("read", &["read:/srv/x"])),
    ]);
    let a = r#"{"path":"/srv/a"}"#;
    for (tool, grant, arguments, want) in [
        ("read", "good", a, None),
        ("gone", "good", a, Some(DenyReason::UnknownTool)),
        ("read", "good", "{", Some(DenyReason::BadArguments)),
        (
            "read",
            "good",
            r#"{"path":"/srv/a","lines":"1"}"#,
            Some(DenyReason::BadArguments),
        ),
        ("read", "gone", a, Some(DenyReason::NoGrant)),
        ("read", "other", a, Some(DenyReason::NoGrant)),
        ("log", "good", r#"{"count":1}"#, Some(DenyReason::NoGrant)),
        ("log", "deny", r#"{"count":1}"#, Some(DenyReason::NoGrant)),
        ("log", "other", r#"{"count":1}"#, None),
        ("read", "deny", a, Some(DenyReason::DeniedByGrant)),
        (
            "read",
            "deny",
            r#"{"path":"/srv/x"}"#,
            Some(DenyReason::DeniedByGrant),
        ),
        (
            "read",
            "good",
            r#"{"path":"/srv/x/y"}"#,
            Some(DenyReason::DeniedByGrant),
        ),
        (
            "read",
            "good",
            r#"{"path":"x"}"#,
            Some(DenyReason::DeniedByGrant),
        ),
        (
            "read",
            "good",
            r#"{"path":"/etc"}"#,
            Some(DenyReason::NoGrant),
        ),
        (
            "read",
            "good",
            r#"{"path":"/srv/../etc"}"#,
            Some(DenyReason::NoGrant),
        ),
        ("read", "old", a, Some(DenyReason::GrantExpired)),
        // Whether it was answered is for the commit to see.
        ("read", "ask", a, None),
    ] {
        let permitted = permit(&policy, tool, grant, arguments);
        let reason = permitted.as_ref().err().map(|denial| denial.reason);
        assert_eq!(reason, want, "{tool} {grant} {arguments}");
    }
}

#[test]
fn a_permit_does_not_know_the_session() {
    let more = "after_untrusted = \"deny\"\nmax_taint = \"public\"";
    let policy = policy(&[("g", &grant("copy", &["read:/in", "write:/out"], more))]);
    let call = r#"{"from":"/in/a","to":"/out/a"}"#;
    assert!(permit(&policy, "copy", "g", call).is_ok());
    let session = SessionView {
        taint: DataClass::Public,
        untrusted: true,
    };
    assert_eq!(
        answer(&decide(&policy, session, "copy", call)),
        Err(DenyReason::UntrustedContext)
    );
}
