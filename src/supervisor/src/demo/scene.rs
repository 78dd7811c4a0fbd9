//! What happens in the demo: the calls, in order, and how each must end.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use proto::approval::Answer;
use proto::client::ToolResponse;
use proto::{DenyReason, Layer, Level};
use serde_json::{Value, json};

use super::setting::{PYTHON, Setting};

/// How a call must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    Result,
    Failed,
    Denied(DenyReason),
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result => f.write_str("a result"),
            Self::Failed => f.write_str("a failure"),
            Self::Denied(reason) => write!(f, "the denial {reason}"),
        }
    }
}

/// The sessions of the demo: taint stays within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Work,
    Secret,
    Hostile,
}

/// One call.
#[derive(Debug)]
pub(super) struct Act {
    pub(super) part: Part,
    /// Printed before it, where a part begins.
    pub(super) opens: Option<&'static str>,
    pub(super) title: &'static str,
    pub(super) tool: &'static str,
    pub(super) arguments: String,
    pub(super) expect: Expect,
    /// What the owner answers, if asked.
    pub(super) answer: Option<Answer>,
    /// Why it is not made on this host.
    pub(super) skipped: Option<String>,
    /// A file it writes, whose owner is shown.
    writes: Option<&'static str>,
    /// A text that a result must not hold: an act that succeeded and should not have.
    never: Option<&'static str>,
}

impl Act {
    fn new(part: Part, title: &'static str, tool: &'static str, arguments: Value) -> Self {
        Self {
            part,
            opens: None,
            title,
            tool,
            arguments: arguments.to_string(),
            expect: Expect::Result,
            answer: None,
            skipped: None,
            writes: None,
            never: None,
        }
    }

    const fn opens(mut self, title: &'static str) -> Self {
        self.opens = Some(title);
        self
    }

    const fn fails(mut self) -> Self {
        self.expect = Expect::Failed;
        self
    }

    const fn denied(mut self, reason: DenyReason) -> Self {
        self.expect = Expect::Denied(reason);
        self
    }

    const fn answered(mut self, answer: Answer) -> Self {
        self.answer = Some(answer);
        self
    }

    const fn writes(mut self, file: &'static str) -> Self {
        self.writes = Some(file);
        self
    }

    const fn never(mut self, text: &'static str) -> Self {
        self.never = Some(text);
        self
    }

    /// Without root there is no full confinement, and the call must be refused for that.
    fn needs_full(self, least: Level) -> Self {
        match least {
            Level::Full => self,
            _ => self.denied(DenyReason::ConfinementTooWeak),
        }
    }

    /// Left out for the given reason, if there is one.
    fn unless(mut self, reason: Option<String>) -> Self {
        self.skipped = self.skipped.or(reason);
        self
    }

    fn needs(mut self, program: &str) -> Self {
        if !Path::new(program).exists() {
            self.skipped = Some(format!("there is no {program} on this host"));
        }
        self
    }

    /// What can be seen on the host after the call.
    pub(super) fn afterwards(&self, setting: &Setting) -> Option<String> {
        let path = setting.files.join(self.writes?);
        Some(match std::fs::metadata(&path) {
            Ok(file) => format!(
                "on the host: {} belongs to uid {}",
                path.display(),
                file.uid()
            ),
            Err(_) => format!("on the host: {} does not exist", path.display()),
        })
    }

    /// What the result shows that it should not.
    pub(super) fn unwanted(&self, response: &ToolResponse) -> Option<String> {
        let ToolResponse::Result { content, .. } = response else {
            return None;
        };
        let text = self.never.filter(|text| content.contains(text))?;
        Some(format!("something was let through: {text}"))
    }
}

