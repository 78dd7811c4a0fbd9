//! Envelopes made at random, of every kind: they survive the wire, and nothing that resembles one makes the decoder panic.

use proptest::prelude::*;
use proto::audit::{
    Arguments, DecisionRecord, ExitCause, ExitStatus, OutcomeStatus, SessionEvent, Usage,
};
use proto::broker::{
    Abort, Commit, Committed, Exited, Finish, History, HistoryEntry, PolicyGeneration, Prepare,
    Prepared, Record, RecordEntry, Recorded, RefuseReason, Refused,
};
use proto::client::{
    AnswerQuestion, SessionEnd, SessionOpen, SessionOpened, ToolRequest, ToolResponse,
};
use proto::role::{Empty, RoleStart};
use proto::{
    Answer, Approval, ApprovalEvent, ApprovalId, Asserted, CallId, Confinement, DataClass,
    DenyReason, Envelope, ErrorCode, Gap, GrantId, Hash32, Labels, Layer, Level, Message,
    SessionId, Ticket, Timestamp, ToolName, WireError,
};

use crate::messages;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", any::<Vec<char>>().prop_map(String::from_iter)]
}

fn session() -> impl Strategy<Value = SessionId> {
    "[a-z0-9-]{1,64}".prop_map(|text| SessionId::new(text).unwrap())
}

fn tool() -> impl Strategy<Value = ToolName> {
    "[a-z0-9_-][a-z0-9_.-]{0,63}".prop_map(|text| ToolName::new(text).unwrap())
}

fn grant() -> impl Strategy<Value = GrantId> {
    "[a-z0-9_-][a-z0-9_.-]{0,63}".prop_map(|text| GrantId::new(text).unwrap())
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp::from_millis)
}

fn hash() -> impl Strategy<Value = Hash32> {
    any::<[u8; 32]>().prop_map(Hash32::new)
}

fn class() -> impl Strategy<Value = DataClass> {
    prop::sample::select(vec![
        DataClass::Public,
        DataClass::Private,
        DataClass::Secret,
    ])
}

fn labels() -> impl Strategy<Value = Labels> {
    (class(), any::<bool>()).prop_map(|(class, untrusted)| Labels { class, untrusted })
}

fn reason() -> impl Strategy<Value = DenyReason> {
    prop::sample::select(DenyReason::ALL)
}

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    prop::sample::subsequence(Layer::ALL, 0..=Layer::ALL.len())
}

fn level() -> impl Strategy<Value = Level> {
    prop::sample::select(vec![Level::None, Level::Partial, Level::Full])
}

fn confinement() -> impl Strategy<Value = Confinement> {
    let gaps = prop::collection::vec((prop::sample::select(Layer::ALL), text()), 0..3);
    let asserted = prop::collection::vec((prop::sample::select(Layer::ALL), text()), 0..3);
    (
        level(),
        layers(),
        asserted,
        gaps,
        layers(),
        any::<u8>(),
        hash(),
    )
        .prop_map(
            |(level, layers, asserted, gaps, waived, landlock_abi, plan)| Confinement {
                level,
                layers,
                asserted: asserted
                    .into_iter()
                    .map(|(layer, what)| Asserted { layer, what })
                    .collect(),
                gaps: gaps
                    .into_iter()
                    .map(|(layer, reason)| Gap { layer, reason })
                    .collect(),
                waived,
                landlock_abi,
                plan,
            },
        )
}

fn decision() -> impl Strategy<Value = DecisionRecord> {
    prop_oneof![
        grant().prop_map(|grant| DecisionRecord::Allowed { grant }),
        (grant(), text(), prop::option::of(text())).prop_map(|(grant, approver, post)| {
            DecisionRecord::Approved {
                grant,
                approver,
                post,
            }
        }),
        (reason(), prop::option::of(grant()))
            .prop_map(|(reason, grant)| DecisionRecord::Denied { reason, grant }),
    ]
}

fn arguments() -> impl Strategy<Value = Arguments> {
    prop_oneof![
        text().prop_map(Arguments::Text),
        any::<u64>().prop_map(|same_as| Arguments::SameAs { same_as }),
        (any::<u64>(), hash()).prop_map(|(length, sha256)| Arguments::Digest { length, sha256 }),
    ]
}

fn event() -> impl Strategy<Value = SessionEvent> {
    prop::sample::select(vec![
        SessionEvent::Opened,
        SessionEvent::Resumed,
        SessionEvent::Ended,
    ])
}

fn exit() -> impl Strategy<Value = ExitStatus> {
    prop_oneof![
        any::<u8>().prop_map(ExitStatus::Code),
        any::<u8>().prop_map(ExitStatus::Signal)
    ]
}

fn approval() -> impl Strategy<Value = ApprovalId> {
    "[a-z0-9-]{1,64}".prop_map(|text| ApprovalId::new(text).unwrap())
}

