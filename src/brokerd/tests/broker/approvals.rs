//! A call that asks: what is recorded, who is told, in which order, and what an answer lets run.

use proto::audit::SessionEvent;
use proto::broker::{HistoryEntry, RecordEntry};
use proto::client::{AnswerQuestion, Question, SessionEnd, ToolResponse};
use proto::role::Empty;
use proto::{
    Answer, Approval, ApprovalEvent, ApprovalId, CallId, DataClass, DecisionRecord, DenyReason,
    ErrorCode, GrantId, Hash32, Message, Timestamp, WireError,
};
use sha2::{Digest as _, Sha256};

use crate::supervisor::{Client, KEY, NOTE, Supervisor, files, session};

const ASKED: &str = r#"{"path": "/srv/asked/\u202e\n.md"}"#;

const ASK: &str = r#"
tool = "show"
mode = "ask"
max_taint = "private"
constraints.paths = ["read:/srv/asked"]
"#;

fn id(text: &str) -> ApprovalId {
    ApprovalId::new(text).unwrap()
}

fn with(config: &str) -> ipc::Files {
    let mut files = files();
    files.0.insert("grants/asked.toml".into(), ASK.into());
    files.0.insert("config.toml".into(), config.into());
    files
}

fn up(config: &str) -> Supervisor {
    let supervisor = Supervisor::start(&["bxctl"], &with(config), &[]);
    assert_eq!(supervisor.next().msg, Message::Ready(Empty {}));
    supervisor
}

fn approval(supervisor: &Supervisor) -> (u64, Approval) {
    match supervisor.record() {
        (id, RecordEntry::Approval(approval)) => (id, approval),
        other => panic!("{other:?}"),
    }
}

/// The answer that is not the last.
fn pending(client: &Client) -> (ApprovalId, Timestamp) {
    let envelope = client.connection.receive().unwrap().unwrap().envelope;
    assert!(!envelope.r#final);
    match envelope.msg {
        Message::ToolResponse(ToolResponse::PendingApproval { approval, expires }) => {
            (approval, expires)
        }
        other => panic!("{other:?}"),
    }
}

/// Makes a call that asks, up to the question.
fn ask(supervisor: &Supervisor, client: &mut Client, name: &str) -> ApprovalId {
    client.call(name, "show", ASKED);
    let (number, approval) = approval(supervisor);
    assert!(matches!(approval.event, ApprovalEvent::Asked { .. }));
    supervisor.recorded(number, 2);
    pending(client).0
}

fn answer(client: &mut Client, approval: &ApprovalId, answer: Answer) {
    let approval = approval.clone();
    client.ask(match answer {
        Answer::Approved => Message::Approve(AnswerQuestion { approval }),
        Answer::Refused => Message::Refuse(AnswerQuestion { approval }),
    });
}

/// Answers a question, with its record.
fn say(supervisor: &Supervisor, owner: &mut Client, question: &ApprovalId, word: Answer) {
    answer(owner, question, word);
    let (number, approval) = approval(supervisor);
    let answered = ApprovalEvent::Answered {
        answer: word,
        by: "bxctl".into(),
        post: None,
    };
    assert_eq!(approval.event, answered);
    supervisor.recorded(number, 3);
    assert_eq!(owner.answer(), Message::Ok(Empty {}));
}

fn questions(owner: &mut Client) -> Vec<Question> {
    owner.ask(Message::Approvals(Empty {}));
    let mut all = Vec::new();
    loop {
        let envelope = owner.connection.receive().unwrap().unwrap().envelope;
        match envelope.msg {
            Message::ApprovalsReply(reply) => all.extend(reply.approvals),
            other => panic!("{other:?}"),
        }
        if envelope.r#final {
            return all;
        }
    }
}

