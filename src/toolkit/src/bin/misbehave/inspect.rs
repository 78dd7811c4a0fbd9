//! Everything that a process can see of where it is. Changes nothing; what cannot be read is told as the error's name.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use serde_json::{Map, Value, json};

use crate::report::name;

/// Descriptors, environment, mounts, ids, groups, capabilities, limits, processes, namespaces, directory and host name.
pub(crate) fn everything() -> Value {
    let status = status();
    let field = |key: &str| match &status {
        Ok(fields) => Ok(fields.get(key).map_or("", String::as_str)),
        Err(error) => Err(error
            .raw_os_error()
            .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)),
    };
    let text = |key: &str| told(field(key).map(Value::from));
    let numbers = |key: &str| {
        told(field(key).map(|text| {
            text.split_whitespace()
                .filter_map(|word| word.parse::<u32>().ok())
                .collect()
        }))
    };
    let capabilities: Map<String, Value> = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
        .into_iter()
        .map(|key| (key.to_owned(), text(key)))
        .collect();
    json!({
        "descriptors": told(links("/proc/self/fd")),
        "environment": environment(),
        "mountinfo": told(lines("/proc/self/mountinfo")),
        "uids": numbers("Uid"),
        "gids": numbers("Gid"),
        "groups": numbers("Groups"),
        "capabilities": capabilities,
        "no_new_privs": text("NoNewPrivs"),
        "seccomp": text("Seccomp"),
        "limits": limits(),
        "namespaces": told(links("/proc/self/ns")),
        "cgroup": told(lines("/proc/self/cgroup")),
        "processes": told(processes()),
        "pid": std::process::id(),
        "parent": rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get()),
        "root": told(names("/")),
        "cwd": told(std::env::current_dir().map(|path| path.to_string_lossy().into_owned().into())),
        "executable": told(std::env::current_exe().map(|path| path.to_string_lossy().into_owned().into())),
        "arguments": std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>(),
        "hostname": rustix::system::uname().nodename().to_string_lossy(),
    })
}

fn told(what: io::Result<Value>) -> Value {
    what.unwrap_or_else(|error| json!({"error": name(&error)}))
}

/// Each link of a directory and where it leads. The descriptor that reads the directory is closed before the links
/// are read, so it is not among them.
fn links(directory: &str) -> io::Result<Value> {
    let mut found = BTreeMap::new();
    for entry in entries(directory)? {
        match fs::read_link(Path::new(directory).join(&entry)) {
            Ok(target) => found.insert(entry, Value::from(target.to_string_lossy())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => found.insert(entry, json!({"error": name(&error)})),
        };
    }
    Ok(json!(found))
}

fn entries(directory: &str) -> io::Result<Vec<String>> {
    fs::read_dir(directory)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

fn names(directory: &str) -> io::Result<Value> {
    let mut names = entries(directory)?;
    names.sort();
    Ok(json!(names))
}

fn lines(path: &str) -> io::Result<Value> {
    Ok(fs::read_to_string(path)?.lines().collect())
}

fn environment() -> Value {
    std::env::vars_os()
        .map(|(key, value)| {
            (
                key.to_string_lossy().into_owned(),
                value.to_string_lossy().into_owned().into(),
            )
        })
        .collect::<Map<_, _>>()
        .into()
}

fn status() -> io::Result<BTreeMap<String, String>> {
    Ok(fs::read_to_string("/proc/self/status")?
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.to_owned(), value.trim().to_owned()))
        .collect())
}

/// Soft and hard limit of each resource; null is none.
fn limits() -> Value {
    let resources = [
        ("as", Resource::As),
        ("core", Resource::Core),
        ("cpu", Resource::Cpu),
        ("data", Resource::Data),
        ("fsize", Resource::Fsize),
        ("locks", Resource::Locks),
        ("memlock", Resource::Memlock),
        ("msgqueue", Resource::Msgqueue),
        ("nice", Resource::Nice),
        ("nofile", Resource::Nofile),
        ("nproc", Resource::Nproc),
        ("rss", Resource::Rss),
        ("rtprio", Resource::Rtprio),
        ("rttime", Resource::Rttime),
        ("sigpending", Resource::Sigpending),
        ("stack", Resource::Stack),
    ];
    resources
        .into_iter()
        .map(|(name, resource)| {
            let limit = getrlimit(resource);
            (name.to_owned(), json!([limit.current, limit.maximum]))
        })
        .collect::<Map<_, _>>()
        .into()
}

/// Pid and command name of every process that `/proc` shows.
fn processes() -> io::Result<Value> {
    let mut seen = BTreeMap::new();
    for entry in entries("/proc")? {
        let Ok(pid) = entry.parse::<u32>() else {
            continue;
        };
        match fs::read_to_string(format!("/proc/{pid}/comm")) {
            Ok(command) => seen.insert(pid, Value::from(command.trim_end())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => seen.insert(pid, json!({"error": name(&error)})),
        };
    }
    Ok(json!(seen))
}
