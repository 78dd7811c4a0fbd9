//! Callers that say nothing, stop in the middle, or never read: each holds its own connection and nothing else.

use std::io::Write;
use std::time::Duration;

use boxmaker_tests::binaries::skipped_without_root;
use proto::role::Empty;
use proto::{Envelope, Message};

use crate::home::{Peer, home, sessions, status, up};

#[test]
fn callers_that_fall_silent_hold_up_nobody_and_are_served_when_they_go_on() {
    if skipped_without_root("callers_that_fall_silent_hold_up_nobody") {
        return;
    }
    let home = home(1000);
    let system = up(&home);
    let list = Envelope::new(3, Message::SessionList(Empty {}));
    let body = list.encode().unwrap();
    let whole = [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat();

    let silent: Vec<_> = (0..15).map(|_| home.connect().unwrap()).collect();
    // Each stops at another byte: in the length, after it, in the body, before the last.
    let cuts = [1, 2, 3, 4, 5, body.len() / 2, whole.len() - 1];
    let half: Vec<_> = cuts
        .iter()
        .map(|cut| {
            let connection = home.connect().unwrap();
            connection.stream().write_all(&whole[..*cut]).unwrap();
            connection
        })
        .collect();
    let deaf = home.connect().unwrap();
    let soon = Some(Duration::from_millis(300));
    deaf.stream().set_write_timeout(soon).unwrap();
    // Until both directions are full: brokerd waits for this one to read.
    let ask = Envelope::new(1, Message::ToolsList(Empty {}));
    while deaf.send(&ask).is_ok() {}

    let other = Peer::new(&home, "other");
    for _ in 0..3 {
        other.reads(&home);
    }
    assert_eq!(sessions(&home).len(), 1);
    assert_eq!(status(&home).roles[0].restarts, 0);

    // Whoever goes on gets an answer.
    for (connection, cut) in half.iter().zip(cuts) {
        connection.stream().write_all(&whole[cut..]).unwrap();
        let answer = connection.receive().unwrap().unwrap().envelope;
        assert!(matches!(answer.msg, Message::SessionListReply(_)));
        assert_eq!(answer.id, 3);
    }
    for connection in &silent {
        connection.send(&list).unwrap();
        let answer = connection.receive().unwrap().unwrap().envelope;
        assert!(matches!(answer.msg, Message::SessionListReply(_)));
    }
    assert!(matches!(
        deaf.receive().unwrap().unwrap().envelope.msg,
        Message::ToolsListReply(_)
    ));
    // They are still there when boxmaker is told to stop, and do not keep it.
    assert!(system.stop().success());
    home.sound();
}