/// The refusal that is recorded next, and its reason.
fn refused(supervisor: &Supervisor, client: &Client) -> (DenyReason, String) {
    let (number, entry) = supervisor.record();
    let RecordEntry::Decision {
        decision: DecisionRecord::Denied { reason, .. },
        detail,
        ..
    } = entry
    else {
        panic!("{entry:?}");
    };
    supervisor.recorded(number, 4);
    match client.response() {
        ToolResponse::Denied { reason: told, .. } => assert_eq!(told, reason),
        other => panic!("{other:?}"),
    }
    (reason, detail)
}

#[test]
fn a_question_is_recorded_with_the_hash_of_the_exact_arguments_before_it_is_shown() {
    let supervisor = up("approvals.expiry = \"2m\"\n");
    let mut client = supervisor.session("s");
    let mut owner = supervisor.client();
    client.call("s", "show", ASKED);
    let (number, asked) = approval(&supervisor);
    assert_eq!(
        (&asked.approval, &asked.session, asked.call),
        (&id("a1"), &session("s"), CallId(1))
    );
    let ApprovalEvent::Asked {
        tool,
        grant,
        arguments,
        expires,
    } = asked.event
    else {
        panic!("{:?}", asked.event);
    };
    assert_eq!((tool.as_str(), grant.as_str()), ("show", "asked"));
    assert_eq!(arguments, Hash32::new(Sha256::digest(ASKED).into()));
    assert!(client.waits());
    assert_eq!(questions(&mut owner), []);
    answer(&mut owner, &asked.approval, Answer::Approved);
    assert_eq!(owner.error().code, ErrorCode::UnknownApproval);

    supervisor.recorded(number, 2);
    assert_eq!(pending(&client), (id("a1"), expires));
    let shown = questions(&mut supervisor.client());
    let [question] = shown.as_slice() else {
        panic!("{shown:?}");
    };
    assert_eq!(question.arguments, ASKED);
    assert_eq!((&question.approval, question.expires), (&id("a1"), expires));
    assert_eq!(expires.as_millis(), question.asked.as_millis() + 120_000);
    assert_eq!(
        (question.taint, question.untrusted),
        (DataClass::Private, false)
    );
    assert!(question.why.contains("grant asked"), "{}", question.why);
}

#[test]
fn an_approved_call_is_prepared_with_those_bytes_and_committed_as_approved() {
    let supervisor = up("");
    let mut client = supervisor.session("s");
    let mut owner = supervisor.client();
    let question = ask(&supervisor, &mut client, "s");
    answer(&mut owner, &question, Answer::Approved);
    let (number, answered) = approval(&supervisor);
    assert!(matches!(answered.event, ApprovalEvent::Answered { .. }));
    // Neither the call nor the owner goes on before the answer is durable.
    assert!(supervisor.silent() && owner.waits());
    supervisor.recorded(number, 3);
    assert_eq!(owner.answer(), Message::Ok(Empty {}));

    let (number, prepare) = supervisor.prepare();
    assert_eq!(prepare.arguments, ASKED);
    assert_eq!(prepare.call, CallId(1));
    let sandbox = supervisor.prepared(number, 7);
    let (number, commit) = supervisor.commit();
    let approved = DecisionRecord::Approved {
        grant: GrantId::new("asked").unwrap(),
        approver: "bxctl".into(),
        post: None,
    };
    assert_eq!(commit.decision, approved);
    let ticket = sandbox.ticket;
    let committed = proto::broker::Committed { ticket, seq: 5 };
    supervisor.say(number, Message::Committed(committed));
    supervisor.end_call(sandbox);
    assert!(matches!(client.response(), ToolResponse::Result { .. }));

    assert_eq!(questions(&mut owner), []);
    for word in [Answer::Approved, Answer::Refused] {
        let mut owner = supervisor.client();
        answer(&mut owner, &question, word);
        assert_eq!(owner.error().code, ErrorCode::UnknownApproval);
    }
}

#[test]
fn a_refused_question_is_a_denial() {
    let supervisor = up("");
    let mut client = supervisor.session("s");
    let question = ask(&supervisor, &mut client, "s");
    say(
        &supervisor,
        &mut supervisor.client(),
        &question,
        Answer::Refused,
    );
    let (reason, detail) = refused(&supervisor, &client);
    assert_eq!(reason, DenyReason::ApprovalRefused);
    assert_eq!(detail, "bxctl refused question a1");
}

