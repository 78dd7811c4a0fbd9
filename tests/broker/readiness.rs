//! What a service manager hears of `boxmaker up` (sd_notify(3)), and whether it holds.

use std::fs;
use std::os::unix::net::UnixDatagram;

use boxmaker_tests::binaries::skipped_without_root;
use boxmaker_tests::system::relay::Relay;
use boxmaker_tests::system::{Brokerd, Home, System};
use proto::client::{SessionOpen, ToolRequest, ToolResponse};
use proto::{CallId, Message};
use tempfile::TempDir;

use crate::calls::{ask, session};
use crate::homes::home;

/// The socket of a service manager.
struct Manager {
    directory: TempDir,
    socket: UnixDatagram,
}

impl Manager {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        Self { directory, socket }
    }

    fn start(&self, home: &Home) -> System {
        let path = self.directory.path().join("notify");
        home.start_in(&[("NOTIFY_SOCKET", path.as_os_str())])
    }

    /// Waits for the next notification.
    fn heard(&self) -> String {
        self.socket.set_nonblocking(false).unwrap();
        let patience = boxmaker_tests::system::processes::PATIENCE;
        self.socket.set_read_timeout(Some(patience)).unwrap();
        self.received().expect("a notification within 30 s")
    }

    /// Nothing was said that was not heard.
    fn heard_nothing(&self) {
        self.socket.set_nonblocking(true).unwrap();
        assert_eq!(self.received(), None);
    }

    fn received(&self) -> Option<String> {
        let mut bytes = [0; 1024];
        match self.socket.recv(&mut bytes) {
            Ok(count) => Some(String::from_utf8(bytes[..count].to_vec()).unwrap()),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }
}

const READY: &str = "READY=1\nSTATUS=calls are served";

/// One call, made at once, runs.
fn call_succeeds(home: &Home) {
    let connection = home.connect().expect("the socket is there");
    let opened = ask(
        &connection,
        Message::SessionOpen(SessionOpen {
            session: Some(session("s")),
        }),
    );
    assert!(matches!(opened, Message::SessionOpened(_)), "{opened:?}");
    let request = ToolRequest {
        session: session("s"),
        call: CallId(0),
        tool: "echo".to_owned(),
        arguments: r#"{"text":"here"}"#.to_owned(),
    };
    match ask(&connection, Message::ToolRequest(request)) {
        Message::ToolResponse(ToolResponse::Result { content, .. }) => {
            assert_eq!(content, r#"{"text":"here"}"#);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn readiness_is_notified_when_a_call_succeeds_and_again_after_a_restart() {
    if skipped_without_root("readiness_is_notified_when_a_call_succeeds") {
        return;
    }
    let (home, manager) = (home(Brokerd::Real), Manager::new());
    let system = manager.start(&home);
    assert_eq!(manager.heard(), READY);
    call_succeeds(&home);

    let brokerd = system.brokerd(&home);
    let environment = fs::read(format!("/proc/{}/environ", brokerd.pid)).unwrap();
    let environment = String::from_utf8(environment).unwrap();
    assert!(!environment.contains("NOTIFY_SOCKET"), "{environment}");

    brokerd.kill();
    let told = manager.heard();
    let restart = "STATUS=no call is served: brokerd is started again in ";
    assert!(told.starts_with(restart), "{told}");
    assert_eq!(manager.heard(), READY);
    call_succeeds(&home);

    assert!(system.stop().success());
    assert_eq!(manager.heard(), "STOPPING=1\nSTATUS=stopping");
    manager.heard_nothing();
}

#[test]
fn a_brokerd_that_was_handed_everything_and_is_not_ready_is_not_notified() {
    if skipped_without_root("a_brokerd_that_is_not_ready_is_not_notified") {
        return;
    }
    let (home, manager) = (home(Brokerd::Relay), Manager::new());
    let mut system = manager.start(&home);
    let mut relay = Relay::connect(&mut system, &home);
    manager.heard_nothing();
    relay.ready();
    assert_eq!(manager.heard(), READY);
}
