//! What the system call filter costs: instructions for a call, time of a call, time to install it; ours beside
//! seccompiler's three programs of the same sets, and beside no filter, in turns within one run.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use confine::seccomp::Filter;
use confine::seccomp::reference::Stacked;
use nix::libc;
use seccompiler::sock_filter;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 4000;
/// Few enough that most rounds are over before somebody else gets the processor.
const CALLS_A_ROUND: u32 = 500;
const INSTALLS: usize = 300;

/// Who is measured, in this order.
const NAMES: [&str; 3] = ["no filter", "seccompiler, 3 programs", "ours, 1 program"];

fn main() -> Outcome<()> {
    let sets = ["base".to_owned()];
    let ours = confine::seccomp::filter(&sets)?;
    let theirs = Stacked::of(&["base"]);
    let length: usize = theirs.programs().iter().map(Vec::len).sum();
    println!(
        "set base; seccompiler: {} instructions in 3 programs; ours: {} in 1\n",
        length,
        ours.program().len()
    );
    let report = json!({
        "kernel": rustix::system::uname().release().to_string_lossy(),
        "length": { "seccompiler": length, "ours": ours.program().len() },
        "instructions": instructions(ours, &theirs),
        "install": install(ours, &theirs)?,
        "calls": calls(ours, &theirs)?,
    });
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("bench");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join("seccomp.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&report)?)?;
    println!("written to {}", path.display());
    Ok(())
}

/// Instructions that the interpreter counts for calls that programs make.
fn instructions(ours: &Filter, theirs: &Stacked) -> Value {
    let creates = (libc::O_CREAT | libc::O_WRONLY) as u64;
    let rows: &[(&str, i64, &[u64])] = &[
        ("read", libc::SYS_read, &[]),
        ("write", libc::SYS_write, &[]),
        ("getpid", libc::SYS_getpid, &[]),
        ("futex", libc::SYS_futex, &[]),
        ("mmap", libc::SYS_mmap, &[]),
        ("newfstatat", libc::SYS_newfstatat, &[]),
        ("epoll_pwait2", libc::SYS_epoll_pwait2, &[]),
        ("openat, to read", libc::SYS_openat, &[0, 0, 0, 0]),
        (
            "openat, creating",
            libc::SYS_openat,
            &[0, 0, creates, 0o644],
        ),
        ("fcntl F_GETFD", libc::SYS_fcntl, &[0, 1]),
        ("ioctl TCGETS", libc::SYS_ioctl, &[0, 0x5401]),
        ("clone, a thread", libc::SYS_clone, &[0x003d_0f00]),
        ("socket: EPERM", libc::SYS_socket, &[]),
        ("clone3: ENOSYS", libc::SYS_clone3, &[]),
    ];
    println!(
        "{:<26}{:>14}{:>8}",
        "instructions for a call", "seccompiler", "ours"
    );
    let mut found = serde_json::Map::new();
    let mut note = |name: &str, theirs: usize, ours: usize| {
        println!("{name:<26}{theirs:>14}{ours:>8}");
        found.insert(
            name.to_owned(),
            json!({ "seccompiler": theirs, "ours": ours }),
        );
    };
    let both = |nr: u32, given: &[u64]| {
        let mut args = [0; 6];
        args[..given.len()].copy_from_slice(given);
        (theirs.steps(nr, args), ours.steps(nr, args))
    };
    for (name, nr, args) in rows {
        let (theirs, ours) = both(*nr as u32, args);
        note(name, theirs, ours);
    }
    let every = 0..463;
    let all: Vec<_> = every.map(|nr| both(nr, &[])).collect();
    let mean = |of: fn(&(usize, usize)) -> usize| all.iter().map(of).sum::<usize>() / all.len();
    note(
        "mean of calls 0 to 462",
        mean(|both| both.0),
        mean(|both| both.1),
    );
    println!();
    found.into()
}

/// What each of [`NAMES`] installs, in order.
fn filters(ours: &Filter, theirs: &Stacked) -> [Vec<Vec<sock_filter>>; 3] {
    [Vec::new(), theirs.programs().into(), vec![ours.program()]]
}

/// Time of installing, each time on a thread of its own, in turns.
fn install(ours: &Filter, theirs: &Stacked) -> Outcome<Value> {
    let filters = filters(ours, theirs);
    let mut samples = [const { Vec::new() }; 3];
    for _ in 0..INSTALLS {
        for (filters, samples) in filters.iter().zip(&mut samples).skip(1) {
            let once = || -> Outcome<Duration> {
                let begun = Instant::now();
                for filter in filters {
                    seccompiler::apply_filter(filter)?;
                }
                Ok(begun.elapsed())
            };
            let took = thread::scope(|scope| scope.spawn(once).join());
            samples.push(took.map_err(|_| "a thread that installs a filter panicked")??);
        }
    }
    Ok(table("install, µs", samples, |time| {
        time.as_secs_f64() * 1e6
    }))
}

/// An act whose system call is timed.
type Act = fn();

/// Calls whose arguments are not looked at, are looked at, and that are refused.
const ACTS: [(&str, Act); 3] = [
    ("getppid", || _ = black_box(rustix::process::getppid())),
    ("fcntl F_GETFD", || {
        _ = black_box(rustix::io::fcntl_getfd(std::io::stdin()))
    }),
    ("personality: ENOSYS", || {
        _ = black_box(nix::sys::personality::get())
    }),
];

/// Time of one call, on three threads, each with its filter; they take turns.
fn calls(ours: &Filter, theirs: &Stacked) -> Outcome<Value> {
    let filters = filters(ours, theirs);
    let mut threads = Vec::new();
    for filters in &filters {
        let (ask, asked) = channel::<Act>();
        let (answer, answered) = channel();
        let filters = filters.clone();
        thread::spawn(move || -> Outcome<()> {
            for filter in &filters {
                seccompiler::apply_filter(filter)?;
            }
            serve(&asked, &answer);
            Ok(())
        });
        threads.push((ask, answered));
    }
    let mut report = serde_json::Map::new();
    for (name, act) in ACTS {
        let mut samples = [const { Vec::new() }; 3];
        for round in 0..ROUNDS {
            for turn in 0..threads.len() {
                let turn = (turn + round) % threads.len();
                let (ask, answered) = &threads[turn];
                ask.send(act)?;
                samples[turn].push(answered.recv()?);
            }
        }
        let nanoseconds = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(CALLS_A_ROUND);
        report.insert(
            name.to_owned(),
            table(&format!("{name}, ns"), samples, nanoseconds),
        );
    }
    Ok(report.into())
}

fn serve(asked: &Receiver<Act>, answer: &Sender<Duration>) {
    for act in asked {
        let begun = Instant::now();
        for _ in 0..CALLS_A_ROUND {
            act();
        }
        if answer.send(begun.elapsed()).is_err() {
            return;
        }
    }
}

/// Prints three percentiles of each of [`NAMES`] that has samples, and returns them.
fn table(title: &str, samples: [Vec<Duration>; 3], unit: impl Fn(Duration) -> f64) -> Value {
    println!("{title:<26}{:>10}{:>10}{:>10}", "p10", "p50", "p99");
    let mut found = serde_json::Map::new();
    for (name, mut samples) in NAMES.into_iter().zip(samples) {
        if samples.is_empty() {
            continue;
        }
        samples.sort();
        let [p10, p50, p99] =
            [10, 50, 99].map(|percent| unit(samples[samples.len() * percent / 100]));
        println!("{name:<26}{p10:>10.1}{p50:>10.1}{p99:>10.1}");
        found.insert(
            name.to_owned(),
            json!({ "p10": p10, "p50": p50, "p99": p99 }),
        );
    }
    println!();
    found.into()
}