#[test]
fn a_question_that_nobody_answers_expires_and_the_call_is_refused() {
    let supervisor = up("approvals.expiry = \"100ms\"\n");
    let mut client = supervisor.session("s");
    ask(&supervisor, &mut client, "s");
    let (number, expired) = approval(&supervisor);
    assert_eq!(expired.event, ApprovalEvent::Expired {});
    supervisor.recorded(number, 3);
    let (reason, _) = refused(&supervisor, &client);
    assert_eq!(reason, DenyReason::ApprovalExpired);
}

#[test]
fn a_caller_that_hangs_up_withdraws_its_question() {
    let supervisor = up("");
    let mut client = supervisor.session("s");
    let question = ask(&supervisor, &mut client, "s");
    drop(client);
    let (number, withdrawn) = approval(&supervisor);
    assert_eq!(withdrawn.event, ApprovalEvent::Withdrawn {});
    supervisor.recorded(number, 3);
    let mut owner = supervisor.client();
    answer(&mut owner, &question, Answer::Approved);
    assert_eq!(owner.error().code, ErrorCode::UnknownApproval);
}

#[test]
fn the_end_of_a_session_withdraws_its_questions() {
    let supervisor = up("");
    let mut client = supervisor.session("s");
    ask(&supervisor, &mut client, "s");
    let mut owner = supervisor.client();
    let session = session("s");
    owner.ask(Message::SessionEnd(SessionEnd { session }));
    let (number, _) = supervisor.record();
    supervisor.recorded(number, 3);
    let (number, withdrawn) = approval(&supervisor);
    assert_eq!(withdrawn.event, ApprovalEvent::Withdrawn {});
    supervisor.recorded(number, 4);
    assert_eq!(client.error().code, ErrorCode::UnknownSession);
    assert_eq!(owner.answer(), Message::Ok(Empty {}));
}

#[test]
fn the_call_is_decided_again_on_the_state_of_the_answer() {
    let supervisor = up("");
    let mut client = supervisor.session("s");
    let question = ask(&supervisor, &mut client, "s");
    // Another caller of the session is not held up, and taints it.
    let mut other = supervisor.client();
    other.call("s", "show", KEY);
    let sandbox = supervisor.run_call(9, 3);
    supervisor.end_call(sandbox);
    assert!(matches!(other.response(), ToolResponse::Result { .. }));
    say(&supervisor, &mut other, &question, Answer::Approved);
    let (reason, _) = refused(&supervisor, &client);
    assert_eq!(reason, DenyReason::TaintTooHigh);
}

#[test]
fn an_answer_is_to_the_grant_that_asked() {
    let supervisor = up("");
    let mut client = supervisor.session("s");
    let question = ask(&supervisor, &mut client, "s");
    let mut other = with("");
    let ask = other.0.remove("grants/asked.toml").unwrap();
    other.0.insert("grants/later.toml".into(), ask);
    supervisor.policy(&other, 2);
    supervisor.heard();
    say(
        &supervisor,
        &mut supervisor.client(),
        &question,
        Answer::Approved,
    );
    let (reason, detail) = refused(&supervisor, &client);
    assert_eq!(reason, DenyReason::ApprovalExpired);
    assert!(
        detail.contains("grant asked") && detail.contains("grant later"),
        "{detail}"
    );
}

#[test]
fn an_answer_that_cannot_be_recorded_is_none() {
    let supervisor = up("");
    let mut client = supervisor.session("s");
    let question = ask(&supervisor, &mut client, "s");
    let mut owner = supervisor.client();
    answer(&mut owner, &question, Answer::Approved);
    let (number, _) = approval(&supervisor);
    let error = WireError {
        code: ErrorCode::Internal,
        detail: "no space left".into(),
    };
    supervisor.say(number, Message::Error(error));
    assert_eq!(owner.error().code, ErrorCode::Internal);
    assert!(supervisor.silent() && client.waits());
    say(
        &supervisor,
        &mut supervisor.client(),
        &question,
        Answer::Approved,
    );
    supervisor.prepare();
}