/// Every call, in order.
pub(super) fn acts(setting: &Setting) -> Vec<Act> {
    let file = |below: &str| setting.files.join(below).to_string_lossy().into_owned();
    // An act of the hostile tool that succeeds says so with this.
    const DONE: &str = "\"outcome\":\"ok\"";
    vec![
        Act::new(
            Part::Work,
            "list the notes",
            "fs_list",
            json!({"path": file("notes")}),
        )
        .opens("An ordinary session"),
        Act::new(
            Part::Work,
            "read one",
            "fs_read",
            json!({"path": file("notes/garden.md")}),
        ),
        Act::new(
            Part::Work,
            "write a summary; the file belongs to the owner of the directory",
            "fs_write",
            json!({"path": file("out/summary.md"), "content": "Beans, peas, and a new hose.\n"}),
        )
        .writes("out/summary.md"),
        Act::new(
            Part::Work,
            "run the owner's script with the system's Python",
            "report",
            json!({"script": file("scripts/harvest.py")}),
        )
        .needs(PYTHON),
        Act::new(
            Part::Work,
            "write a letter, for which the owner is asked, and says yes",
            "fs_write",
            json!({"path": file("letters/to-ann.md"), "content": "Dear Ann,\nthe beans are up.\n"}),
        )
        .answered(Answer::Approved)
        .writes("letters/to-ann.md"),
        Act::new(
            Part::Work,
            "write another, and the owner says no",
            "fs_write",
            json!({"path": file("letters/to-bob.md"), "content": "Dear Bob,\nthe house is yours.\n"}),
        )
        .answered(Answer::Refused)
        .denied(DenyReason::ApprovalRefused)
        .writes("letters/to-bob.md"),
        Act::new(
            Part::Work,
            "read a file that no grant holds",
            "fs_read",
            json!({"path": "/etc/shadow"}),
        )
        .denied(DenyReason::NoGrant),
        Act::new(
            Part::Work,
            "read a link among the notes that leads out of them",
            "fs_read",
            json!({"path": file("notes/shortcut.md")}),
        )
        .denied(DenyReason::PathOutside),
        Act::new(
            Part::Work,
            "read a stranger's mail, which asks for something",
            "fs_read",
            json!({"path": file("inbox/mail.txt")}),
        ),
        Act::new(
            Part::Work,
            "do what the mail asks",
            "fs_write",
            json!({"path": file("out/for-the-stranger.md"), "content": "as you wish\n"}),
        )
        .denied(DenyReason::UntrustedContext)
        .writes("out/for-the-stranger.md"),
        Act::new(
            Part::Work,
            "use a grant that asks for full confinement",
            "fs_read",
            json!({"path": file("strict/deed.txt")}),
        )
        .needs_full(setting.least()),
        Act::new(
            Part::Secret,
            "read a secret",
            "fs_read",
            json!({"path": file("vault/recovery-code.txt")}),
        )
        .opens("A session that learns a secret"),
        Act::new(
            Part::Secret,
            "write it down where anybody may look",
            "fs_write",
            json!({"path": file("out/copy.md"), "content": "the code is …\n"}),
        )
        .denied(DenyReason::TaintTooHigh)
        .writes("out/copy.md"),
        Act::new(
            Part::Hostile,
            "sockets, /etc/shadow, /, pid 1, tracing, set-id files",
            "misbehave",
            json!({"acts": ["socket", "shadow", "root_write", "environ", "ptrace", "set_id"]}),
        )
        .opens("A tool that means harm, with a grant to run")
        .never(DONE),
        Act::new(
            Part::Hostile,
            "start processes without end",
            "misbehave",
            json!({"acts": ["fork"], "count": 100_000}),
        )
        .never(DONE)
        .unless(setting.unlimited(Layer::Pids)),
        Act::new(
            Part::Hostile,
            "write a gigabyte to its output",
            "misbehave",
            json!({"acts": ["flood"], "bytes": 1_u64 << 30}),
        )
        .fails(),
        Act::new(
            Part::Hostile,
            "ignore every request to end, for an hour",
            "misbehave",
            json!({"acts": ["ignore_term"], "ms": 3_600_000}),
        )
        .fails(),
    ]
}
