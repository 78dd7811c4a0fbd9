//! Sessions as the owner opens, lists and ends them.

use proto::audit::SessionEvent;
use proto::broker::RecordEntry;
use proto::client::{SessionEnd, SessionOpen, SessionSummary};
use proto::role::Empty;
use proto::{CallId, DataClass, ErrorCode, Message};

use crate::supervisor::{ELSEWHERE, NOTE, Supervisor, opened, session};

fn open(name: Option<&str>) -> Message {
    let session = name.map(session);
    Message::SessionOpen(SessionOpen { session })
}

fn end(name: &str) -> Message {
    let session = session(name);
    Message::SessionEnd(SessionEnd { session })
}

#[test]
fn a_session_is_opened_once_its_record_is_stored() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.client();
    client.ask(open(Some("mine")));
    let (id, entry) = supervisor.record();
    assert_eq!(entry, opened("mine", SessionEvent::Opened));
    assert!(client.waits());
    supervisor.recorded(id, 1);
    let Message::SessionOpened(answer) = client.answer() else {
        panic!("not opened");
    };
    assert_eq!(
        (answer.session, answer.last_call),
        (session("mine"), CallId(0))
    );
}

#[test]
fn a_session_without_a_name_gets_one_of_its_own() {
    let supervisor = Supervisor::ready();
    let mut names = Vec::new();
    for seq in 0..3 {
        let mut client = supervisor.client();
        client.ask(open(None));
        let (id, _) = supervisor.record();
        supervisor.recorded(id, seq);
        match client.answer() {
            Message::SessionOpened(answer) => names.push(answer.session),
            other => panic!("{other:?}"),
        }
    }
    names.dedup();
    assert_eq!(names.len(), 3);
}

#[test]
fn a_session_that_nobody_was_told_of_is_ended_and_one_with_a_name_stays_open() {
    let supervisor = Supervisor::ready();
    for name in [Some("mine"), None] {
        let mut client = supervisor.client();
        client.ask(open(name));
        let (id, _) = supervisor.record();
        drop(client);
        supervisor.recorded(id, 1);
    }
    let (id, entry) = supervisor.record();
    let RecordEntry::Session { session, event, .. } = entry else {
        panic!("{entry:?}");
    };
    assert_eq!(event, SessionEvent::Ended);
    supervisor.recorded(id, 2);
    let mut client = supervisor.client();
    // Its end is known once brokerd has heard that it is recorded.
    let by = std::time::Instant::now() + crate::supervisor::PATIENCE;
    loop {
        client.ask(Message::SessionList(Empty {}));
        let Message::SessionListReply(list) = client.answer() else {
            panic!("no list");
        };
        let open: Vec<_> = list.sessions.iter().filter(|known| known.open).collect();
        assert!(open.iter().any(|known| known.session.as_str() == "mine"));
        if open.iter().all(|known| known.session != session) {
            break;
        }
        assert!(std::time::Instant::now() < by, "{open:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_session_that_cannot_be_recorded_is_not_opened() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.client();
    client.ask(open(Some("mine")));
    let (id, _) = supervisor.record();
    let error = proto::WireError {
        code: ErrorCode::Internal,
        detail: "the log is closed: no space left".into(),
    };
    supervisor.say(id, Message::Error(error));
    let told = client.error();
    assert_eq!(told.code, ErrorCode::Internal);
    assert!(told.detail.contains("no space left"), "{}", told.detail);

    let mut client = supervisor.client();
    client.call("mine", "show", NOTE);
    assert_eq!(client.error().code, ErrorCode::UnknownSession);
}

#[test]
fn an_ended_session_takes_no_call_and_may_be_resumed() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.session("mine");
    client.ask(end("mine"));
    let (id, entry) = supervisor.record();
    assert_eq!(entry, opened("mine", SessionEvent::Ended));
    supervisor.recorded(id, 2);
    assert_eq!(client.answer(), Message::Ok(Empty {}));

    client.call("mine", "show", NOTE);
    assert_eq!(client.error().code, ErrorCode::UnknownSession);

    let mut client = supervisor.client();
    client.ask(open(Some("mine")));
    let (id, entry) = supervisor.record();
    assert_eq!(entry, opened("mine", SessionEvent::Resumed));
    supervisor.recorded(id, 3);
    assert!(matches!(client.answer(), Message::SessionOpened(_)));
    client.call("mine", "show", NOTE);
    supervisor.prepare();
}

#[test]
fn a_session_that_is_not_open_cannot_be_ended() {
    let supervisor = Supervisor::ready();
    let mut client = supervisor.client();
    client.ask(end("mine"));
    assert_eq!(client.error().code, ErrorCode::UnknownSession);
}

#[test]
fn the_list_says_what_each_session_was_used_for() {
    let supervisor = Supervisor::ready();
    let mut one = supervisor.session("one");
    let mut two = supervisor.session("two");
    two.call("two", "show", ELSEWHERE);
    let (id, _) = supervisor.record();
    supervisor.recorded(id, 3);
    two.response();
    one.call("one", "show", NOTE);
    let sandbox = supervisor.run_call(1, 4);
    supervisor.end_call(sandbox);
    one.response();

    one.ask(Message::SessionList(Empty {}));
    let Message::SessionListReply(list) = one.answer() else {
        panic!("no list");
    };
    let mut said: Vec<_> = list
        .sessions
        .iter()
        .map(|session: &SessionSummary| {
            let name = session.session.as_str();
            (
                name,
                session.open,
                session.taint,
                session.calls,
                session.denied,
            )
        })
        .collect();
    said.sort_unstable();
    assert_eq!(
        said,
        [
            ("one", true, DataClass::Private, 1, 0),
            ("two", true, DataClass::Private, 1, 1)
        ]
    );
}
