//! What is outside of every sandbox and waits to be reached: listeners, somebody who calls, a process, a segment of shared
//! memory. All of it ends with the value.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::Signal;

use super::USER;

/// How often a thread looks whether it is to end.
const TURN: Duration = Duration::from_millis(20);

/// Everything that waits.
#[derive(Debug)]
pub(super) struct Outside {
    probe: PathBuf,
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    echo: u16,
    /// Held, never asked: who connects is waiting to be accepted, which is enough.
    _local: [UnixListener; 2],
    _datagrams: UnixDatagram,
    victim: Child,
    segment: String,
    key: String,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Outside {
    /// With sockets in `notes`, and in `out` somebody who calls a socket as soon as there is one, and moves a directory away
    /// as soon as that is asked for.
    pub(super) fn new(probe: &Path, nonce: &str, notes: &Path, out: &Path) -> Self {
        let abstract_name =
            |name: &str| SocketAddr::from_abstract_name(format!("escape-{name}-{nonce}")).unwrap();
        let local = [
            UnixListener::bind(notes.join("socket")).unwrap(),
            UnixListener::bind_addr(&abstract_name("listener")).unwrap(),
        ];
        let datagrams = UnixDatagram::bind(notes.join("datagrams")).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        for name in ["socket", "datagrams"] {
            let open = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(notes.join(name), open).unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let echo = udp.local_addr().unwrap().port();
        udp.set_read_timeout(Some(TURN)).unwrap();
        let stopped = Arc::clone(&stop);
        let answering = std::thread::spawn(move || answer(&udp, &stopped));
        let stopped = Arc::clone(&stop);
        let names = [
            abstract_name("caller"),
            SocketAddr::from_pathname(out.join("listener")).unwrap(),
        ];
        let out = out.to_owned();
        let calling = std::thread::spawn(move || call(&names, &out, &stopped));
        let mut victim = Command::new(probe)
            .args(["linger", nonce])
            .arg(notes.with_file_name("secret"))
            .arg(USER.to_string())
            .env("ESCAPE_NONCE", nonce)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        // It says its number once it keeps what it is to keep.
        let mut line = String::new();
        BufReader::new(victim.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let key = u32::from_str_radix(&nonce[..7], 16).unwrap().to_string();
        let made = run(probe, &["make-segment", &key]);
        assert_eq!(made["outcome"], "ok", "{made}");
        Self {
            probe: probe.to_owned(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            tcp6: TcpListener::bind("[::1]:0").ok(),
            echo,
            _local: local,
            _datagrams: datagrams,
            victim,
            segment: made["detail"].as_str().unwrap().to_owned(),
            key,
            stop,
            threads: vec![answering, calling],
        }
    }

    /// The process that is there to be reached.
    pub(super) fn victim(&self) -> u32 {
        self.victim.id()
    }

    /// Whether it has a signal that it keeps back (`ShdPnd` of proc_pid_status(5)).
    pub(super) fn victim_was_told(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.victim())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
        let pending = u64::from_str_radix(line.unwrap().trim(), 16).unwrap();
        pending & 1 << (Signal::USR2.as_raw() - 1) != 0
    }

    /// The names by which the rows call what is here.
    pub(super) fn names(&self) -> Vec<(&'static str, String)> {
        let port = self.tcp.local_addr().unwrap().port();
        let port6 = self
            .tcp6
            .as_ref()
            .map_or(port, |tcp| tcp.local_addr().unwrap().port());
        vec![
            ("@victim", self.victim().to_string()),
            ("@port6", port6.to_string()),
            ("@port", port.to_string()),
            ("@echo", self.echo.to_string()),
            ("@key", self.key.clone()),
        ]
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        // Each fails only if it has ended already.
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = run(&self.probe, &["remove-segment", &self.segment]);
    }
}

fn run(probe: &Path, words: &[&str]) -> serde_json::Value {
    let output = Command::new(probe).args(words).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Sends back whatever comes.
fn answer(socket: &UdpSocket, stop: &AtomicBool) {
    let mut text = [0; 512];
    while !stop.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut text) {
            let _ = socket.send_to(&text[..length], from);
        }
    }
}

/// Calls, until somebody listens and again after that; and moves `leaving` out of a tree once there is a file `leave`.
fn call(names: &[SocketAddr], out: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        if out.join("leave").exists() {
            std::fs::rename(out.join("leaving"), out.with_file_name("left")).unwrap();
            std::fs::remove_file(out.join("leave")).unwrap();
        }
        for name in names {
            let _ = UnixStream::connect_addr(name);
        }
        std::thread::sleep(TURN);
    }
}
