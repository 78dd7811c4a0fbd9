//! What `boxmaker up` says of bad input on a real disk, word for word, with nothing left out because of something else.

use super::*;

/// The problems, with `@` for the directory of everything.
fn told(host: &Host) -> Vec<String> {
    let top = host.path("");
    let top = top.to_str().unwrap().trim_end_matches('/');
    let problems = host.problems().into_iter();
    problems.map(|problem| problem.replace(top, "@")).collect()
}

/// The warnings of a configuration that loads, likewise.
fn warned(host: &Host) -> Vec<String> {
    let top = host.path("");
    let top = top.to_str().unwrap().trim_end_matches('/');
    let warnings = load(&host.directories, 1).unwrap().warnings.into_iter();
    warnings.map(|warning| warning.replace(top, "@")).collect()
}

#[test]
fn every_kind_of_bad_file_is_told_in_one_run() {
    let host = host();
    fs::create_dir(host.path("files/real")).unwrap();
    symlink("real", host.path("files/link")).unwrap();
    let tool = |from: &str, to: &str| TOOL.replace(from, to);
    host.write("config/config.toml", "uid_range = [1879048192, 8]\n");
    host.write(
        "config/tools/absent.toml",
        &tool("/usr/bin/true", "/usr/bin/no-such"),
    );
    host.write(
        "config/tools/plain.toml",
        &tool("/usr/bin/true", "/etc/passwd"),
    );
    host.write("config/tools/lost.toml", &tool("tools/base", "tools/bass"));
    host.write(
        "config/tools/twice.toml",
        &format!("kind = \"argv\"\n{}", TOOL.trim_start()),
    );
    host.write(
        "config/profiles/own.toml",
        "seccomp = [\"base\"]\nview = [\"/\"]\n",
    );
    host.grant("bytes", "");
    fs::write(
        host.path("config/grants/bytes.toml"),
        b"tool = \"show\"\nmode = \"\xff\"\n",
    )
    .unwrap();
    host.grant("config", "constraints.paths = [\"read:@/config/grants\"]");
    host.grant("gone", "tool = \"shw\"\nmode = \"auto\"\nmax_taint = \"private\"\nconstraints.paths = [\"read:@/files\"]");
    host.grant("home", "colour = 1\n[constraints]\npaths = [\n\"read:@/files\",\n\"read:@/home\",\n\"read:@/files/*\",\n]");
    host.grant("link", "constraints.paths = [\"read:@/files/link\"]");
    host.grant("program", "constraints.paths = [\"read:/usr/bin\"]");
    host.grant(
        "user",
        "as = \"nobody-at-all\"\nconstraints.paths = [\"read:@/files\"]",
    );
    host.grant(
        "users",
        "as = \"no body\"\nconstraints.paths = [\"read:@/files\"]",
    );
    host.write("config/grants/open.toml", "mode = 1\n");
    let open = host.path("config/grants/open.toml");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).unwrap();
    host.write("config/grants/notes.txt", "");
    host.write("config/grant.toml", "");
    let own = "no grant may reach boxmaker's own files: grant a path beside them";
    let root = Privilege::of_this_process(Path::new("/nowhere")).unwrap() == Privilege::Root;
    let as_user = match root {
        true => {
            "grants/user.toml:4: there is no user \"nobody-at-all\"; name a user of /etc/passwd or a number"
        }
        false => {
            "grants/user.toml:4: `as = \"nobody-at-all\"` needs root: without it every tool works as the user who started boxmaker; remove it"
        }
    };
    assert_eq!(
        told(&host),
        [
            "configuration: @/config/grant.toml would be read by nobody: the only file of rules that is read here is config.toml; move it to grants/, tools/ or profiles/, or out of the configuration",
            "configuration: @/config/grants/notes.txt would be read by nobody: rules are read from names that end in .toml; rename it to end in .toml, or move it out; a name that begins with a dot or ends in ~ may stay",
            "configuration: @/config/grants/open.toml may be written by everybody: only its owner may write what decides what runs; chmod go-w @/config/grants/open.toml",
            "config.toml:1: `uid_range` holds fewer uids than the 80 of 16 roles and 64 calls: 8; write [first uid, number of uids], or remove it: [1879048192, 65536] is the default",
            "grants/bytes.toml:2: the file is not UTF-8; save it as UTF-8",
            &format!(
                "grants/config.toml:4: @/config/grants contains or lies in the configuration, @/config; {own}"
            ),
            "grants/gone.toml:1: there is no file tools/shw.toml; did you mean `show`? otherwise write the tool file first",
            "grants/home.toml:4: unknown key `colour`; remove it; the keys here are tool, mode, max_taint, result_class, untrusted, expires, after_untrusted, confinement, as, constraints",
            &format!(
                "grants/home.toml:8: @/home contains or lies in the home of boxmaker, @/home; {own}"
            ),
            "grants/home.toml:9: \"read:@/files/*\" in `constraints.paths`: a granted path is a plain prefix: it holds everything below it, and `*` stands for nothing else; write \"read:@/files\"",
            "grants/link.toml:4: @/files/link leads through a link to @/files/real; a link can be turned elsewhere: grant the path that it leads to",
            &format!(
                "grants/program.toml:4: /usr/bin contains or lies in the program of tool absent, /usr/bin/no-such; {own}"
            ),
            as_user,
            "grants/users.toml:4: `as` \"no body\" is neither the name nor the number of a user; write a name of letters, digits, `_`, `.` and `-`, or a number below 4294967295",
            "profiles/own.toml:2: view \"/\" would show the whole host; name the part of it that programs need",
            "tools/absent.toml:4: program /usr/bin/no-such: No such file or directory (os error 2); install it or correct `command`",
            "tools/lost.toml:5: there is no profile \"tools/bass\"; did you mean \"tools/base\"? otherwise write profiles/tools/bass.toml",
            "tools/plain.toml:4: program /etc/passwd is not executable; chmod +x it or correct `command`",
            "tools/twice.toml:3: not TOML: `kind` stands twice in one table; keep one of the two",
        ]
    );
    // What was not read is judged as soon as it is.
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(host.path("config/grants/notes.txt")).unwrap();
    fs::remove_file(host.path("config/grant.toml")).unwrap();
    let told = told(&host);
    assert_eq!(told.len(), 18, "{told:#?}");
    assert!(
        told.iter()
            .any(|told| told.starts_with("grants/open.toml:1: `mode`")),
        "{told:#?}"
    );
}