fn approval_event() -> impl Strategy<Value = ApprovalEvent> {
    prop_oneof![
        (tool(), grant(), hash(), time()).prop_map(|(tool, grant, arguments, expires)| {
            ApprovalEvent::Asked {
                tool,
                grant,
                arguments,
                expires,
            }
        }),
        (any::<bool>(), text(), prop::option::of(text())).prop_map(|(yes, by, post)| {
            let answer = if yes {
                Answer::Approved
            } else {
                Answer::Refused
            };
            ApprovalEvent::Answered { answer, by, post }
        }),
        Just(ApprovalEvent::Expired {}),
        Just(ApprovalEvent::Withdrawn {}),
    ]
}

fn response() -> impl Strategy<Value = ToolResponse> {
    prop_oneof![
        (approval(), time())
            .prop_map(|(approval, expires)| ToolResponse::PendingApproval { approval, expires }),
        (text(), labels(), any::<bool>(), level()).prop_map(
            |(content, labels, truncated, confinement)| {
                let Labels { class, untrusted } = labels;
                ToolResponse::Result {
                    content,
                    class,
                    untrusted,
                    truncated,
                    confinement,
                }
            }
        ),
        (text(), labels()).prop_map(|(message, Labels { class, untrusted })| {
            ToolResponse::Failed {
                message,
                class,
                untrusted,
            }
        }),
        (reason(), text()).prop_map(|(reason, detail)| ToolResponse::Denied { reason, detail }),
    ]
}

fn client() -> impl Strategy<Value = Message> {
    let code = prop::sample::select(vec![
        ErrorCode::BadFrame,
        ErrorCode::BadVersion,
        ErrorCode::Internal,
    ]);
    prop_oneof![
        (code, text()).prop_map(|(code, detail)| Message::Error(WireError { code, detail })),
        (session(), any::<u64>(), text(), text()).prop_map(|(session, call, tool, arguments)| {
            Message::ToolRequest(ToolRequest {
                session,
                call: CallId(call),
                tool,
                arguments,
            })
        }),
        response().prop_map(Message::ToolResponse),
        prop::option::of(session())
            .prop_map(|session| Message::SessionOpen(SessionOpen { session })),
        (session(), any::<u64>()).prop_map(|(session, call)| Message::SessionOpened(
            SessionOpened {
                session,
                last_call: CallId(call)
            }
        )),
        session().prop_map(|session| Message::SessionEnd(SessionEnd { session })),
        (text(), text(), prop::collection::vec(text(), 0..4)).prop_map(
            |(role, config, sockets)| Message::RoleStart(RoleStart {
                role,
                config,
                sockets
            })
        ),
        Just(Message::Ready(Empty {})),
        Just(Message::Approvals(Empty {})),
        approval().prop_map(|approval| Message::Approve(AnswerQuestion { approval })),
        approval().prop_map(|approval| Message::Refuse(AnswerQuestion { approval })),
    ]
}

fn history() -> impl Strategy<Value = HistoryEntry> {
    prop_oneof![
        (time(), session(), event()).prop_map(|(time, session, event)| HistoryEntry::Session {
            time,
            session,
            event
        }),
        (
            any::<(u64, u64)>(),
            time(),
            session(),
            text(),
            class(),
            decision(),
            prop::option::of(labels())
        )
            .prop_map(
                |((seq, call), time, session, tool, session_taint, decision, labels)| {
                    HistoryEntry::Decision {
                        seq,
                        time,
                        session,
                        call: CallId(call),
                        tool,
                        session_taint,
                        decision,
                        labels,
                    }
                }
            ),
        (any::<u64>(), time(), session(), labels()).prop_map(|(of, time, session, labels)| {
            HistoryEntry::Outcome {
                of,
                time,
                session,
                labels,
            }
        }),
        (
            time(),
            approval(),
            session(),
            any::<u64>(),
            approval_event()
        )
            .prop_map(|(time, approval, session, call, event)| {
                HistoryEntry::Approval {
                    time,
                    approval,
                    session,
                    call: CallId(call),
                    event,
                }
            }),
    ]
}

fn recordable() -> impl Strategy<Value = RecordEntry> {
    prop_oneof![
        (
            session(),
            any::<(u64, u64)>(),
            text(),
            arguments(),
            class(),
            decision(),
            text(),
            prop::option::of(any::<u64>())
        )
            .prop_map(
                |(
                    session,
                    (call, generation),
                    tool,
                    arguments,
                    session_taint,
                    decision,
                    detail,
                    ticket,
                )| {
                    RecordEntry::Decision {
                        session,
                        call: CallId(call),
                        tool,
                        arguments,
                        session_taint,
                        decision,
                        detail,
                        generation,
                        ticket: ticket.map(Ticket),
                    }
                }
            ),
        (session(), event(), text()).prop_map(|(session, event, by)| RecordEntry::Session {
            session,
            event,
            by
        }),
        (session(), text(), reason(), any::<u64>(), time(), time()).prop_map(
            |(session, tool, reason, count, first, last)| RecordEntry::Denials {
                session,
                tool,
                reason,
                count,
                first,
                last
            }
        ),
        any::<u64>().prop_map(|of| RecordEntry::Unknown { of }),
        (approval(), session(), any::<u64>(), approval_event()).prop_map(
            |(approval, session, call, event)| RecordEntry::Approval(Approval {
                approval,
                session,
                call: CallId(call),
                event
            })
        ),
    ]
}

