//! A compromised brokerd asks for sandboxes that the policy does not give.

use boxmaker_tests::binaries::skipped_without_root;
use proto::audit::ExitStatus;
use proto::broker::RefuseReason;
use proto::{Arguments, DecisionRecord, DenyReason, ErrorCode, Level};

use crate::calls::{Broker, at, commit, decide, grant};

#[test]
fn nothing_is_launched_but_what_a_grant_allows() {
    if skipped_without_root("nothing_is_launched_but_what_a_grant_allows") {
        return;
    }
    let mut broker = Broker::up();
    let note = at(&broker.home.path("notes/a.md"));
    let closed = at(&broker.home.path("notes/closed/b.md"));
    let hello = r#"{"text":"hello"}"#;
    let cases: &[(&str, &str, &str, DenyReason)] = &[
        ("fs_read", "nobody-wrote-this", &note, DenyReason::NoGrant),
        ("fs_read", "out", &note, DenyReason::NoGrant),
        ("fs_read", "echo", &note, DenyReason::NoGrant),
        ("echo", "act", hello, DenyReason::NoGrant),
        ("fs_read", "old", &note, DenyReason::GrantExpired),
        ("fs_read", "closed", &note, DenyReason::DeniedByGrant),
        ("fs_read", "closed", &closed, DenyReason::DeniedByGrant),
        ("fs_read", "notes", &closed, DenyReason::DeniedByGrant),
        ("nothing", "notes", &note, DenyReason::UnknownTool),
        ("toolkit", "notes", &note, DenyReason::UnknownTool),
    ];
    for (tool, grant, arguments, reason) in cases {
        assert_eq!(
            broker.denied(tool, grant, arguments),
            *reason,
            "{tool} under {grant}"
        );
    }
    for (tool, grant, arguments) in [("fs_read", "notes", note.as_str()), ("echo", "echo", hello)] {
        let ran = broker.call(tool, grant, arguments);
        assert_eq!(ran.exited.exit, Some(ExitStatus::Code(0)), "{}", ran.stderr);
    }
    assert_eq!(broker.home.decisions().len(), 2);
    broker.home.sound();
}

/// A sandbox may stand while the owner is asked; what nobody answered is not committed.
#[test]
fn a_grant_that_asks_starts_nothing_without_an_answer() {
    if skipped_without_root("a_grant_that_asks_starts_nothing_without_an_answer") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("asked", "asked", r#"{"text":"x"}"#);
    let approved = DecisionRecord::Approved {
        grant: grant("asked"),
        approver: "bxctl".to_owned(),
        post: None,
    };
    for (message, words) in [
        (commit(standing.ticket, &grant("asked")), "grant asked asks"),
        (decide(standing.ticket, approved), "no answer in the log"),
    ] {
        let (code, detail) = broker.relay.refused(message);
        assert_eq!(code, ErrorCode::BadMessage);
        assert!(detail.contains(words), "{detail}");
    }
    assert_eq!(broker.home.decisions(), []);
    let ticket = standing.ticket;
    broker.abort(ticket);
    assert_eq!(standing.output(), (String::new(), String::new()));
    // The same program under a grant that does not ask.
    broker.call("echo", "echo", r#"{"text":"x"}"#);
    assert_eq!(broker.home.decisions().len(), 1);
}

#[test]
fn arguments_that_break_the_schema_get_no_sandbox() {
    if skipped_without_root("arguments_that_break_the_schema_get_no_sandbox") {
        return;
    }
    let mut broker = Broker::up();
    let deep = format!("{{\"text\":{}1{}}}", "[".repeat(64), "]".repeat(64));
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(256 * 1024));
    for arguments in [
        "{}",
        r#"{"text":1}"#,
        r#"{"text":null}"#,
        r#"{"text":"x","more":1}"#,
        r#"{"text":"x","text":"y"}"#,
        r#"["text"]"#,
        r#"{"text":"x"} {"text":"y"}"#,
        r#"{"text":"x""#,
        "",
        &deep,
        &long,
    ] {
        assert_eq!(
            broker.denied("echo", "echo", arguments),
            DenyReason::BadArguments
        );
    }
    let ran = broker.call("echo", "echo", r#"{"text":"x"}"#);
    assert_eq!(ran.stdout, r#"{"text":"x"}"#);
}

#[test]
fn a_decision_under_another_generation_gets_no_sandbox() {
    if skipped_without_root("a_decision_under_another_generation_gets_no_sandbox") {
        return;
    }
    let mut broker = Broker::up();
    let own = broker.relay.generation;
    for generation in [own - 1, own + 1, u64::MAX] {
        let mut prepare = broker.request("echo", "echo", r#"{"text":"x"}"#);
        prepare.generation = generation;
        let refused = broker.try_prepare(prepare).unwrap_err();
        assert_eq!(refused.reason, RefuseReason::StaleGeneration);
        assert_eq!(refused.ticket, None);
    }
    broker.call("echo", "echo", r#"{"text":"x"}"#);
}

#[test]
fn the_tool_gets_the_arguments_that_are_recorded_and_no_others() {
    if skipped_without_root("the_tool_gets_the_arguments_that_are_recorded_and_no_others") {
        return;
    }
    let mut broker = Broker::up();
    // Every byte counts: spaces, an escape where none is needed, and what JSON would write in another way.
    let spelled = "{ \"text\" : \"gr\\u00fcn \\/ gr\u{fc}n\" }\n";
    let first = broker.call("echo", "echo", spelled);
    assert_eq!(first.stdout, spelled);
    let second = broker.call("echo", "echo", spelled);
    assert_eq!(second.stdout, spelled);
    let other = broker.call("echo", "echo", r#"{"text":"other"}"#);
    assert_eq!(other.stdout, r#"{"text":"other"}"#);

    let decisions = broker.home.decisions();
    let of = |seq: u64| {
        let found = decisions.iter().find(|(number, _)| *number == seq);
        found.unwrap().1.clone()
    };
    assert_eq!(of(first.seq).arguments, Arguments::Text(spelled.to_owned()));
    assert_eq!(
        of(second.seq).arguments,
        Arguments::SameAs { same_as: first.seq }
    );
    assert_eq!(
        of(other.seq).arguments,
        Arguments::Text(r#"{"text":"other"}"#.to_owned())
    );
    for ran in [&first, &second, &other] {
        let decision = of(ran.seq);
        assert_eq!(decision.tool, "echo");
        assert_eq!(decision.session, broker.session());
        assert_eq!(decision.generation, broker.relay.generation);
        let allowed = DecisionRecord::Allowed {
            grant: grant("echo"),
        };
        assert_eq!(decision.decision, allowed);
    }
    // The record has what was measured for the call, and the plan covers the input.
    let measured = |seq| of(seq).confinement.unwrap();
    assert!(measured(first.seq).level > Level::None);
    assert_eq!(measured(first.seq).plan, measured(second.seq).plan);
    assert_ne!(measured(first.seq).plan, measured(other.seq).plan);
    broker.home.sound();
}

#[test]
fn what_was_prepared_is_measured_and_says_so_in_the_record() {
    if skipped_without_root("what_was_prepared_is_measured_and_says_so_in_the_record") {
        return;
    }
    let mut broker = Broker::up();
    let standing = broker.prepare("echo", "echo", r#"{"text":"x"}"#);
    let (call, confinement) = (standing.call, standing.confinement.clone());
    let ran = broker.run(standing);
    let decisions = broker.home.decisions();
    let (_, decision) = decisions.iter().find(|(seq, _)| *seq == ran.seq).unwrap();
    assert_eq!(decision.call, call);
    assert_eq!(decision.confinement, Some(confinement));
}
