//! Every reason of policy.md section 2 that this version can give, next to the same call without the obstacle.

use super::*;

const A: &str = r#"{"path":"/srv/a"}"#;

fn tainted(taint: DataClass) -> SessionView {
    SessionView { taint, ..FRESH }
}

const UNTRUSTED: SessionView = SessionView {
    taint: DataClass::Private,
    untrusted: true,
};

#[test]
fn a_covered_call_is_allowed_and_recorded_under_its_grant() {
    let policy = policy(&[("srv", &reads(&["read:/srv"], ""))]);
    let decision = runs(decide(&policy, FRESH, "read", A));
    assert_eq!(decision.tool().as_str(), "read");
    assert!(decision.detail().contains("grant srv covers"));
    let record = serde_json::to_value(decision.into_record()).unwrap();
    assert_eq!(
        record,
        serde_json::json!({"outcome": "allowed", "grant": "srv"})
    );
}

#[test]
fn unknown_tool_says_whether_the_arguments_can_be_stored() {
    let policy = policy(&[("srv", &reads(&["read:/srv"], ""))]);
    assert_eq!(answer(&decide(&policy, FRESH, "read", A)), Ok("srv"));
    for (tool, arguments, storable) in [
        ("nothing", A, true),
        ("", "{}", true),
        ("READ", "{}", true),
        ("read\n\u{1b}[2J", "{", false),
        ("read.toml", "[]", false),
    ] {
        let denial = decide(&policy, FRESH, tool, arguments).unwrap_err();
        assert_eq!(denial.reason, DenyReason::UnknownTool, "{tool:?}");
        assert_eq!(denial.storable, storable, "{tool:?}");
        assert!(!denial.agent.chars().any(char::is_control));
    }
    for (tool, told) in [
        (
            "raed",
            "tool raed: there is no such tool; did you mean `read`?",
        ),
        ("nothing", "tool nothing: there is no such tool"),
    ] {
        assert_eq!(decide(&policy, FRESH, tool, A).unwrap_err().owner, told);
    }
    let long = decide(&policy, FRESH, &"x".repeat(100_000), "{}").unwrap_err();
    assert!(long.agent.len() < 200 && long.owner.len() < 200);
}

