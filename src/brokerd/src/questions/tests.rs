//! Who can be answered, when, and how often.

use proto::{DataClass, GrantId, Labels, ToolName};

use super::*;

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn named(name: &str) -> ApprovalId {
    ApprovalId::new(name).unwrap()
}

const NOW: Timestamp = Timestamp::from_millis(5);

fn reserve<'a>(questions: &'a Questions, name: &str) -> Result<Waiter<'a>, NoQuestion> {
    questions.reserve(&session(name), |approval| Question {
        approval,
        session: session(name),
        call: CallId(3),
        tool: ToolName::new("t").unwrap(),
        arguments: "{}".to_owned(),
        grant: GrantId::new("g").unwrap(),
        taint: DataClass::Private,
        untrusted: false,
        labels: Labels {
            class: DataClass::Private,
            untrusted: true,
        },
        why: String::new(),
        asked: Timestamp::from_millis(1),
        expires: Timestamp::from_millis(9),
    })
}

fn open<'a>(questions: &'a Questions, name: &str) -> Waiter<'a> {
    let waiter = reserve(questions, name).unwrap();
    waiter.show();
    waiter
}

fn ids(questions: &Questions) -> Vec<String> {
    let list = questions.list().into_iter();
    list.map(|question| question.approval.to_string()).collect()
}

#[test]
fn a_question_is_seen_and_answered_only_between_its_record_and_its_end() {
    let questions = Questions::after(6);
    let waiter = reserve(&questions, "s").unwrap();
    assert_eq!(waiter.id(), &named("a7"));
    assert!(ids(&questions).is_empty());
    assert_eq!(questions.begin_answer(&named("a7"), NOW), None);
    waiter.show();
    assert_eq!(ids(&questions), ["a7"]);
    assert_eq!(questions.begin_answer(&named("a8"), NOW), None);
    let late = Timestamp::from_millis(9);
    assert_eq!(questions.begin_answer(&named("a7"), late), None);
    assert!(questions.begin_answer(&named("a7"), NOW).is_some());
    drop(waiter);
    assert_eq!(questions.begin_answer(&named("a7"), NOW), None);
    assert_eq!(reserve(&questions, "s").unwrap().id(), &named("a8"));
}

#[test]
fn an_answer_is_taken_once_and_one_that_is_not_recorded_was_none() {
    let questions = Questions::after(0);
    let waiter = open(&questions, "s");
    let id = named("a1");
    assert!(questions.begin_answer(&id, NOW).is_some());
    assert_eq!(questions.begin_answer(&id, NOW), None);
    assert!(ids(&questions).is_empty() && !waiter.close());
    questions.end_answer(&id, None);
    assert_eq!((waiter.said(), ids(&questions)), (None, vec!["a1".into()]));
    assert!(questions.begin_answer(&id, NOW).is_some());
    questions.end_answer(&id, Some(Answer::Refused));
    assert_eq!(waiter.said(), Some(Said::Answered(Answer::Refused)));
    assert_eq!(questions.begin_answer(&id, NOW), None);
    assert!(!waiter.close());
}

#[test]
fn a_question_that_was_closed_cannot_be_answered() {
    let questions = Questions::after(0);
    let waiter = open(&questions, "s");
    assert!(waiter.close());
    assert_eq!(questions.begin_answer(&named("a1"), NOW), None);
}

#[test]
fn the_end_of_a_session_ends_its_own_questions() {
    let questions = Questions::after(0);
    let (one, other) = (open(&questions, "s"), open(&questions, "t"));
    questions.end_session(&session("s"));
    assert_eq!(one.said(), Some(Said::SessionEnded));
    assert_eq!(other.said(), None);
    assert_eq!(ids(&questions), ["a2"]);
}

#[test]
fn a_session_has_64_open_questions_and_all_have_256() {
    let questions = Questions::after(0);
    let mut waiters = Vec::new();
    for name in ["a", "b", "c", "d"] {
        for _ in 0..PER_SESSION {
            waiters.push(open(&questions, name));
        }
        let more = reserve(&questions, name);
        assert!(
            matches!(more, Err(NoQuestion::SessionFull | NoQuestion::Full)),
            "{name}"
        );
    }
    assert!(matches!(reserve(&questions, "e"), Err(NoQuestion::Full)));
    waiters.pop();
    drop(reserve(&questions, "e").unwrap());
}

#[test]
fn the_number_of_a_question_is_read_from_its_id() {
    assert_eq!(number(&id(17).unwrap()), 17);
    assert_eq!(number(&named("b17")), 0);
    assert_eq!(number(&named("a")), 0);
}
