//! What a service manager is told (sd_notify(3)): that calls are served, that the supervisor is stopping, and what it
//! is doing. Knows nothing of roles. The variable reaches no process that the supervisor starts, because each of them
//! starts with an empty environment.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::voice;

/// Names the socket; without it there is nobody to tell.
pub(crate) const VARIABLE: &str = "NOTIFY_SOCKET";

/// A service manager that does not read holds nothing up for longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The service manager, or nobody.
#[derive(Debug)]
pub(crate) struct Notifier(Option<UnixDatagram>);

impl Notifier {
    /// Who listens at `name`: a path, or the name of an abstract socket behind `@`. What is wrong with it is reported,
    /// and nobody is told then: that a service manager waits in vain is for it to judge.
    pub(crate) fn new(name: Option<&OsStr>) -> Self {
        let socket = name.filter(|name| !name.is_empty()).map(connect);
        Self(socket.and_then(|socket| {
            let failed = |error: &io::Error| {
                voice::remark(&format!(
                    "{VARIABLE} is of no use, nobody is notified: {error}"
                ));
            };
            socket.inspect_err(failed).ok()
        }))
    }

    /// Calls are served.
    pub(crate) fn ready(&self) {
        self.say("READY=1\nSTATUS=calls are served");
    }

    /// The supervisor is ending.
    pub(crate) fn stopping(&self) {
        self.say("STOPPING=1\nSTATUS=stopping");
    }

    /// What the supervisor is doing, in one line.
    pub(crate) fn status(&self, line: &str) {
        self.say(&format!("STATUS={line}"));
    }

    fn say(&self, text: &str) {
        if let Some(socket) = &self.0
            && let Err(error) = socket.send(text.as_bytes())
        {
            voice::remark(&format!("the service manager was not notified: {error}"));
        }
    }
}

fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => {
            let rule = "it begins with neither / nor @";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, rule));
        }
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.connect_addr(&address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 256];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    }

    fn says_everything_to(socket: &UnixDatagram, name: &OsStr) {
        let notifier = Notifier::new(Some(name));
        notifier.status("brokerd ended");
        notifier.ready();
        notifier.stopping();
        assert_eq!(heard(socket), "STATUS=brokerd ended");
        assert_eq!(heard(socket), "READY=1\nSTATUS=calls are served");
        assert_eq!(heard(socket), "STOPPING=1\nSTATUS=stopping");
    }

    #[test]
    fn a_socket_with_a_path_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        says_everything_to(&socket, path.as_os_str());
    }

    #[test]
    fn an_abstract_socket_is_told() {
        let name = format!("boxmaker-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        says_everything_to(&socket, OsStr::new(&format!("@{name}")));
    }

    #[test]
    fn without_a_usable_name_nobody_is_told_and_nothing_fails() {
        for name in [None, Some(""), Some("relative"), Some("/nowhere/at/all")] {
            let notifier = Notifier::new(name.map(OsStr::new));
            assert!(notifier.0.is_none(), "{name:?}");
            notifier.ready();
        }
    }

    #[test]
    fn a_listener_that_left_stops_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier::new(Some(path.as_os_str()));
        drop(socket);
        notifier.ready();
    }
}