fn broker() -> impl Strategy<Value = Message> {
    let ticket = || any::<u64>().prop_map(Ticket);
    let usage =
        any::<(u64, Option<u64>, Option<u64>)>().prop_map(|(wall_ms, cpu_ms, max_rss)| Usage {
            wall_ms,
            cpu_ms,
            max_rss,
        });
    let refusal = prop_oneof![
        Just(RefuseReason::StaleGeneration),
        reason().prop_map(RefuseReason::Denied)
    ];
    let cause = prop::sample::select(vec![
        ExitCause::Exited,
        ExitCause::NotStarted,
        ExitCause::Memory,
    ]);
    prop_oneof![
        any::<u64>().prop_map(|generation| Message::Policy(PolicyGeneration { generation })),
        prop::collection::vec(history(), 0..4)
            .prop_map(|entries| Message::History(History { entries })),
        recordable().prop_map(|entry| Message::Record(Record { entry })),
        any::<u64>().prop_map(|seq| Message::Recorded(Recorded { seq })),
        (session(), any::<(u64, u64)>(), tool(), grant(), text()).prop_map(
            |(session, (call, generation), tool, grant, arguments)| {
                Message::Prepare(Prepare {
                    session,
                    call: CallId(call),
                    tool,
                    grant,
                    generation,
                    arguments,
                })
            }
        ),
        (ticket(), confinement()).prop_map(|(ticket, confinement)| Message::Prepared(Prepared {
            ticket,
            confinement
        })),
        (refusal, text(), prop::option::of(ticket())).prop_map(|(reason, detail, ticket)| {
            Message::Refused(Refused {
                reason,
                detail,
                ticket,
            })
        }),
        (ticket(), decision(), class(), labels(), text()).prop_map(
            |(ticket, decision, session_taint, labels, detail)| {
                Message::Commit(Commit {
                    ticket,
                    decision,
                    session_taint,
                    labels,
                    detail,
                })
            }
        ),
        (ticket(), any::<u64>())
            .prop_map(|(ticket, seq)| Message::Committed(Committed { ticket, seq })),
        ticket().prop_map(|ticket| Message::Abort(Abort { ticket })),
        (ticket(), prop::option::of(exit()), cause, usage).prop_map(
            |(ticket, exit, cause, usage)| Message::Exited(Exited {
                ticket,
                exit,
                cause,
                usage
            })
        ),
        (ticket(), labels(), any::<bool>(), any::<u64>()).prop_map(
            |(ticket, Labels { class, untrusted }, truncated, bytes)| {
                Message::Finish(Finish {
                    ticket,
                    status: OutcomeStatus::Failed,
                    class,
                    untrusted,
                    truncated,
                    bytes,
                })
            }
        ),
    ]
}

fn envelope() -> impl Strategy<Value = Envelope> {
    (any::<u64>(), any::<bool>(), prop_oneof![client(), broker()]).prop_map(|(id, last, msg)| {
        if last {
            Envelope::new(id, msg)
        } else {
            Envelope::partial(id, msg)
        }
    })
}

proptest! {
    #[test]
    fn an_envelope_survives_the_wire(envelope in envelope()) {
        let body = envelope.encode().unwrap();
        let back = Envelope::decode(&body);
        prop_assert_eq!(back.as_ref(), Ok(&envelope));
        prop_assert_eq!(back.unwrap().encode().unwrap(), body);
    }

    #[test]
    fn any_bytes_are_an_envelope_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(envelope) = Envelope::decode(&bytes) {
            prop_assert!(envelope.encode().is_ok());
        }
    }

    #[test]
    fn a_fixture_with_some_bytes_changed_is_an_envelope_or_an_error(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..6),
    ) {
        let table = messages::table();
        let mut body = which.get(&table).1.encode().unwrap();
        for (place, byte, change) in changes {
            let place = place.index(body.len());
            match change {
                0 => body[place] = byte,
                1 => body.insert(place, byte),
                _ => { body.remove(place); }
            }
        }
        if let Ok(envelope) = Envelope::decode(&body) {
            let again = Envelope::decode(&envelope.encode().unwrap());
            prop_assert_eq!(again, Ok(envelope));
        }
    }

    #[test]
    fn a_cut_envelope_is_an_error(envelope in envelope(), cut in any::<prop::sample::Index>()) {
        let body = envelope.encode().unwrap();
        let cut = cut.index(body.len());
        prop_assert!(Envelope::decode(&body[..cut]).is_err());
        prop_assert!(Envelope::decode(&body).is_ok());
    }
}
