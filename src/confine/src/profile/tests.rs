use proptest::prelude::*;

use super::*;

fn load(files: &[(&str, &str)]) -> Result<Profiles, Vec<LoadError>> {
    let files = files
        .iter()
        .map(|(name, text)| (format!("profiles/{name}.toml"), text.as_bytes().to_vec()))
        .collect();
    Profiles::load(&files)
}

/// The one error that a profile gives.
fn error(text: &str) -> LoadError {
    let mut errors = load(&[("tools/x", text)]).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

fn profile(text: &str) -> Profile {
    let profiles = load(&[("tools/x", text)]).unwrap();
    profiles.get("tools/x").unwrap().clone()
}

#[test]
fn the_built_in_profiles_load_and_are_what_the_documents_say() {
    let profiles = load(&[]).unwrap();
    let names: Vec<_> = profiles
        .iter()
        .map(|profile| profile.name.as_str())
        .collect();
    let tools = ["base", "git", "node", "python", "shell"].map(|name| format!("tools/{name}"));
    assert_eq!(names[0], "roles/brokerd");
    assert_eq!(names[1..], tools);
    let base = profiles.get("tools/base").unwrap();
    assert_eq!(base.namespaces.len(), 6);
    assert_eq!(base.exec, [""; 0]);
    assert_eq!(base.seccomp, ["base"]);
    assert_eq!(base.limits, Limits::DEFAULT);
    assert_eq!(base.limits.scratch_inodes(), 4096);
    let brokerd = profiles.get("roles/brokerd").unwrap();
    assert_eq!(brokerd.seccomp, ["base", "serve"]);
    assert!(brokerd.limits.wall > Duration::from_secs(86_400 * 365));
}

#[test]
fn a_profile_that_says_little_gets_no_path_and_the_default_limits() {
    let profile = profile("seccomp = [\"base\"]");
    assert_eq!(profile.view, [""; 0]);
    assert_eq!(profile.exec, [""; 0]);
    assert!(profile.env.is_empty());
    assert_eq!(profile.namespaces.len(), 6);
    assert_eq!(profile.limits, Limits::DEFAULT);
}

#[test]
fn an_empty_list_of_namespaces_is_none_and_not_all() {
    let profile = profile("seccomp = [\"base\"]\nnamespaces = []");
    assert_eq!(profile.namespaces, []);
}

#[test]
fn an_extending_profile_adds_lists_and_replaces_values() {
    let child = "
        extends = 'tools/middle'
        view = ['/opt/a', '/usr']
        env = { LANG = 'C', X = '1' }
        limits = { pids = 3, wall = '2m' }
    ";
    let middle = "
        extends = 'tools/base'
        exec = ['/usr/bin/python3*']
        seccomp = ['serve']
        limits = { pids = 9, memory = '8M' }
    ";
    let profiles = load(&[("tools/x", child), ("tools/middle", middle)]).unwrap();
    let base = profiles.get("tools/base").unwrap();
    let child = profiles.get("tools/x").unwrap();
    assert_eq!(child.view[..base.view.len()], base.view);
    assert_eq!(child.view[base.view.len()..], ["/opt/a"]);
    assert_eq!(child.exec, ["/usr/bin/python3*"]);
    assert_eq!(child.seccomp, ["base", "serve"]);
    assert_eq!(child.namespaces, base.namespaces);
    assert_eq!(child.env["LANG"], "C");
    assert_eq!(child.env["PATH"], base.env["PATH"]);
    let limits = child.limits;
    assert_eq!((limits.pids, limits.memory), (3, 8 << 20));
    assert_eq!(limits.wall, Duration::from_secs(120));
    assert_eq!(limits.files, base.limits.files);
}

#[test]
fn an_owners_profile_replaces_the_built_in_of_its_name() {
    let profiles = load(&[("tools/base", "seccomp = ['base']\nview = ['/opt']")]).unwrap();
    assert_eq!(profiles.get("tools/base").unwrap().view, ["/opt"]);
}

#[test]
fn circles_and_unknown_parents_are_errors() {
    let circle = load(&[
        ("tools/a", "\nextends = 'tools/b'"),
        ("tools/b", "extends = 'tools/a'"),
    ]);
    let texts: Vec<_> = circle
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect();
    let way_out = "give this profile another name, or extend another one";
    assert_eq!(
        texts,
        [
            format!(
                "profiles/tools/a.toml:2: extends goes in a circle by way of \"tools/b\"; {way_out}"
            ),
            format!(
                "profiles/tools/b.toml:1: extends goes in a circle by way of \"tools/a\"; {way_out}"
            ),
        ]
    );
    let own = load(&[("tools/base", "extends = 'tools/base'")]).unwrap_err();
    assert!(own[0].rule.contains("circle"), "{own:?}");
    assert_eq!(
        error("extends = 'tools/bas'").to_string(),
        "profiles/tools/x.toml:1: there is no profile \"tools/bas\"; did you mean \"tools/base\"? name one of roles/brokerd, tools/base, tools/git, tools/node, tools/python, tools/shell"
    );
}

#[test]
fn unknown_keys_sets_and_namespaces_are_errors_with_their_line() {
    let unknown = error("seccomp = ['base']\nviews = ['/usr']");
    assert_eq!(unknown.line, Some(2));
    assert!(unknown.rule.contains("views"), "{unknown}");
    let set = error("seccomp = [\n 'base',\n 'bass',\n]");
    assert_eq!(
        (set.line, set.fix.as_str()),
        (Some(3), "did you mean \"base\"? name one of base, serve")
    );
    let namespace = error("seccomp = ['base']\nnamespaces = ['time']");
    assert_eq!(namespace.rule, "\"time\" is no namespace");
    assert!(error("view = ['/usr']").rule.contains("no system call set"));
    assert!(load(&[("Tools", "seccomp = ['base']")]).is_err());
    let files = BTreeMap::from([("profiles/x.toml".to_owned(), vec![0xff])]);
    assert_eq!(
        Profiles::load(&files).unwrap_err()[0].rule,
        "the file is not UTF-8"
    );
}

#[test]
fn each_kind_of_mistake_is_told_in_full() {
    let keys = "the keys here are extends, namespaces, view, exec, env, seccomp, limits";
    for (line, want) in [
        (
            "veiw = ['/usr']",
            format!("unknown key `veiw`; did you mean `view`? {keys}"),
        ),
        ("colour = 1", format!("unknown key `colour`; remove it; {keys}")),
        (
            "seccomp = ['serve']",
            "not TOML: `seccomp` stands twice in one table; keep one of the two".to_owned(),
        ),
        (
            "view = '/usr'",
            "`view`: invalid type: string \"/usr\", expected a list; write a list of absolute paths, such as [\"/usr\", \"/etc/ssl\"]".to_owned(),
        ),
        (
            "memory = '1G'",
            "`memory` belongs in [limits]; write it below a line [limits], or as `limits.memory`".to_owned(),
        ),
        (
            "timeout = '3s'",
            "`timeout` is a key of a tool, tools/<name>.toml, not of a profile, profiles/<name>.toml; remove it, or write it in a tool, tools/<name>.toml".to_owned(),
        ),
        (
            "limits.memory = 512",
            "`limits.memory`: invalid type: integer `512`, expected a text in quotes; write a size in quotes, such as \"512M\"".to_owned(),
        ),
        (
            "limits.pids = 1",
            "`limits.pids`: 1 is too little for anything to run; write at least 2".to_owned(),
        ),
        (
            "limits.swap = '1G'",
            "unknown key `limits.swap`; remove it; the keys here are memory, pids, cpu, files, wall, scratch".to_owned(),
        ),
        (
            "env.wall = '3s'",
            "`env.wall` belongs in [limits]; move it below a line [limits]".to_owned(),
        ),
        (
            "env.extends = 'tools/base'",
            "`env.extends` is a key of a profile, profiles/<name>.toml, not of env; write it as `extends`, outside of env".to_owned(),
        ),
        (
            "env.X = 1",
            "`env.X`: invalid type: integer `1`, expected a text in quotes; write a text in quotes".to_owned(),
        ),
        (
            "extends = 'tools/absent'",
            "there is no profile \"tools/absent\"; name one of roles/brokerd, tools/base, tools/git, tools/node, tools/python, tools/shell".to_owned(),
        ),
    ] {
        let told = error(&format!("seccomp = ['base']\n{line}\n")).to_string();
        assert_eq!(told, format!("profiles/tools/x.toml:2: {want}"));
    }
    let slipped = error("[limits]\npids = 9\nseccomp = ['base']\n").to_string();
    assert_eq!(
        slipped,
        "profiles/tools/x.toml:3: `seccomp` stands below [limits] and belongs above it; move the line up, above the \
         first line that begins with `[`: there it is a key of a profile, profiles/<name>.toml"
    );
}

#[test]
fn no_mistake_hides_another_in_the_same_file_or_in_one_beside_it() {
    let errors = load(&[
        (
            "a",
            "seccomp = ['base']\nview = ['/', '/usr', '/etc']\nlimits = { pids = 1, files = 1, wall = 9 }\nenv = { wall = '1s' }",
        ),
        ("b", "seccomp = 'base'\nview = ["),
        ("c", "extends = 'd'\nexec = ['python3']"),
        // Neither is a mistake of its own: what it extends could not be read.
        ("e", "extends = 'b'"),
        ("f", "extends = 'a'"),
    ]);
    let errors = errors.unwrap_err();
    let places: Vec<_> = errors
        .iter()
        .map(|error| format!("{}:{}", error.file, error.line.unwrap()))
        .collect();
    assert_eq!(
        places,
        [
            "profiles/a.toml:2",
            "profiles/a.toml:2",
            "profiles/a.toml:3",
            "profiles/a.toml:3",
            "profiles/a.toml:3",
            "profiles/a.toml:4",
            "profiles/b.toml:2",
            "profiles/c.toml:1",
            "profiles/c.toml:2",
        ],
        "{errors:#?}"
    );
}

#[test]
fn files_that_are_no_profiles_are_left_alone() {
    let files = BTreeMap::from([
        ("config.toml".to_owned(), b"}".to_vec()),
        ("grants/a.toml".to_owned(), b"}".to_vec()),
        ("profiles/README".to_owned(), b"}".to_vec()),
    ]);
    assert!(Profiles::load(&files).is_ok());
}

#[test]
fn views_that_would_show_the_host_are_refused_and_parts_of_them_are_not() {
    for (bad, good) in [
        ("/", "/usr"),
        ("/etc", "/etc/ssl"),
        ("/home", "/home/ann/bin"),
        ("/root", "/root/.local/bin"),
        ("/run", "/run/current-system/sw"),
        ("/var", "/var/cache/fontconfig"),
        ("/var/lib", "/var/lib/locale"),
        ("/var/lib/boxmaker", "/var/lib/boxmaker2"),
        ("/var/lib/boxmaker/audit", "/var/lib/texmf"),
        ("/etc/boxmaker/grants", "/etc/boxmaker.d"),
        ("/proc", "/procs"),
        ("/proc/sys", "/opt/proc"),
        ("/sys/class", "/system"),
        ("/dev/shm", "/devel"),
        ("/tmp/x", "/tmpl"),
        ("usr", "/usr"),
        ("/usr/", "/usr"),
        ("/usr//lib", "/usr/lib"),
        ("/usr/../etc/ssl", "/usr/..lib"),
        ("/usr/./lib", "/usr/.lib"),
        ("", "/opt"),
    ] {
        let text = |path: &str| format!("seccomp = ['base']\nview = ['{path}']");
        error(&text(bad));
        assert_eq!(profile(&text(good)).view, [good]);
    }
}

#[test]
fn exec_patterns_name_programs() {
    for (bad, good) in [
        ("/", "/usr/bin/env"),
        ("/*", "/usr/bin/*"),
        ("/*/bin", "/usr/*/x"),
        ("/usr/**", "/usr/lib*/git-*core"),
        ("/tmp/x", "/opt/x"),
        ("python3", "/usr/bin/python3*"),
    ] {
        let text = |path: &str| format!("seccomp = ['base']\nexec = ['{path}']");
        error(&text(bad));
        assert_eq!(profile(&text(good)).exec, [good]);
    }
}

#[test]
fn limits_are_read_in_their_units_and_never_zero_or_overflowing() {
    let limits = |text: &str| profile(&format!("seccomp = ['base']\nlimits = {{ {text} }}")).limits;
    assert_eq!(limits("memory = '5000K'").memory, 5000 << 10);
    assert_eq!(limits("memory = '2G'").memory, 2 << 30);
    assert_eq!(limits("memory = '4194304'").memory, 4 << 20);
    assert_eq!(limits("cpu = '150%'").cpu, 150);
    assert_eq!(limits("wall = '1500ms'").wall, Duration::from_millis(1500));
    assert_eq!(limits("scratch = '64K'").scratch_bytes, 65_536);
    assert_eq!(limits("scratch = '64K'").scratch_inodes(), 16);
    for bad in [
        "memory = '0'",
        "memory = '1M'",
        "memory = '-1G'",
        "memory = '+8M'",
        "memory = '8m'",
        "memory = '8 M'",
        "memory = '0.5G'",
        "memory = '17179869184G'",
        "memory = '99999999999999999999'",
        "memory = ''",
        "memory = 'M'",
        "memory = 8",
        "cpu = '0%'",
        "cpu = '100'",
        "cpu = '%'",
        "cpu = '100001%'",
        "pids = 0",
        "pids = 1",
        "pids = -1",
        "pids = 4294967296",
        "files = 0",
        "wall = '0s'",
        "wall = '10'",
        "wall = '-1s'",
        "scratch = '0'",
        "scratch = '4K'",
        "disk = '1G'",
    ] {
        let error = error(&format!("seccomp = ['base']\nlimits = {{ {bad} }}"));
        assert_eq!(error.line, Some(2), "{error}");
    }
}

#[test]
fn variables_have_names_that_programs_can_read() {
    let text = |key: &str| format!("seccomp = ['base']\nenv = {{ '{key}' = 'x' }}");
    for (bad, good) in [("1A", "A1"), ("A=B", "A_B"), ("", "_"), ("Ä", "A")] {
        error(&text(bad));
        assert_eq!(profile(&text(good)).env.len(), 1);
    }
    let nul = "seccomp = ['base']\nenv = { A = \"x\\u0000\" }";
    assert_eq!(error(nul).rule, "env: the value of A holds a NUL");
}

proptest! {
    #[test]
    fn no_text_makes_the_loader_panic(text in "\\PC{0,200}", path in "[a-z/.]{0,20}") {
        let files = BTreeMap::from([(path, text.clone().into_bytes()), ("profiles/x.toml".to_owned(), text.into_bytes())]);
        let _ = Profiles::load(&files);
    }

    #[test]
    fn what_loads_as_a_view_never_holds_a_closed_place(path in "(/(etc|var|lib|boxmaker|tmp|usr|\\.\\.|home)){1,4}/?") {
        let text = format!("seccomp = ['base']\nview = ['{path}']");
        if load(&[("x", &text)]).is_ok() {
            for closed in ["/etc/boxmaker/x", "/var/lib/boxmaker/x", "/tmp/x", "/home/ann", "/etc/shadow"] {
                prop_assert!(!values::is_below(closed, &path), "{path} shows {closed}");
            }
        }
    }
}
