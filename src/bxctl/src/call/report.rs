//! What one call came to, for a person and as JSON. Pure: the answer, the record if it was found, and the time it took.

use proto::audit::{Decision, DecisionRecord};
use proto::client::ToolResponse;
use proto::{DataClass, DenyReason, GrantId, Level, SessionId};
use serde::Serialize;

use super::hint;
use crate::configuration;
use crate::moment;
use crate::screen::Tone;
use crate::visible;

/// How the call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The tool gave a result.
    Result,
    /// The tool ran and failed.
    Failed,
    /// Nothing ran.
    Denied,
}

/// Everything that is known of one call. Fields that do not apply are absent from the JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(
    missing_docs,
    reason = "the fields are those of the answer and of the record"
)]
pub struct Report {
    pub session: SessionId,
    pub tool: String,
    pub status: Status,
    /// `allowed`, `approved` or `denied`.
    pub decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<DenyReason>,
    /// What the caller may know of a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What the record says to the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Absent when the log could not be read, or holds no record that is certainly this call's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
    /// The decision's number in the log; absent as `grant` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<DataClass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// The result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What a failed tool said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The files of the configuration that are not what boxmaker runs with, after a denial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// From the question to the answer, as bxctl saw it.
    pub duration_ms: u64,
}

impl Report {
    /// Joins the answer with its record; `None` for a question to the owner, which is no end.
    #[must_use]
    pub fn new(
        session: SessionId,
        tool: String,
        answer: ToolResponse,
        record: Option<(u64, Decision)>,
        duration_ms: u64,
    ) -> Option<Self> {
        let (seq, record) = record.unzip();
        let mut report = Self {
            session,
            tool,
            status: Status::Result,
            decision: "allowed",
            reason: None,
            detail: None,
            why: None,
            grant: None,
            seq,
            level: None,
            class: None,
            untrusted: None,
            truncated: None,
            content: None,
            message: None,
            changed: Vec::new(),
            duration_ms,
        };
        if let Some(record) = record {
            report.why = Some(record.detail).filter(|detail| !detail.is_empty());
            report.level = record.confinement.map(|confinement| confinement.level);
            report.grant = match record.decision {
                DecisionRecord::Allowed { grant } => Some(grant),
                DecisionRecord::Approved { grant, .. } => {
                    report.decision = "approved";
                    Some(grant)
                }
                DecisionRecord::Denied { grant, .. } => grant,
            };
        }
        match answer {
            ToolResponse::PendingApproval { .. } => return None,
            ToolResponse::Result {
                content,
                class,
                untrusted,
                truncated,
                confinement,
            } => {
                report.content = Some(content);
                report.class = Some(class);
                report.untrusted = Some(untrusted);
                report.truncated = Some(truncated);
                report.level = Some(confinement);
            }
            ToolResponse::Failed {
                message,
                class,
                untrusted,
            } => {
                report.status = Status::Failed;
                report.message = Some(message);
                report.class = Some(class);
                report.untrusted = Some(untrusted);
            }
            ToolResponse::Denied { reason, detail } => {
                report.status = Status::Denied;
                report.decision = "denied";
                report.reason = Some(reason);
                report.detail = Some(detail).filter(|detail| !detail.is_empty());
            }
        }
        Some(report)
    }

    /// One line about the decision; for a failure and a denial, what the tool or the broker said and where to look.
    #[must_use]
    pub fn remark(&self, colour: bool) -> String {
        let (head, tone) = match self.status {
            Status::Result => (self.decision, Tone::Good),
            Status::Failed => ("failed", Tone::Bad),
            Status::Denied => ("denied", Tone::Bad),
        };
        let mut parts = Vec::new();
        if let Some(reason) = self.reason {
            parts.push(reason.to_string());
        }
        if let Some(grant) = &self.grant {
            parts.push(format!("grant {grant}"));
        }
        if let Some(level) = self.level {
            parts.push(format!("level {level}"));
        }
        if let Some(class) = self.class {
            parts.push(class.to_string());
        }
        for (mark, word) in [(self.untrusted, "untrusted"), (self.truncated, "truncated")] {
            if mark == Some(true) {
                parts.push(word.to_owned());
            }
        }
        parts.push(moment::duration(self.duration_ms));
        parts.push(format!("session {}", self.session));
        if let Some(seq) = self.seq {
            parts.push(format!("record {seq}"));
        }
        let tool = visible::line(&self.tool);
        let mut text = format!(
            "{tool} {}: {}\n",
            tone.paint(head, colour),
            parts.join(", ")
        );
        if let Some(message) = &self.message {
            for line in visible::text(message).lines() {
                text.push_str(&format!("  {line}\n"));
            }
        }
        if let Some(reason) = self.reason {
            // What the owner may know has in it what the caller may.
            if let Some(why) = self.why.as_ref().or(self.detail.as_ref()) {
                let about = format!("tool {}: ", self.tool);
                let why = why.strip_prefix(&about).unwrap_or(why);
                text.push_str(&format!("  {}\n", visible::line(why)));
            }
            if !self.changed.is_empty() {
                text.push_str(&format!("  {}\n", configuration::stale(&self.changed)));
            }
            text.push_str(&format!("  look: {}\n", hint::way_out(reason)));
            text.push_str(&format!(
                "  look: `bxctl audit show --session {}`\n",
                self.session
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests;
