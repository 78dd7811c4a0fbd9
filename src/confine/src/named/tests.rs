//! Each thing that a file may name, missing and there.

use super::*;

const TOOL: &str = r#"
description = "Shows nothing."
kind = "stdio"
command = ["@"]
profile = "tools/base"
arguments = { type = "object" }
"#;

struct Place {
    directory: tempfile::TempDir,
    accounts: Accounts,
    profiles: BTreeSet<String>,
}

fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("passwd"),
        "ann:x:70000:70000::/:/bin/sh\n",
    )
    .unwrap();
    Place {
        accounts: Accounts::of(directory.path().to_owned()),
        profiles: crate::profile::Profiles::names(&Default::default()),
        directory,
    }
}

impl Place {
    fn named(&self) -> Named<'_> {
        Named {
            profiles: &self.profiles,
            binaries: self.directory.path(),
            accounts: &self.accounts,
        }
    }

    fn tool(&self, text: &str) -> Vec<Missing> {
        let tool = toml::from_str(text).unwrap();
        self.named().by_tool(&ToolName::new("show").unwrap(), &tool)
    }

    fn program(&self, name: &str, mode: u32) {
        let path = self.directory.path().join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[track_caller]
fn one(missing: &[Missing], key: &str, rule: &str) {
    let [one] = missing else {
        panic!("{missing:?}");
    };
    assert!(one.key == [key] && one.rule.contains(rule), "{one:?}");
    assert_eq!(
        (one.file.as_str(), one.forbidden),
        ("tools/show.toml", false)
    );
    assert!(!one.fix.is_empty());
}

#[test]
fn a_tool_needs_a_program_that_can_be_executed() {
    let place = place();
    let own = TOOL.replace('@', "own");
    one(&place.tool(&own), "command", "own: No such file");
    place.program("own", 0o644);
    one(&place.tool(&own), "command", "own is not executable");
    place.program("own", 0o755);
    assert_eq!(place.tool(&own), []);
    one(
        &place.tool(&TOOL.replace('@', "/usr")),
        "command",
        "/usr is not a file",
    );
    assert_eq!(place.tool(&TOOL.replace('@', "/usr/bin/true")), []);
}

#[test]
fn a_tool_needs_a_profile() {
    let place = place();
    let tool = TOOL.replace('@', "/usr/bin/true");
    let other = tool.replace("tools/base", "tools/mine");
    one(&place.tool(&other), "profile", "no profile \"tools/mine\"");
    assert_eq!(place.tool(&tool), []);
}

#[test]
fn a_grant_names_a_user_that_exists() {
    let place = place();
    let by_grant = |user: &str, mode: &str| {
        let text = format!("tool = \"show\"\nmode = \"{mode}\"\nas = \"{user}\"\n");
        let grant = toml::from_str(&text).unwrap();
        place.named().by_grant(&GrantId::new("g").unwrap(), &grant)
    };
    assert_eq!(by_grant("ann", "auto"), Ok(Some((70_000, 70_000))));
    assert_eq!(by_grant("5", "auto"), Ok(Some((5, 5))));
    assert_eq!(by_grant("bob", "deny"), Ok(None));
    let missing = by_grant("bob", "ask").unwrap_err();
    assert_eq!(
        (missing.file.as_str(), missing.key.join(".")),
        ("grants/g.toml", "as".to_owned())
    );
    assert!(missing.rule.contains("no user \"bob\""), "{missing:?}");
}

#[test]
fn a_range_of_uids_is_nobodys() {
    let place = place();
    let by_config = |first| {
        let uid_range = (first, 80);
        place.named().by_config(&Config {
            uid_range,
            ..Config::default()
        })
    };
    assert_eq!(by_config(70_001), []);
    let missing = by_config(69_950);
    let [one] = missing.as_slice() else {
        panic!("{missing:?}");
    };
    assert_eq!(
        (one.file.as_str(), one.key.join(".")),
        ("config.toml", "uid_range".to_owned())
    );
    assert!(
        one.rule.contains("69950 to 70029 holds 70000 of ann in "),
        "{one:?}"
    );
}

#[test]
fn what_may_not_be_looked_at_is_not_said_to_be_absent() {
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: root may look everywhere");
        return;
    }
    let place = place();
    let closed = place.directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let missing = place.tool(&TOOL.replace('@', "closed/program"));
    assert!(missing.len() == 1 && missing[0].forbidden, "{missing:?}");
}

#[test]
fn a_pool_is_for_a_profile_that_is_there() {
    let place = place();
    let by_pool = |profile: &str| {
        let pool = [(profile.to_owned(), 3)].into();
        place.named().by_pool(&Config {
            pool,
            ..Config::default()
        })
    };
    for profile in ["tools/*", "tools/base"] {
        assert_eq!(by_pool(profile), []);
    }
    let missing = by_pool("tools/bsae");
    let [one] = missing.as_slice() else {
        panic!("{missing:?}");
    };
    assert_eq!(one.key, ["pool", "tools/bsae"]);
    assert!(one.rule.contains("no profile \"tools/bsae\""), "{one:?}");
    assert_eq!(one.fix, "did you mean \"tools/base\"?");
}