#[test]
fn a_question_that_cannot_be_recorded_is_not_asked() {
    let supervisor = up("");
    let mut client = supervisor.session("s");
    client.call("s", "show", ASKED);
    let (number, _) = approval(&supervisor);
    let error = WireError {
        code: ErrorCode::Internal,
        detail: "no space left".into(),
    };
    supervisor.say(number, Message::Error(error));
    let (reason, _) = refused(&supervisor, &client);
    assert_eq!(reason, DenyReason::AuditUnavailable);
    assert_eq!(questions(&mut client), []);
}

#[test]
fn callers_that_wait_for_the_owner_leave_room_for_the_owner() {
    let supervisor = up("");
    let mut waiting = Vec::new();
    for name in ["s", "t"] {
        drop(supervisor.session(name));
        for _ in 0..40 {
            let mut client = supervisor.client();
            ask(&supervisor, &mut client, name);
            waiting.push(client);
        }
    }
    let mut owner = supervisor.client();
    assert_eq!(questions(&mut owner).len(), 80);
    for _ in 40..64 {
        let mut client = supervisor.client();
        ask(&supervisor, &mut client, "s");
        waiting.push(client);
    }
    let mut more = supervisor.client();
    more.call("s", "show", ASKED);
    let (reason, _) = refused(&supervisor, &more);
    assert_eq!(reason, DenyReason::LimitReached);
}

#[test]
fn questions_of_an_earlier_run_are_closed_as_expired_before_brokerd_is_ready() {
    let time = Timestamp::from_millis(5);
    let event = |name: &str, event| HistoryEntry::Approval {
        time,
        approval: id(name),
        session: session("s"),
        call: CallId(4),
        event,
    };
    let asked = || ApprovalEvent::Asked {
        tool: proto::ToolName::new("show").unwrap(),
        grant: GrantId::new("asked").unwrap(),
        arguments: Hash32::ZERO,
        expires: Timestamp::MAX,
    };
    let history = [
        HistoryEntry::Session {
            time,
            session: session("s"),
            event: SessionEvent::Opened,
        },
        event("a6", asked()),
        event("a6", ApprovalEvent::Withdrawn {}),
        event("a7", asked()),
    ];
    let supervisor = Supervisor::start(&["bxctl"], &with(""), &history);
    let (number, expired) = approval(&supervisor);
    assert_eq!(
        (expired.approval, expired.call, expired.event),
        (id("a7"), CallId(4), ApprovalEvent::Expired {})
    );
    assert!(supervisor.silent());
    supervisor.recorded(number, 9);
    assert_eq!(supervisor.next().msg, Message::Ready(Empty {}));
    let mut client = supervisor.client();
    client.call("s", "show", ASKED);
    let (_, next) = approval(&supervisor);
    assert_eq!((next.approval, next.call), (id("a8"), CallId(5)));
}

#[test]
fn an_orderly_end_closes_what_is_open() {
    let supervisor = up("");
    let mut client = supervisor.session("s");
    ask(&supervisor, &mut client, "s");
    let recorded = supervisor.stop();
    let [RecordEntry::Approval(expired)] = recorded.as_slice() else {
        panic!("{recorded:?}");
    };
    assert_eq!(expired.event, ApprovalEvent::Expired {});
    assert_eq!(client.error().code, ErrorCode::Internal);
}

#[test]
fn a_call_that_a_grant_lets_run_is_not_asked_about() {
    let supervisor = up("");
    let mut client = supervisor.session("s");
    client.call("s", "show", NOTE);
    let sandbox = supervisor.run_call(7, 2);
    supervisor.end_call(sandbox);
    assert!(matches!(client.response(), ToolResponse::Result { .. }));
}
