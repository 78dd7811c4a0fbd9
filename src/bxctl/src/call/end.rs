//! The end of a call's session, also past the end of a brokerd: what was asked of one that went away is asked of the
//! next, which the same socket leads to.

use std::thread;
use std::time::Duration;

use proto::client::SessionOpened;
use proto::{ErrorCode, SessionId};

use crate::broker::{Broker, BrokerError};
use crate::place::Place;

/// How long to wait before brokerd is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// How many brokerds that end while they are asked are enough.
const ATTEMPTS: u32 = 10;

/// Ends `session`, over `broker` if that is a line that still answers.
///
/// # Errors
/// As [`BrokerError`].
pub(super) fn session(
    broker: Option<Broker>,
    session: &SessionId,
    place: &Place,
) -> Result<(), BrokerError> {
    let mut asked = false;
    let end = |broker: &mut Broker| {
        let ended = broker.end(session.clone());
        let again = std::mem::replace(&mut asked, true);
        match ended {
            // The brokerd that went away had ended it.
            Err(BrokerError::Refused { error, .. })
                if again && error.code == ErrorCode::UnknownSession =>
            {
                Ok(())
            }
            ended => ended,
        }
    };
    persist(broker, place, end)
}

/// Whether nothing more can be decided about the call that was made after `opened` and whose line is cut. An `own`
/// session is ended for that: brokerd answers once no call of it is being decided, and decides none afterwards. In
/// another's it is certain only if brokerd `went_away`: the next serves once its predecessor's calls are closed.
pub(super) fn settled(
    opened: &SessionOpened,
    own: bool,
    went_away: bool,
    place: &Place,
) -> (bool, Result<(), BrokerError>) {
    let asked = if own {
        session(None, &opened.session, place)
    } else if went_away {
        persist(None, place, |broker| broker.sessions().map(drop))
    } else {
        return (false, Ok(()));
    };
    match asked {
        // Without a supervisor there is nobody who could let anything run.
        Err(error @ (BrokerError::Absent { .. } | BrokerError::Deserted { .. })) => {
            (true, if own { Err(error) } else { Ok(()) })
        }
        other => (other.is_ok(), other),
    }
}

/// Asks, and asks again over another connection when this one ends without an answer.
fn persist(
    mut broker: Option<Broker>,
    place: &Place,
    mut ask: impl FnMut(&mut Broker) -> Result<(), BrokerError>,
) -> Result<(), BrokerError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut line = match broker.take() {
            Some(line) => line,
            None => Broker::connect(&place.socket())?,
        };
        match ask(&mut line) {
            Err(
                BrokerError::Closed { .. } | BrokerError::Send { .. } | BrokerError::Receive { .. },
            ) if attempt < ATTEMPTS => thread::sleep(PAUSE),
            other => return other,
        }
    }
}
