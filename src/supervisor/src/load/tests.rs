//! Configurations on a real disk: what loads, and what each rule that needs the disk says.

mod messages;

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

pub(crate) const TOOL: &str = r#"
description = "Shows nothing."
kind = "stdio"
command = ["/usr/bin/true"]
profile = "tools/base"
side_effect = false
resources = { path = "read" }
[arguments]
type = "object"
properties.path.type = "string"
"#;

pub(crate) struct Host {
    directory: tempfile::TempDir,
    pub(crate) directories: Directories,
}

/// A home, a configuration with the tool `show`, a directory of binaries, and `files`. Not below `/tmp`, of which every
/// sandbox has one of its own.
pub(crate) fn host() -> Host {
    // Whatever it was: what a group may write is no configuration.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let top = fs::canonicalize(directory.path()).unwrap();
    for below in [
        "home",
        "config/grants",
        "config/tools",
        "config/profiles",
        "bin",
        "files",
    ] {
        fs::create_dir_all(top.join(below)).unwrap();
    }
    let directories = Directories {
        home: top.join("home"),
        config: top.join("config"),
        binaries: top.join("bin"),
    };
    let host = Host {
        directory,
        directories,
    };
    host.write("config/tools/show.toml", TOOL);
    host
}

impl Host {
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(below)
    }

    pub(crate) fn write(&self, below: &str, text: &str) {
        fs::write(self.path(below), text).unwrap();
    }

    /// A grant of `show`, with `@` in `text` standing for the directory of everything.
    pub(crate) fn grant(&self, id: &str, text: &str) {
        let text = text.replace('@', self.path("").to_str().unwrap().trim_end_matches('/'));
        let head = "tool = \"show\"\nmode = \"auto\"\nmax_taint = \"private\"\n";
        let text = if text.contains("mode =") {
            text
        } else {
            format!("{head}{text}")
        };
        self.write(&format!("config/grants/{id}.toml"), &text);
    }

    fn tool(&self, from: &str, to: &str) {
        assert!(TOOL.contains(from));
        self.write("config/tools/show.toml", &TOOL.replace(from, to));
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        match load(&self.directories, 1) {
            Ok(_) => Vec::new(),
            Err(LoadFailure::Wrong(problems) | LoadFailure::Forbidden(problems)) => problems,
        }
    }

    #[track_caller]
    fn one_problem(&self, parts: &[&str]) {
        let problems = self.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        for part in parts {
            assert!(
                problems[0].contains(part),
                "{part:?} is not in {problems:?}"
            );
        }
    }
}

#[test]
fn a_sound_configuration_loads() {
    let host = host();
    host.grant(
        "files",
        "as = \"0\"\nconstraints.paths = [\"read:@/files\"]",
    );
    let loaded = load(&host.directories, 3).unwrap();
    assert_eq!(loaded.policy.generation(), 3);
    let id = GrantId::new("files").unwrap();
    assert_eq!(loaded.owners.get(&id), Some(&(0, 0)));
}

#[test]
fn a_configuration_that_is_not_there_is_an_error_with_the_way_out() {
    let mut host = host();
    host.directories.config = host.path("elsewhere");
    host.one_problem(&["elsewhere", "--config"]);
}

#[test]
fn a_configuration_that_others_may_write_is_refused_with_the_way_out() {
    let host = host();
    let tool = host.path("config/tools/show.toml");
    assert_eq!(host.problems(), [] as [String; 0]);
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o664)).unwrap();
    host.one_problem(&["tools/show.toml may be written by its group", "chmod go-w"]);
}

#[test]
fn a_grant_that_reaches_boxmakers_own_files_is_a_load_error() {
    let host = host();
    symlink(host.path("home"), host.path("files/link")).unwrap();
    for (path, what) in [
        ("@/home", "the home"),
        ("@/home/audit", "the home"),
        ("@/config/grants", "the configuration"),
        ("@/bin", "boxmaker's binaries"),
        ("@", "the home"),
        ("@/files/link", "the home"),
        ("/usr/bin", "the program of tool show"),
        ("/usr/bin/true", "the program of tool show"),
    ] {
        host.grant("reach", &format!("constraints.paths = [\"read:{path}\"]"));
        host.one_problem(&["grants/reach.toml", what, "no grant may reach"]);
    }
    host.grant("reach", "constraints.paths = [\"read:@/files\"]");
    assert_eq!(host.problems(), [] as [String; 0]);
}

#[test]
fn a_deny_grant_may_name_boxmakers_own_files() {
    let host = host();
    let deny = "tool = \"show\"\nmode = \"deny\"\nconstraints.paths = [\"read:@/home\"]";
    host.grant("deny", deny);
    assert_eq!(host.problems(), [] as [String; 0]);
}

#[test]
fn a_granted_path_that_is_a_link_is_a_load_error() {
    let host = host();
    fs::create_dir(host.path("files/real")).unwrap();
    symlink("real", host.path("files/link")).unwrap();
    host.grant("files", "constraints.paths = [\"read:@/files/link\"]");
    host.one_problem(&["grants/files.toml", "through a link", "files/real"]);
    host.grant("files", "constraints.paths = [\"read:@/files/real\"]");
    assert_eq!(host.problems(), [] as [String; 0]);
}

