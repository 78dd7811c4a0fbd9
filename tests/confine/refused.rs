//! A call that requires `full` is refused when a step of the stage is missing, and the record of the refusal says which
//! layer; the same call passes when the step is taken.

use std::fs;

use boxmaker_tests::binaries::{binary, skipped_without_root};
use boxmaker_tests::system::{Brokerd, Home};
use boxmaker_tests::tools::FS_READ;
use proto::client::{SessionOpen, ToolRequest, ToolResponse};
use proto::{CallId, DecisionRecord, DenyReason, Envelope, Layer, Level, Message, SessionId};

#[test]
fn a_call_with_a_layer_missing_is_refused_and_its_record_names_the_layer() {
    if skipped_without_root("a_call_with_a_layer_missing") {
        return;
    }
    let home = Home::new(Brokerd::Real);
    let stage = home.home().with_file_name("bin").join("boxmaker-stage");
    fs::remove_file(&stage).unwrap();
    fs::copy(binary("stage-without-a-step"), &stage).unwrap();
    home.tool("fs_read", FS_READ);
    let file = home.file("notes/a.md", "the owner's words\n");
    let grant = format!(
        "tool = \"fs_read\"\nmode = \"auto\"\nmax_taint = \"private\"\nconstraints.paths = [\"read:{}\"]\n",
        home.folder("notes")
    );
    home.grant("notes", &grant);
    let mut system = home.start();
    system.wait_up(&home, 0);
    let connection = home.connect().unwrap();
    let mut id = 0;
    let mut ask = |message: Message| {
        id += 1;
        connection.send(&Envelope::new(id, message)).unwrap();
        connection.receive().unwrap().unwrap().envelope.msg
    };
    let session = SessionId::new("s").unwrap();
    ask(Message::SessionOpen(SessionOpen {
        session: Some(session.clone()),
    }));
    let mut call = || {
        let request = ToolRequest {
            session: session.clone(),
            call: CallId(0),
            tool: "fs_read".to_owned(),
            arguments: serde_json::json!({ "path": file }).to_string(),
        };
        match ask(Message::ToolRequest(request)) {
            Message::ToolResponse(response) => response,
            other => panic!("{other:?}"),
        }
    };
    let without = stage.with_file_name("boxmaker-stage.without");
    for (step, layer) in [
        ("landlock-net", Layer::LandlockNet),
        ("parent-death", Layer::ParentDeath),
        ("unshare-ipc", Layer::Ipc),
    ] {
        fs::write(&without, step).unwrap();
        match call() {
            ToolResponse::Denied { reason, .. } => {
                assert_eq!(reason, DenyReason::ConfinementTooWeak, "{step}");
            }
            other => panic!("{step}: {other:?}"),
        }
        let (_, decision) = home.decisions().pop().unwrap();
        assert!(matches!(decision.decision, DecisionRecord::Denied { .. }));
        let measured = decision.confinement.unwrap();
        let gaps: Vec<Layer> = measured.gaps.iter().map(|gap| gap.layer).collect();
        assert_eq!(
            (measured.level, gaps),
            (Level::Partial, vec![layer]),
            "{step}"
        );
    }
    fs::remove_file(&without).unwrap();
    match call() {
        ToolResponse::Result {
            content,
            confinement,
            ..
        } => {
            assert_eq!(
                (content.as_str(), confinement),
                ("the owner's words\n", Level::Full)
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(system.stop().success());
    home.sound();
}
