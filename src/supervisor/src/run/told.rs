//! What a run says of itself on standard error: how the program is confined, how it ended if that is no status of its own,
//! and the same as JSON.

use std::time::Duration;

use confine::launch::Ended;
use proto::audit::ExitCause;
use proto::{Confinement, Level};
use serde_json::json;

use super::Status;
use crate::count;

/// In one line, before the program starts.
pub(super) fn begins(confinement: &Confinement) -> String {
    let layers = count(confinement.layers.len() as u64, "layer");
    if confinement.level == Level::Full {
        return format!("confinement full, {layers} measured");
    }
    let names = |waived: bool| -> Vec<&str> {
        let gaps = confinement.gaps.iter();
        gaps.filter(|gap| confinement.waived.contains(&gap.layer) == waived)
            .map(|gap| gap.layer.as_str())
            .collect()
    };
    let mut text = format!("confinement {}, {layers} measured", confinement.level);
    for (what, layers) in [("gaps", names(false)), ("waived", names(true))] {
        if !layers.is_empty() {
            text.push_str(&format!("; {what}: {}", layers.join(" ")));
        }
    }
    text + "; `boxmaker doctor` says why and what helps"
}

/// How it ended, where the program's own status does not say it.
pub(super) fn how(ended: &Ended, signal: Option<i32>, wall: Duration) -> Option<String> {
    let detail = ended.detail.as_deref().unwrap_or("nothing more is known");
    match ended.cause {
        ExitCause::Exited => None,
        ExitCause::Timeout => Some(format!(
            "ended after {}: its time was up; --timeout gives it more",
            humantime::format_duration(wall)
        )),
        ExitCause::Memory => Some(
            "killed: it passed the memory limit of its profile; a profile with more is a file in profiles/ of the \
             configuration"
                .to_owned(),
        ),
        ExitCause::NotStarted => Some(format!("it could not be started: {detail}")),
        ExitCause::Aborted if signal.is_some() => None,
        ExitCause::Aborted | ExitCause::Lost => Some(format!("its sandbox is gone: {detail}")),
    }
}

/// One JSON object about a run that took place.
pub(super) fn ended(
    confinement: &Confinement,
    ended: &Ended,
    status: Status,
    record: u64,
) -> String {
    let (code, signal) = match status {
        Status::Code(code) => (Some(code), None),
        Status::Signal(signal) => (None, Some(signal)),
    };
    json!({
        "status": code,
        "signal": signal,
        "cause": ended.cause,
        "exit": ended.exit,
        "usage": ended.usage,
        "detail": ended.detail,
        "confinement": confinement,
        "record": record,
    })
    .to_string()
}

/// One about a run that did not.
pub(super) fn refused(why: &str, status: u8) -> String {
    json!({ "status": status, "error": why }).to_string()
}
