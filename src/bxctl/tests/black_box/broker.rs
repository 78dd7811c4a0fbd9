//! What is told when brokerd is not there, says no, or goes away.

use proto::Message;

use crate::host::{Host, message, opened};

#[test]
fn without_a_socket_the_error_says_what_to_start_and_where_it_looked() {
    let host = Host::new();
    let ended = host.run(&["call", "fs_read"]);
    assert_eq!((ended.status, ended.out.as_str()), (1, ""));
    let socket = host.socket();
    assert!(
        ended
            .err
            .contains("boxmaker does not run: there is no socket")
            && ended.err.contains(crate::host::text(&socket)),
        "{ended:?}"
    );
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let ended = host.run(&["sessions"]);
    assert_eq!(ended.status, 1);
    assert!(ended.err.contains("nobody listens at"), "{ended:?}");
}

#[test]
fn an_error_of_brokerd_is_told_with_the_way_out() {
    let host = Host::new();
    let _seen = host.broker(|asked| match asked {
        Message::SessionOpen(_) => {
            vec![message(
                "error",
                r#"{"code": "unknown_session", "detail": "s-9 is not known"}"#,
            )]
        }
        _ => Vec::new(),
    });
    let ended = host.run(&["call", "fs_read", "--session", "s-9"]);
    assert_eq!(ended.status, 1);
    assert!(
        ended.err.contains("s-9 is not known\n  `bxctl sessions`"),
        "{ended:?}"
    );
}

#[test]
fn a_brokerd_that_goes_away_in_the_middle_is_a_failure_and_the_next_ends_the_session() {
    let host = Host::new();
    let seen = host.broker(|asked| match asked {
        Message::SessionOpen(_) => vec![opened()],
        Message::SessionEnd(_) => vec![message("ok", "{}")],
        _ => Vec::new(),
    });
    let ended = host.run(&["call", "fs_read"]);
    assert_eq!((ended.status, ended.out.as_str()), (1, ""));
    // The log of this home is empty, so that it does not say that nothing ran.
    for part in [
        "closed the connection before it answered tool_request",
        "  whether the call ran is not known here\n  `bxctl audit show --session s-1` says more\n",
    ] {
        assert!(ended.err.contains(part), "{part}: {ended:?}");
    }
    assert!(!ended.err.contains("was not ended"), "{ended:?}");
    assert!(matches!(
        seen.try_iter().last(),
        Some(Message::SessionEnd(_))
    ));
}

#[test]
fn a_log_that_holds_no_decision_says_that_nothing_ran() {
    let host = Host::new();
    let record = r#"{"seq":5,"time":"2026-09-17T08:05:00.000Z","prev":"0000000000000000000000000000000000000000000000000000000000000000","entry":{"type":"session","session":"s-1","event":"opened","by":"bxctl"}}"#;
    std::fs::write(
        host.home().join("audit/2026-09-17.jsonl"),
        format!("{record}\n"),
    )
    .unwrap();
    let _seen = host.broker(|asked| match asked {
        Message::SessionOpen(_) => vec![opened()],
        Message::SessionEnd(_) => vec![message("ok", "{}")],
        _ => Vec::new(),
    });
    let ended = host.run(&["call", "fs_read"]);
    assert_eq!(ended.status, 1);
    assert!(
        ended
            .err
            .contains("  nothing ran: no record lets the call run\n"),
        "{ended:?}"
    );
}

#[test]
fn the_session_of_a_refused_request_is_ended_over_another_connection() {
    let host = Host::new();
    let seen = host.broker(|asked| match asked {
        Message::SessionOpen(_) => vec![opened()],
        Message::ToolRequest(_) => {
            vec![message(
                "error",
                r#"{"code": "internal", "detail": "brokerd is stopping"}"#,
            )]
        }
        _ => vec![message("ok", "{}")],
    });
    let ended = host.run(&["call", "fs_read"]);
    assert_eq!((ended.status, ended.out.as_str()), (1, ""));
    assert!(
        ended.err.contains("brokerd is stopping") && !ended.err.contains("not ended"),
        "{ended:?}"
    );
    assert!(matches!(
        seen.try_iter().last(),
        Some(Message::SessionEnd(_))
    ));
}

#[test]
fn an_answer_that_is_no_message_is_told_with_the_rule_and_the_way_out() {
    let frame = |body: &str| {
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&length, body.as_bytes()].concat()
    };
    let answer = |version: u32, kind: &str| {
        frame(&format!(
            r#"{{"v":{version},"id":1,"final":true,"msg":{{"kind":"{kind}","body":{{}}}}}}"#
        ))
    };
    for (bytes, words) in [
        (vec![0; 4], "frame with an empty body"),
        (
            vec![0xff; 4],
            "frame of 4294967295 bytes, at most 1048576 are allowed",
        ),
        (frame("oops")[..6].to_vec(), "stream ended inside a frame"),
        (frame("oops"), "not a message"),
        (
            answer(2, "status_reply"),
            "protocol version 2, this build speaks 1",
        ),
        (answer(1, "pong"), "answered status with pong"),
    ] {
        let host = Host::new();
        let listener = std::os::unix::net::UnixListener::bind(host.socket()).unwrap();
        let asked = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let connection = ipc::Connection::new(stream);
            connection.receive().unwrap().unwrap();
            std::io::Write::write_all(&mut connection.stream(), &bytes).unwrap();
        });
        let ended = host.run(&["status"]);
        asked.join().unwrap();
        assert_eq!((ended.status, ended.out.as_str()), (1, ""));
        assert!(ended.err.contains(words), "{words}: {ended:?}");
        assert!(ended.err.contains("from one build"), "{ended:?}");
    }
}