#[test]
fn a_store_that_would_launder_on_the_disk_is_told_at_its_line() {
    let host = host();
    host.write(
        "config/tools/put.toml",
        &TOOL.replace("= \"read\"", "= \"write\""),
    );
    fs::write(host.path("files/one"), "x").unwrap();
    let head = "tool = \"put\"\nmode = \"auto\"\nmax_taint = \"private\"\nafter_untrusted = \"allow\"\nas = \"1000\"\n";
    if Privilege::of_this_process(Path::new("/nowhere")).unwrap() != Privilege::Root {
        eprintln!("skipped: without root no grant names a user");
        return;
    }
    host.grant(
        "w",
        &format!("{head}constraints.paths = [\"write:@/files\"]"),
    );
    assert_eq!(told(&host), [""; 0]);
    host.grant("r", "constraints.paths = [\"read:@/files/one\"]");
    assert_eq!(
        told(&host),
        [
            "grants/w.toml:6: whoever writes in write:@/files can rename what lies there, also to or from read:@/files/one, the file that grant r is about; grant r the whole of @/files, or let w write elsewhere"
        ]
    );
}

#[test]
fn a_path_that_is_not_there_is_warned_of_and_one_that_is_made_later_needs_no_new_start() {
    let host = host();
    host.grant(
        "files",
        "constraints.paths = [\"read:@/files\", \"read:@/later\"]",
    );
    host.grant(
        "never",
        "tool = \"show\"\nmode = \"deny\"\nconstraints.paths = [\"read:@/secret\"]",
    );
    let way = "correct the path, or make it, for which boxmaker need not be started again";
    assert_eq!(
        warned(&host),
        [
            format!(
                "grants/files.toml:4: @/later is not there: a call finds nothing until it is; {way}"
            ),
            format!(
                "grants/never.toml:3: @/secret is not there: nothing is denied until it is; {way}"
            ),
        ]
    );
    fs::create_dir(host.path("later")).unwrap();
    fs::write(host.path("secret"), "x").unwrap();
    assert_eq!(warned(&host), [""; 0]);
    host.grant(
        "files",
        "expires = \"2001-01-01T00:00:00.000Z\"\nconstraints.paths = [\"read:@/files\"]",
    );
    assert_eq!(
        warned(&host),
        [
            "grants/files.toml:4: the grant lets nothing run: it expired at 2001-01-01T00:00:00.000Z; write a later time, or remove the file"
        ]
    );
}
