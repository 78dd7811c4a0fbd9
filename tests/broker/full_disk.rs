//! An append that fails: the audit directory is a small file system of its own, in a mount namespace of the test, and
//! full. No tool code runs, `status` says why, and after a restart with room the log goes on.

use std::fs::File;
use std::io::Write;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::mounts::in_own_mounts;
use boxmaker_tests::system::{Brokerd, Home};
use proto::audit::SessionEvent;
use proto::broker::{Record, RecordEntry};
use proto::client::{SessionOpen, ToolRequest, ToolResponse};
use proto::role::Empty;
use proto::{CallId, DenyReason, Entry, ErrorCode, Message};

use crate::calls::{Broker, ask, commit, session, touched};
use crate::homes::home;

/// What is said of a line for which the disk had no room: it came short, and is not continued.
const SHORT: &str = "bytes were written";

/// Arguments that no rest of a page can hold.
fn long() -> String {
    format!("{{\"acts\":[],\"token\":\"{}\"}}", "x".repeat(8192))
}

/// Takes all the room that is left. The log leaves other names in its directory alone.
fn fill(home: &Home) {
    let mut file = File::create(home.home().join("audit/filler")).unwrap();
    let mut pages = 0;
    while file.write_all(&[0; 4096]).is_ok() {
        pages += 1;
        assert!(pages < 128, "it has no end");
    }
}

fn make_room(home: &Home) {
    std::fs::remove_file(home.home().join("audit/filler")).unwrap();
}

fn has_recovery(home: &Home) -> bool {
    let lines = home.lines();
    lines
        .iter()
        .any(|line| matches!(line.entry, Entry::Recovery { .. }))
}

#[test]
fn what_cannot_be_recorded_is_not_run() {
    if skipped_without_root("what_cannot_be_recorded_is_not_run") {
        return;
    }
    in_own_mounts(|| {
        let home = home(Brokerd::Relay);
        home.mount("home/audit", "tmpfs", c"size=256k,mode=0750");
        let mut broker = Broker::up_in(home);
        let (first, second) = (
            broker.prepare("touch", "touch", &long()),
            broker.prepare("touch", "touch", &long()),
        );
        assert_eq!(broker.status().audit.closed, None);
        fill(&broker.home);
        for standing in [&first, &second] {
            let (code, detail) = broker
                .relay
                .refused(commit(standing.ticket, &standing.grant));
            assert_eq!(code, ErrorCode::Internal);
            assert!(detail.contains("the audit log is closed"), "{detail}");
            assert!(detail.contains(SHORT), "{detail}");
        }
        broker.wait_empty();
        for standing in [first, second] {
            assert_eq!(standing.output(), (String::new(), String::new()));
        }
        assert!(!touched(&broker.home));
        let closed = broker.status().audit.closed.unwrap();
        assert!(closed.contains(SHORT), "{closed}");
        // A failed write is final, also for what would fit and for when there is room again.
        make_room(&broker.home);
        let entry = RecordEntry::Session {
            session: session("other"),
            event: SessionEvent::Opened,
            by: "bxctl".to_owned(),
        };
        let (code, detail) = broker.relay.refused(Message::Record(Record { entry }));
        assert_eq!(code, ErrorCode::Internal, "{detail}");
        broker.home.sound();
        assert_eq!(broker.home.decisions(), []);

        let (_, home) = broker.stop();
        let mut broker = Broker::up_in(home);
        broker.home.sound();
        assert!(has_recovery(&broker.home));
        assert!(broker.home.stderr().contains("ended in a torn line"));
        broker.call("touch", "touch", &long());
        assert!(touched(&broker.home));
        broker.home.sound();
    });
}

#[test]
fn the_owner_is_told_that_the_log_takes_nothing_and_that_nothing_ran() {
    if !skipped_without_root("the_owner_is_told_that_the_log_takes_nothing") {
        full_and_back();
    }
}

/// Fills the log's file system in the middle of a run, looks, makes room, and starts again.
fn full_and_back() {
    in_own_mounts(|| {
        let home = home(Brokerd::Real);
        home.mount("home/audit", "tmpfs", c"size=256k,mode=0750");
        let mut system = home.start();
        system.wait_up(&home, 0);
        let owner = home.connect().unwrap();
        let open = SessionOpen {
            session: Some(session("s")),
        };
        assert!(matches!(
            ask(&owner, Message::SessionOpen(open)),
            Message::SessionOpened(_)
        ));
        let request = || {
            Message::ToolRequest(ToolRequest {
                session: session("s"),
                call: CallId(0),
                tool: "touch".to_owned(),
                arguments: long(),
            })
        };
        let status = |owner: &ipc::Connection| match ask(owner, Message::Status(Empty {})) {
            Message::StatusReply(status) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(status(&owner).audit.closed, None);
        fill(&home);
        for _ in 0..2 {
            let answer = ask(&owner, request());
            let Message::ToolResponse(ToolResponse::Denied { reason, .. }) = answer else {
                panic!("{answer:?}");
            };
            assert_eq!(reason, DenyReason::AuditUnavailable);
            assert!(!touched(&home));
        }
        let said = status(&owner);
        let closed = said.audit.closed.unwrap();
        assert!(closed.contains(SHORT), "{closed}");
        assert_eq!(said.sandboxes, 0);
        home.sound();
        make_room(&home);
        drop(owner);
        system.stop();

        let mut system = home.start();
        system.wait_up(&home, 1);
        let owner = home.connect().unwrap();
        let open = SessionOpen {
            session: Some(session("s")),
        };
        assert!(matches!(
            ask(&owner, Message::SessionOpen(open)),
            Message::SessionOpened(_)
        ));
        let answer = ask(&owner, request());
        assert!(
            matches!(answer, Message::ToolResponse(ToolResponse::Result { .. })),
            "{answer:?}"
        );
        assert!(touched(&home));
        assert!(system.stop().success());
        home.sound();
    });
}