#[test]
fn unreadable_arguments_are_bad_arguments_before_any_grant() {
    let policy = policy(&[]);
    let denial = decide(&policy, FRESH, "read", r#"{"path":"a","path":"b"}"#).unwrap_err();
    assert_eq!(
        (denial.reason, denial.storable),
        (DenyReason::BadArguments, false)
    );
    let twin = decide(&policy, FRESH, "read", r#"{"path":"a"}"#).unwrap_err();
    assert_eq!((twin.reason, twin.storable), (DenyReason::NoGrant, true));
}

#[test]
fn arguments_that_the_schema_refuses_are_bad_arguments_and_named() {
    let policy = policy(&[
        ("srv", &reads(&["read:/srv"], "")),
        ("log", &grant("log", &[], "")),
    ]);
    for (tool, arguments, want) in [
        ("read", r#"{"path":"/srv/a","lines":1}"#, None),
        (
            "read",
            r#"{"path":"/srv/a","lines":1.0}"#,
            Some("argument `lines` must be an integer"),
        ),
        (
            "read",
            r#"{"path":"/srv/a","more":1}"#,
            Some("argument `more` is not known"),
        ),
        ("log", r#"{"count":3}"#, None),
        ("log", "{}", Some("argument `count` is required")),
        (
            "log",
            r#"{"count":-3}"#,
            Some("argument `count` must not begin with `-`"),
        ),
    ] {
        let decided = decide(&policy, FRESH, tool, arguments);
        match want {
            None => assert!(decided.is_ok(), "{arguments}"),
            Some(want) => {
                let denial = decided.unwrap_err();
                assert_eq!(
                    (denial.reason, denial.storable),
                    (DenyReason::BadArguments, true)
                );
                assert!(denial.agent.contains(want), "{}", denial.agent);
            }
        }
    }
}

#[test]
fn a_tool_without_a_grant_is_no_grant() {
    let policy = policy(&[("srv", &reads(&["read:/srv"], ""))]);
    let denial = decide(&policy, FRESH, "log", r#"{"count":1}"#).unwrap_err();
    assert_eq!((denial.reason, denial.grant), (DenyReason::NoGrant, None));
    assert_eq!(answer(&decide(&policy, FRESH, "read", A)), Ok("srv"));
}

#[test]
fn grants_end_at_the_millisecond_they_name() {
    let until = |time: &str| reads(&["read:/srv"], &format!("expires = \"{time}\""));
    let past = "2026-06-01T12:00:00.000Z";
    let soon = "2026-06-01T12:00:00.001Z";
    let denial = decide(&policy(&[("g", &until(past))]), FRESH, "read", A).unwrap_err();
    assert_eq!(denial.reason, DenyReason::GrantExpired);
    assert_eq!(denial.grant, Some(GrantId::new("g").unwrap()));
    assert!(
        denial
            .owner
            .contains("grant g: it expired at 2026-06-01T12:00:00.000Z"),
        "{}",
        denial.owner
    );
    assert_eq!(
        answer(&decide(&policy(&[("g", &until(soon))]), FRESH, "read", A)),
        Ok("g")
    );
    // One that lives is enough to get past this check, and its own obstacle is then the reason.
    let both = policy(&[("a", &until(past)), ("b", &reads(&["read:/other"], ""))]);
    assert_eq!(
        answer(&decide(&both, FRESH, "read", A)),
        Err(DenyReason::NoGrant)
    );
}

#[test]
fn a_record_names_the_grant_that_came_closest_and_none_where_none_covers() {
    let past = |mode: &str| {
        // One that asks lives longer, or the other would hide it.
        let hour = if mode == "ask" { 12 } else { 11 };
        let more = format!("mode = \"{mode}\"\nexpires = \"2026-06-01T{hour}:00:00.000Z\"");
        reads(&["read:/srv"], &more)
    };
    // Auto before ask, then by id.
    for (modes, want) in [
        (["ask", "auto", "auto"], "b"),
        (["auto", "ask", "auto"], "a"),
        (["ask", "ask", "auto"], "c"),
        (["ask", "ask", "ask"], "a"),
    ] {
        let texts = modes.map(past);
        let grants: Vec<(&str, &str)> = ["a", "b", "c"]
            .into_iter()
            .zip(texts.iter().map(String::as_str))
            .collect();
        let denial = decide(&policy(&grants), FRESH, "read", A).unwrap_err();
        assert_eq!(denial.reason, DenyReason::GrantExpired);
        assert_eq!(denial.grant.unwrap().as_str(), want, "{modes:?}");
    }
    let other = policy(&[("a", &reads(&["read:/other"], ""))]);
    let denial = decide(&other, FRESH, "read", A).unwrap_err();
    assert_eq!((denial.reason, denial.grant), (DenyReason::NoGrant, None));
    assert!(
        denial
            .owner
            .contains("grant a: no read path of the grant holds \"/srv/a\""),
        "{}",
        denial.owner
    );
}

#[test]
fn taint_above_the_grants_ceiling_is_refused() {
    use DataClass::{Private, Public, Secret};
    for (ceiling, taint, allowed) in [
        ("public", Public, true),
        ("public", Private, false),
        ("private", Private, true),
        ("private", Secret, false),
        ("secret", Secret, true),
    ] {
        let max = format!("max_taint = \"{ceiling}\"");
        let policy = policy(&[("g", &reads(&["read:/srv"], &max))]);
        let decided = decide(&policy, tainted(taint), "read", A);
        if allowed {
            assert_eq!(answer(&decided), Ok("g"));
        } else {
            let denial = decided.unwrap_err();
            assert_eq!(denial.reason, DenyReason::TaintTooHigh);
            assert_eq!(denial.grant, Some(GrantId::new("g").unwrap()));
            assert!(
                denial.owner.contains(&format!("max_taint is {ceiling}")),
                "{}",
                denial.owner
            );
            assert!(!denial.agent.contains(ceiling), "{}", denial.agent);
        }
    }
}

#[test]
fn after_untrusted_text_side_effects_need_a_grant_that_says_allow() {
    let call = r#"{"from":"/in/a","to":"/out/a"}"#;
    for (rule, session, want) in [
        ("deny", FRESH, Ok("g")),
        ("allow", FRESH, Ok("g")),
        ("allow", UNTRUSTED, Ok("g")),
        ("deny", UNTRUSTED, Err(DenyReason::UntrustedContext)),
    ] {
        let more = format!("after_untrusted = \"{rule}\"");
        let policy = policy(&[("g", &grant("copy", &["read:/in", "write:/out"], &more))]);
        assert_eq!(
            answer(&decide(&policy, session, "copy", call)),
            want,
            "{rule}"
        );
    }
    // The rule is about side effects: a tool without any is not governed by it.
    let reading = policy(&[("g", &reads(&["read:/srv"], "after_untrusted = \"deny\""))]);
    assert_eq!(answer(&decide(&reading, UNTRUSTED, "read", A)), Ok("g"));
}

#[test]
fn a_whole_path_that_may_be_written_is_a_side_effect() {
    let one = r#"{"count":1}"#;
    let granted = |access: &str| {
        let path = format!("{access}:/repo");
        policy(&[("g", &grant("log", &[&path], "after_untrusted = \"deny\""))])
    };
    assert_eq!(
        answer(&decide(&granted("read"), UNTRUSTED, "log", one)),
        Ok("g")
    );
    assert_eq!(
        answer(&decide(&granted("write"), FRESH, "log", one)),
        Ok("g")
    );
    assert_eq!(
        answer(&decide(&granted("write"), UNTRUSTED, "log", one)),
        Err(DenyReason::UntrustedContext)
    );
}

#[test]
fn the_first_check_that_leaves_no_grant_names_the_reason() {
    let expired = reads(&["read:/srv"], "expires = \"2020-01-01T00:00:00.000Z\"");
    let elsewhere = reads(&["read:/elsewhere"], "max_taint = \"public\"");
    let strict = reads(&["read:/srv"], "max_taint = \"public\"");
    let all = policy(&[("a", &expired), ("b", &elsewhere), ("c", &strict)]);
    let denial = decide(&all, FRESH, "read", A).unwrap_err();
    assert_eq!(denial.reason, DenyReason::TaintTooHigh);
    assert_eq!(denial.grant, Some(GrantId::new("c").unwrap()));
    for part in [
        "grant a: it expired",
        "grant b: argument `path`: no read path",
        "grant c: the session is at private",
    ] {
        assert!(denial.owner.contains(part), "{part}: {}", denial.owner);
    }
    // 8 before 10, and 3 before everything about grants.
    let bad = r#"{"path":"/srv/a","lines":"x"}"#;
    assert_eq!(
        answer(&decide(&all, FRESH, "read", bad)),
        Err(DenyReason::TaintTooHigh)
    );
    assert_eq!(
        answer(&decide(&all, FRESH, "read", "{")),
        Err(DenyReason::BadArguments)
    );
}

#[test]
fn the_caller_learns_no_grant_and_no_path() {
    let policy = policy(&[
        ("grant-one", &reads(&["read:/srv/private-place"], "")),
        ("grant-two", &denies("read", &["read:/srv/denied-place"])),
    ]);
    for path in [
        "/etc/passwd",
        "/srv/denied-place/a",
        "/srv/private",
        "a",
        "/srv/private-place/../x",
    ] {
        let arguments = serde_json::json!({ "path": path }).to_string();
        let denial = decide(&policy, FRESH, "read", &arguments);
        let Err(denial) = denial else { continue };
        assert!(denial.agent.contains("tool read"));
        assert!(denial.agent.ends_with("the same call will not pass again"));
        for secret in ["grant-", "place", "/srv", "/etc"] {
            assert!(!denial.agent.contains(secret), "{}", denial.agent);
        }
    }
    // Whether a path lies just outside of a grant or far from it reads the same.
    let near = decide(&policy, FRESH, "read", r#"{"path":"/srv/private-places"}"#).unwrap_err();
    let far = decide(&policy, FRESH, "read", r#"{"path":"/etc"}"#).unwrap_err();
    assert_eq!(near.agent, far.agent);
}

#[test]
fn the_owner_is_told_each_thing_once() {
    let policy = policy(&[
        ("one", &reads(&["read:/srv/a"], "")),
        ("two", &reads(&["read:/srv/b", "read:/srv/c"], "")),
    ]);
    for (path, want) in [
        (
            "a/../b",
            "tool read: argument `path` is not acceptable: a path must not hold the component `..`",
        ),
        (
            "/etc/a",
            "tool read: argument `path` is covered by no grant; grant one: no read path of the grant holds \"/etc/a\"; \
             grant two: no read path of the grant holds \"/etc/a\"",
        ),
    ] {
        let arguments = serde_json::json!({ "path": path }).to_string();
        let denial = decide(&policy, FRESH, "read", &arguments).unwrap_err();
        assert_eq!(denial.owner, want);
    }
}

#[test]
fn many_grants_do_not_make_an_endless_explanation() {
    let text = reads(&["read:/elsewhere"], "");
    let ids: Vec<String> = (0..200).map(|n| format!("g{n}")).collect();
    let grants: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), text.as_str())).collect();
    let denial = decide(&policy(&grants), FRESH, "read", A).unwrap_err();
    assert!(
        denial.owner.ends_with("and 168 more grants"),
        "{}",
        denial.owner
    );
}
