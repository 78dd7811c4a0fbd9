//! How a command of bxctl ends: done, refused, or not at all, and the exit status of each.

use std::io;

use crate::arguments::ArgumentError;
use crate::audit::AuditError;
use crate::broker::BrokerError;
use crate::configuration::ConfigurationError;
use crate::moment::TimeError;

/// A command that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// Exit status 0.
    Well,
    /// The answer is no: a call was denied or failed, a check found errors, a log is broken. Exit status 1.
    Refused,
    /// This signal asked for the end before there was one. bxctl ends as the signal would have ended it.
    Interrupted(i32),
}

/// A command that was not.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The words are no arguments.
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    /// A time is none.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The log cannot be read to its end.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// brokerd could not be asked.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// Signals could not be waited for.
    #[error("cannot wait for signals: {0}")]
    Signals(#[source] io::Error),
    /// The result could not be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// The exit status: 2 for usage and unusable input, 1 for what failed (architecture.md section 8).
    #[must_use]
    pub const fn status(&self) -> u8 {
        match self {
            Self::Audit(AuditError::Broken(_))
            | Self::Broker(_)
            | Self::Signals(_)
            | Self::Output(_) => 1,
            Self::Arguments(_) | Self::Time(_) | Self::Configuration(_) | Self::Audit(_) => 2,
        }
    }

    /// Whether whoever read the output went away, which nobody needs to be told.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_input_is_2_and_failure_is_1() {
        assert_eq!(Failure::from(ArgumentError::Mixed).status(), 2);
        assert_eq!(
            Failure::from(BrokerError::Closed { kind: "status" }).status(),
            1
        );
    }

    #[test]
    fn only_a_closed_pipe_is_kept_silent() {
        assert!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).is_closed_pipe());
        assert!(!Failure::from(io::Error::from(io::ErrorKind::StorageFull)).is_closed_pipe());
    }
}
