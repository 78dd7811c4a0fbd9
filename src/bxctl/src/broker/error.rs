//! Why brokerd did not do what it was asked, each with the way out.

use std::io;
use std::path::PathBuf;

use ipc::{RecvError, SendError};
use proto::frame::FrameError;
use proto::{ErrorCode, WireError};

use crate::visible;

/// Why brokerd did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// There is no socket.
    #[error(
        "boxmaker does not run: there is no socket {path}\n  `boxmaker up` starts it; --home DIR or BOXMAKER_HOME names another home"
    )]
    Absent {
        /// Where it should be.
        path: PathBuf,
    },
    /// There is a socket and nobody behind it.
    #[error(
        "boxmaker does not run: nobody listens at {path}\n  `boxmaker up` starts it, and `bxctl status` says what the last one left"
    )]
    Deserted {
        /// The socket.
        path: PathBuf,
    },
    /// This user may not connect.
    #[error("permission denied at {path}\n  {help}")]
    Forbidden {
        /// The socket.
        path: PathBuf,
        /// Who may.
        help: String,
    },
    /// The connection could not be made for another reason.
    #[error("cannot connect to {path}: {source}")]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The question could not be sent.
    #[error("cannot send {kind} to brokerd: {source}{}", too_long(source))]
    Send {
        /// The message's kind.
        kind: &'static str,
        /// Why.
        source: SendError,
    },
    /// What came back is no message.
    #[error(
        "no usable answer to {kind} from brokerd: {source}\n  install bxctl and boxmaker from one build; the output of `boxmaker up` may say more"
    )]
    Receive {
        /// What was asked.
        kind: &'static str,
        /// Why.
        source: RecvError,
    },
    /// brokerd went away.
    #[error(
        "brokerd closed the connection before it answered {kind}\n  `bxctl status` says whether it was started again"
    )]
    Closed {
        /// What was asked.
        kind: &'static str,
    },
    /// brokerd is there and silent.
    #[error(
        "brokerd did not answer {kind} within {seconds} s\n  it may be starting again: try once more, and look at the output of `boxmaker up`"
    )]
    Slow {
        /// What was asked.
        kind: &'static str,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The answer answers another question.
    #[error(
        "brokerd answered {kind} with {got}\n  bxctl and brokerd are of different versions: install both from one build"
    )]
    Unexpected {
        /// What was asked.
        kind: &'static str,
        /// The kind that came.
        got: &'static str,
    },
    /// brokerd says no.
    #[error("brokerd refused {kind}: {}{}", visible::line(&error.detail), way_out(error.code))]
    Refused {
        /// What was asked.
        kind: &'static str,
        /// Its answer.
        error: WireError,
    },
}

fn too_long(error: &SendError) -> &'static str {
    match error {
        SendError::Frame(FrameError::TooLong(_)) => {
            "\n  arguments of a call may have at most 256 KiB"
        }
        _ => "",
    }
}

const fn way_out(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::UnknownSession => "\n  `bxctl sessions` lists the sessions there are",
        ErrorCode::UnknownApproval => "\n  `bxctl pending` lists the questions that are open",
        ErrorCode::BadVersion | ErrorCode::BadMessage | ErrorCode::BadFrame => {
            "\n  bxctl and brokerd are of different versions: install both from one build"
        }
        ErrorCode::BadCall => {
            "\n  another caller uses this session: leave --session out, or try again"
        }
        ErrorCode::Internal => {
            "\n  `bxctl status` says more, and so does the output of `boxmaker up`"
        }
    }
}
