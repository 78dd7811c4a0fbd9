//! The configuration directory, read from disk.
#![allow(
    clippy::unwrap_used,
    reason = "what a test takes for granted may end it"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use ipc::files::MAX_FILE;
use ipc::{Files, FilesError};
use rustix::fs::Mode;

/// A new directory, of which nothing is writable by a group, whatever the umask was.
fn directory() -> tempfile::TempDir {
    rustix::process::umask(Mode::from_raw_mode(0o022));
    tempfile::tempdir().unwrap()
}

fn put(directory: &Path, name: &str, bytes: &[u8]) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn names(files: &Files) -> Vec<&str> {
    files.0.keys().map(String::as_str).collect()
}

/// What is wrong with `directory`, if it is one thing.
#[track_caller]
fn one_error(directory: &Path) -> FilesError {
    let mut errors = Files::read(directory).unwrap_err().errors;
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

#[test]
fn everything_that_is_wrong_is_told_and_the_rest_is_read() {
    let directory = directory();
    for name in [
        "config.toml",
        "grants/a.toml",
        "grants/b.toml",
        "tools/c.toml",
        "profiles/d.toml",
    ] {
        put(directory.path(), name, name.as_bytes());
    }
    assert_eq!(Files::read(directory.path()).unwrap().0.len(), 5);
    let path = |name: &str| directory.path().join(name);
    put(directory.path(), "Config.toml", b"");
    put(directory.path(), "grants/mine/e.toml", b"");
    mode(&path("grants/b.toml"), 0o666);
    symlink("nowhere", path("tools/f.toml")).unwrap();
    put(
        directory.path(),
        "profiles/g.toml",
        &vec![b'#'; MAX_FILE as usize + 1],
    );
    mode(&path("profiles"), 0o775);
    let unreadable = Files::read(directory.path()).unwrap_err();
    let told: Vec<String> = unreadable
        .errors
        .iter()
        .map(|error| format!("{error}; {}", error.way_out()))
        .collect();
    let at = |name: &str| path(name).display().to_string();
    assert_eq!(
        told,
        [
            format!(
                "{} would be read by nobody: the only file of rules that is read here is config.toml; move it to grants/, tools/ or profiles/, or out of the configuration",
                at("Config.toml")
            ),
            format!(
                "{} may be written by everybody: only its owner may write what decides what runs; chmod go-w {}",
                at("grants/b.toml"),
                at("grants/b.toml")
            ),
            format!(
                "{} would be read by nobody: directories are read in profiles/ only; move its files up, or out of the configuration",
                at("grants/mine")
            ),
            format!(
                "cannot read {}: No such file or directory (os error 2); correct or remove the link",
                at("tools/f.toml")
            ),
            format!(
                "{} may be written by its group: only its owner may write what decides what runs; chmod go-w {}",
                at("profiles"),
                at("profiles")
            ),
            format!(
                "{} has 1048577 bytes, at most 1048576 are allowed; make it smaller: rules are a few lines each",
                at("profiles/g.toml")
            ),
        ]
    );
    assert_eq!(
        names(&unreadable.rest),
        [
            "config.toml",
            "grants/a.toml",
            "profiles/d.toml",
            "tools/c.toml"
        ]
    );
    let unread = ["grants/b.toml", "profiles/g.toml", "tools/f.toml"];
    assert!(unreadable.unread.iter().eq(unread.iter()), "{unreadable:?}");
    let judged = unreadable.stand_ins();
    assert_eq!(judged.0.len(), 7);
    assert!(unread.iter().all(|name| judged.0[*name].is_empty()));
    assert_eq!(judged.0["grants/a.toml"], b"grants/a.toml");
}

#[test]
fn the_files_of_a_configuration_are_read_and_what_is_put_aside_is_left_alone() {
    let directory = directory();
    for name in [
        "config.toml",
        "grants/a.toml",
        "tools/b.toml",
        "profiles/tools/c.toml",
        "profiles/d.toml",
        "grants/f.toml~",
        "tools/.gitignore",
        "profiles/.git/config",
        "grants/old~/a.toml",
        "notes/g.toml",
        "README",
        ".h.toml",
        "config.toml~",
    ] {
        put(directory.path(), name, name.as_bytes());
    }
    let odd = directory.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::write(odd, b"").unwrap();
    let files = Files::read(directory.path()).unwrap();
    let taken = [
        "config.toml",
        "grants/a.toml",
        "profiles/d.toml",
        "profiles/tools/c.toml",
        "tools/b.toml",
    ];
    assert_eq!(names(&files), taken);
    assert!(files.0.iter().all(|(name, bytes)| name.as_bytes() == bytes));
}

#[test]
fn what_looks_like_rules_and_would_be_read_by_nobody_is_an_error_with_the_way_out() {
    for (name, rule, fix) in [
        ("grants/deny", "end in .toml", "rename it to end in .toml"),
        ("grants/deny.tml", "end in .toml", "rename it"),
        ("grants/deny.toml.bak", "end in .toml", "move it out"),
        ("tools/deny.TOML", "end in .toml", "rename it"),
        (
            "grants/deny/a.toml",
            "in profiles/ only",
            "move its files up",
        ),
        (
            "tools/mine/a.toml",
            "in profiles/ only",
            "move its files up",
        ),
        ("profiles/README", "end in .toml", "rename it"),
        ("profiles/tools/base", "end in .toml", "rename it"),
        ("grant/a.toml", "grants/, tools/ and profiles/", "rename it"),
        ("Tools/a.toml", "grants/, tools/ and profiles/", "rename it"),
        ("deny.toml", "config.toml", "move it to grants/"),
        ("Config.toml", "config.toml", "move it"),
    ] {
        let directory = directory();
        put(directory.path(), "grants/a.toml", b"");
        assert!(Files::read(directory.path()).is_ok());
        put(directory.path(), name, b"");
        let error = one_error(directory.path());
        assert!(
            matches!(error, FilesError::Unread { .. }),
            "{name}: {error}"
        );
        let (told, way) = (error.to_string(), error.way_out());
        assert!(
            told.contains("would be read by nobody") && told.contains(rule),
            "{told}"
        );
        assert!(way.contains(fix), "{way}");
    }
}

#[test]
fn what_others_may_write_is_no_configuration() {
    for name in [
        "",
        "config.toml",
        "grants",
        "grants/a.toml",
        "profiles/tools",
        "profiles/tools/b.toml",
    ] {
        let directory = directory();
        for file in [
            "config.toml",
            "grants/a.toml",
            "profiles/tools/b.toml",
            "notes/c",
        ] {
            put(directory.path(), file, b"");
        }
        // What is not read may be anybody's.
        mode(&directory.path().join("notes"), 0o777);
        let path = directory.path().join(name);
        let closed = fs::metadata(&path).unwrap().permissions().mode();
        for (bits, whom) in [
            (0o020, "its group"),
            (0o002, "everybody"),
            (0o022, "everybody"),
        ] {
            assert!(Files::read(directory.path()).is_ok());
            mode(&path, closed | bits);
            let error = one_error(directory.path());
            assert!(
                matches!(&error, FilesError::Open { path: of, whom: told } if *of == path && *told == whom),
                "{name}: {error}"
            );
            assert!(
                error.way_out().starts_with("chmod go-w "),
                "{}",
                error.way_out()
            );
            mode(&path, closed);
        }
    }
}

#[test]
fn what_belongs_to_somebody_else_is_no_configuration() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    for name in ["", "config.toml", "grants", "grants/a.toml"] {
        let directory = directory();
        put(directory.path(), "config.toml", b"");
        put(directory.path(), "grants/a.toml", b"");
        let path = directory.path().join(name);
        assert!(Files::read(directory.path()).is_ok());
        chown(&path, Some(1_879_000_124), None).unwrap();
        let error = one_error(directory.path());
        assert!(
            matches!(
                error,
                FilesError::Foreign {
                    owner: 1_879_000_124,
                    ..
                }
            ),
            "{name}: {error}"
        );
        assert!(
            error.way_out().contains("chown root "),
            "{}",
            error.way_out()
        );
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn an_empty_configuration_is_one_and_a_missing_one_is_an_error() {
    let directory = directory();
    assert_eq!(Files::read(directory.path()).unwrap(), Files::default());
    let missing = directory.path().join("nowhere");
    let error = one_error(&missing);
    assert!(
        matches!(&error, FilesError::Read { path, .. } if *path == missing),
        "{error}"
    );
}

#[test]
fn a_fifo_is_refused_without_waiting_for_a_writer() {
    let directory = directory();
    put(directory.path(), "grants/a.toml", b"");
    assert!(Files::read(directory.path()).is_ok());
    let fifo = directory.path().join("grants/x.toml");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    let (done, answer) = mpsc::channel();
    let root = directory.path().to_owned();
    std::thread::spawn(move || done.send(one_error(&root)));
    let error = answer.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(
        matches!(&error, FilesError::Kind { path } if *path == fifo),
        "{error}"
    );
}

#[test]
fn a_directory_in_the_place_of_a_file_is_refused() {
    let directory = directory();
    fs::create_dir_all(directory.path().join("tools/x.toml")).unwrap();
    let error = one_error(directory.path());
    assert!(matches!(error, FilesError::Kind { .. }), "{error}");
    assert!(
        error.way_out().contains("move it away"),
        "{}",
        error.way_out()
    );
}

#[test]
fn the_way_out_of_what_cannot_be_read_is_the_one_for_its_cause() {
    let directory = directory();
    let missing = one_error(&directory.path().join("nowhere"));
    assert!(
        !missing.is_forbidden() && missing.way_out().contains("--config DIR"),
        "{missing}"
    );
    let makes = format!(
        "mkdir -p {0}/tools {0}/grants",
        directory.path().join("nowhere").display()
    );
    assert!(missing.way_out().contains(&makes), "{}", missing.way_out());
    symlink("nowhere", directory.path().join("config.toml")).unwrap();
    let dangling = one_error(directory.path());
    assert!(
        dangling.way_out().contains("link"),
        "{}",
        dangling.way_out()
    );
    let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let path = directory.path().to_owned();
    let closed = FilesError::Read { path, source };
    assert!(
        closed.is_forbidden() && closed.way_out().contains("as root"),
        "{closed}"
    );
}

#[test]
fn a_file_may_have_a_mebibyte_and_not_a_byte_more() {
    let directory = directory();
    let longest = vec![b'#'; usize::try_from(MAX_FILE).unwrap()];
    put(directory.path(), "grants/a.toml", &longest);
    assert_eq!(
        Files::read(directory.path()).unwrap().0["grants/a.toml"],
        longest
    );
    put(
        directory.path(),
        "grants/a.toml",
        &[longest.as_slice(), b"#"].concat(),
    );
    let error = one_error(directory.path());
    assert!(
        matches!(error, FilesError::TooLarge { bytes, .. } if bytes == MAX_FILE + 1),
        "{error}"
    );
}

#[test]
fn a_name_that_is_no_plain_utf_8_is_refused() {
    for bad in [&b"caf\xe9.toml"[..], b"a\nb.toml", b"a\x1b[2J.toml"] {
        let directory = directory();
        put(directory.path(), "grants/caf\u{e9}.toml", b"");
        assert_eq!(
            names(&Files::read(directory.path()).unwrap()),
            ["grants/caf\u{e9}.toml"]
        );
        fs::write(
            directory.path().join("grants").join(OsStr::from_bytes(bad)),
            b"",
        )
        .unwrap();
        let error = one_error(directory.path());
        assert!(matches!(error, FilesError::Name { .. }), "{error}");
        assert!(!error.to_string().contains(char::is_control));
    }
}

#[test]
fn a_link_is_followed_and_one_that_leads_nowhere_is_an_error() {
    for name in ["config.toml", "grants/a.toml", "grants", "profiles"] {
        let directory = directory();
        let place = directory.path().join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(directory.path().join("elsewhere"), &place).unwrap();
        let error = one_error(directory.path());
        assert!(
            matches!(&error, FilesError::Read { path, .. } if *path == place),
            "{name}: {error}"
        );
    }
    let directory = directory();
    put(directory.path(), "store/a.toml", b"linked");
    symlink("store", directory.path().join("grants")).unwrap();
    symlink("store/a.toml", directory.path().join("config.toml")).unwrap();
    assert_eq!(
        names(&Files::read(directory.path()).unwrap()),
        ["config.toml", "grants/a.toml"]
    );
}
