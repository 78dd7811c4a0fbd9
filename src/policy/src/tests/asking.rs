//! Grants that ask: when a call becomes a question, and which asks are refused when they are loaded.

use super::*;

const A: &str = r#"{"path":"/srv/a"}"#;

fn ask(paths: &[&str], more: &str) -> String {
    reads(paths, &format!("mode = \"ask\"\n{more}"))
}

fn asks(decided: Result<Decided, Denial>) -> crate::Question {
    match decided {
        Ok(Decided::Asks(question)) => question,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_that_an_ask_covers_is_a_question_and_its_answer_a_record() {
    let policy = policy(&[("g", &ask(&["read:/srv"], ""))]);
    let question = asks(decide(&policy, FRESH, "read", A));
    assert_eq!(
        (question.tool().as_str(), question.grant().as_str()),
        ("read", "g")
    );
    assert!(
        question
            .detail()
            .contains("grant g covers the call and asks")
    );
    assert_eq!(
        serde_json::to_value(question.approved("bxctl").into_record()).unwrap(),
        serde_json::json!({"outcome": "approved", "grant": "g", "approver": "bxctl", "post": null})
    );
}

#[test]
fn everything_that_refuses_a_call_refuses_it_unasked() {
    let policy = policy(&[("g", &ask(&["read:/srv"], ""))]);
    let tainted = SessionView {
        taint: DataClass::Secret,
        ..FRESH
    };
    let etc = r#"{"path":"/etc"}"#;
    let bad = r#"{"path":"/srv/a","lines":"1"}"#;
    for (session, arguments, want) in [
        (FRESH, A, Ok("g")),
        (tainted, A, Err(DenyReason::TaintTooHigh)),
        (FRESH, etc, Err(DenyReason::NoGrant)),
        (FRESH, bad, Err(DenyReason::BadArguments)),
    ] {
        let decided = decide(&policy, session, "read", arguments);
        assert_eq!(answer(&decided), want, "{arguments}");
    }
}

#[test]
fn a_grant_that_does_not_ask_is_preferred_whatever_the_order_of_the_ids() {
    let wide = ask(&["read:/srv"], "");
    let narrow = reads(&["read:/srv/a"], "");
    for (ask, auto) in [("a", "b"), ("b", "a")] {
        let policy = policy(&[(ask, &wide), (auto, &narrow)]);
        let decision = runs(decide(&policy, FRESH, "read", A));
        assert_eq!(decision.grant().as_str(), auto);
        let other = r#"{"path":"/srv/b"}"#;
        assert_eq!(
            asks(decide(&policy, FRESH, "read", other)).grant().as_str(),
            ask
        );
    }
    let both = policy(&[("b", &wide), ("c", &wide)]);
    assert_eq!(asks(decide(&both, FRESH, "read", A)).grant().as_str(), "b");
}

#[test]
fn an_ask_that_never_asks_is_an_error_that_names_both() {
    let secret = "max_taint = \"secret\"";
    let until = "expires = \"2030-01-01T00:00:00.000Z\"";
    let cases: &[(&str, String, String, bool)] = &[
        (
            "read",
            ask(&["read:/srv"], ""),
            reads(&["read:/srv"], ""),
            true,
        ),
        (
            "read",
            ask(&["read:/srv/a"], ""),
            reads(&["read:/srv"], ""),
            true,
        ),
        (
            "read",
            ask(&["read:/srv"], ""),
            reads(&["read:/srv/a"], ""),
            false,
        ),
        (
            "read",
            ask(&["read:/srv"], secret),
            reads(&["read:/srv"], ""),
            false,
        ),
        (
            "read",
            ask(&["read:/srv"], ""),
            reads(&["read:/srv"], secret),
            true,
        ),
        (
            "read",
            ask(&["read:/srv"], ""),
            reads(&["read:/srv"], until),
            false,
        ),
        (
            "read",
            ask(&["read:/srv"], until),
            reads(&["read:/srv"], ""),
            true,
        ),
        // A relative path is covered by no grant with two roots.
        (
            "read",
            ask(&["read:/srv"], ""),
            reads(&["read:/srv", "read:/opt"], ""),
            false,
        ),
        (
            "read",
            ask(&["read:/srv", "read:/opt"], ""),
            reads(&["read:/srv", "read:/opt"], ""),
            true,
        ),
        // Below / a relative path may be one of the kernel's.
        (
            "read",
            ask(&["read:/srv"], ""),
            reads(&["read:/"], ""),
            false,
        ),
        // A tool that names no path gets the whole of whatever is granted.
        (
            "log",
            grant("log", &["read:/srv"], "mode = \"ask\""),
            grant("log", &["read:/opt"], ""),
            true,
        ),
        // Once the session has read untrusted text only the ask is left.
        (
            "copy",
            grant(
                "copy",
                &["read:/in", "write:/out"],
                "mode = \"ask\"\nafter_untrusted = \"allow\"",
            ),
            grant(
                "copy",
                &["read:/in", "write:/out"],
                "after_untrusted = \"deny\"",
            ),
            false,
        ),
        (
            "copy",
            grant(
                "copy",
                &["read:/in", "write:/out"],
                "mode = \"ask\"\nafter_untrusted = \"deny\"",
            ),
            grant(
                "copy",
                &["read:/in", "write:/out"],
                "after_untrusted = \"deny\"",
            ),
            true,
        ),
    ];
    for (tool, ask, auto, hidden) in cases {
        let loaded = load(&[("ask", ask), ("auto", auto)]);
        let errors: Vec<String> = loaded
            .err()
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect();
        if *hidden {
            let said = "grant ask never asks: grant auto lets every call";
            assert_eq!(errors.len(), 1, "{tool} {ask} {auto}");
            assert!(
                errors[0].starts_with("grants/ask.toml:3: ") && errors[0].contains(said),
                "{errors:?}"
            );
        } else {
            assert_eq!(errors, Vec::<String>::new(), "{tool} {ask} {auto}");
        }
    }
}

#[test]
fn a_deny_grant_that_stops_only_the_other_leaves_the_ask() {
    let narrow = ask(&["read:/srv/a"], "");
    let wide = reads(&["read:/srv"], "");
    let deny = denies("read", &["read:/srv/x"]);
    assert!(load(&[("ask", &narrow), ("auto", &wide)]).is_err());
    let policy = policy(&[("ask", &narrow), ("auto", &wide), ("deny", &deny)]);
    let relative = r#"{"path":"x"}"#;
    assert_eq!(
        asks(decide(&policy, FRESH, "read", relative))
            .grant()
            .as_str(),
        "ask"
    );
}

#[test]
fn how_long_a_question_stands_is_the_owners_to_say_and_nothing_else_is() {
    expect("config.toml", "[approvals]\nexpiry = \"2s\"\n", &[]);
    expect("config.toml", "approvals.expiry = \"1h\"\n", &[]);
    for (text, want) in [
        (
            "[approvals]\nbatch = 8\n",
            "2: `approvals.batch` is known to the format",
        ),
        (
            "[approvals]\ncolor = 8\n",
            "2: unknown key `approvals.color`",
        ),
        (
            "[approvals]\nexpiry = \"0s\"\n",
            "2: `approvals.expiry`: \"0s\" is out of range",
        ),
        (
            "[approvals]\nexpiry = \"2days\"\n",
            "2: `approvals.expiry`: \"2days\" is out of range",
        ),
        ("approvals = [\"1h\"]\n", "1: `approvals` is no table"),
    ] {
        expect("config.toml", text, &[want]);
    }
}