#[test]
fn a_tool_needs_a_profile_and_a_program_that_can_be_executed() {
    let host = host();
    host.tool("tools/base", "tools/none");
    host.one_problem(&["tools/show.toml", "no profile \"tools/none\""]);
    host.tool("/usr/bin/true", "/usr/bin/no-such-program");
    host.one_problem(&["tools/show.toml", "/usr/bin/no-such-program", "install it"]);
    host.tool("/usr/bin/true", "/etc/passwd");
    host.one_problem(&["tools/show.toml", "/etc/passwd is not executable"]);
    host.tool("/usr/bin/true", "/usr");
    host.one_problem(&["tools/show.toml", "/usr is not a file"]);
    host.tool("/usr/bin/true", "own");
    host.one_problem(&["tools/show.toml", "bin/own"]);
    fs::copy("/usr/bin/true", host.path("bin/own")).unwrap();
    assert_eq!(host.problems(), [] as [String; 0]);
}

#[test]
fn a_grant_names_a_user_that_exists() {
    let host = host();
    host.grant(
        "files",
        "as = \"nobody-at-all\"\nconstraints.paths = [\"read:@/files\"]",
    );
    host.one_problem(&["grants/files.toml", "no user \"nobody-at-all\""]);
    host.grant(
        "files",
        "as = \"root\"\nconstraints.paths = [\"read:@/files\"]",
    );
    assert_eq!(host.problems(), [] as [String; 0]);
}

#[test]
fn nothing_is_written_as_root_because_the_directory_is_roots() {
    let host = host();
    host.tool(
        "side_effect = false\nresources = { path = \"read\" }",
        "resources = { path = \"write\" }",
    );
    let grant = |user: &str| {
        format!("{user}after_untrusted = \"allow\"\nconstraints.paths = [\"write:/usr/share\"]")
    };
    host.grant("files", &grant(""));
    host.one_problem(&["grants/files.toml", "written as root", "`as`"]);
    host.grant("files", &grant("as = \"1000\"\n"));
    assert_eq!(host.problems(), [] as [String; 0]);
}

#[test]
fn every_problem_is_told_and_not_only_the_first() {
    let host = host();
    host.tool("tools/base", "tools/none");
    host.grant("one", "constraints.paths = [\"read:@/home\"]");
    host.grant("two", "constraints.paths = [\"read:@/bin\"]");
    assert_eq!(host.problems().len(), 3);
}

#[test]
fn what_needs_the_disk_is_told_at_its_line() {
    let host = host();
    host.tool("/usr/bin/true", "/usr/bin/no-such-program");
    host.one_problem(&["tools/show.toml:4: program"]);
    host.tool("tools/base", "tools/none");
    host.one_problem(&["tools/show.toml:5: there is no profile"]);
    host.write("config/tools/show.toml", TOOL);
    let paths = "[constraints]\npaths = [\n\"read:@/files\",\n\"read:@/home\",\n]";
    host.grant("reach", paths);
    host.one_problem(&["grants/reach.toml:7: "]);
    host.grant(
        "reach",
        "as = \"nobody-at-all\"\nconstraints.paths = [\"read:@/files\"]",
    );
    host.one_problem(&["grants/reach.toml:4: there is no user"]);
}

#[test]
fn a_range_of_uids_that_somebody_has_is_a_load_error() {
    if Privilege::of_this_process(Path::new("/nowhere")).unwrap() != Privilege::Root {
        eprintln!("skipped: without root the range is not used");
        return;
    }
    let host = host();
    host.write("config/config.toml", "\nuid_range = [70000, 80]\n");
    let accounts = Accounts::of(host.path("home"));
    let problems = || match load_on(&host.directories, 1, &accounts) {
        Ok(_) => Vec::new(),
        Err(LoadFailure::Wrong(problems) | LoadFailure::Forbidden(problems)) => problems,
    };
    assert_eq!(problems(), [] as [String; 0]);
    for (file, text) in [
        ("passwd", "ann:x:70079:100::/:/bin/sh\n"),
        ("group", "staff:x:70000:\n"),
        ("subuid", "ann:65536:65536\n"),
        ("subgid", "ann:65536:65536\n"),
    ] {
        let path = format!("home/{file}");
        host.write(&path, text);
        let found = problems();
        assert_eq!(found.len(), 1, "{found:?}");
        for part in [
            "config.toml:2: ",
            "70000 to 70079 holds ",
            file,
            "nobody has",
        ] {
            assert!(found[0].contains(part), "{part}: {found:?}");
        }
        fs::remove_file(host.path(&path)).unwrap();
    }
    assert_eq!(problems(), [] as [String; 0]);
}

#[test]
fn the_least_range_is_what_roles_and_calls_need() {
    let host = host();
    let least = confine::uids::ROLE_SLOTS as usize + crate::broker::call::MOST_LIVE;
    let range = |count| format!("uid_range = [2000000000, {count}]\n");
    host.write("config/config.toml", &range(least));
    assert_eq!(host.problems(), [] as [String; 0]);
    host.write("config/config.toml", &range(least - 1));
    host.one_problem(&["config.toml:1: ", "fewer uids"]);
}

#[test]
fn only_if_nothing_but_permission_is_missing_is_it_told_as_that() {
    let problem = |forbidden| Problem {
        text: "grants/a.toml: cannot look at /x".to_owned(),
        forbidden,
    };
    let denied = LoadFailure::of(vec![problem(true), problem(true)]);
    let told = denied.to_string();
    assert!(matches!(denied, LoadFailure::Forbidden(_)), "{told}");
    assert!(
        told.starts_with("permission denied: ")
            && told.ends_with("as the user whose files these are"),
        "{told}"
    );
    let wrong = LoadFailure::of(vec![problem(true), problem(false)]);
    let told = wrong.to_string();
    assert!(
        told.starts_with("the configuration is not usable:\n"),
        "{told}"
    );
}
