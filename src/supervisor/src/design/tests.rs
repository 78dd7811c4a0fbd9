//! From a permit to a plan, on a real directory: what is refused on the way, and what the plan says.

use std::fs;
use std::os::unix::fs::symlink;

use confine::plan::{Access, LandlockRule, Rule};
use policy::permit;
use proto::{GrantId, Hash32, Timestamp, ToolName};

use super::*;
use crate::load::load;
use crate::load::tests::{Host, host};

const WRITER: &str = r#"
description = "Writes."
kind = "stdio"
command = ["/usr/bin/true"]
profile = "tools/base"
timeout = "7s"
resources = { path = "write" }
[arguments]
type = "object"
properties.path.type = "string"
"#;

/// `show` reads below `files`, `put` writes there, both for a user who is not root.
fn prepared() -> Host {
    let host = host();
    for below in ["files/open", "files/closed"] {
        fs::create_dir(host.path(below)).unwrap();
        host.write(&format!("{below}/a.md"), below);
    }
    symlink("../closed/a.md", host.path("files/open/link")).unwrap();
    host.grant(
        "read",
        "as = \"1000\"\nconstraints.paths = [\"read:@/files\"]",
    );
    host.write("config/tools/put.toml", WRITER);
    host.grant(
        "write",
        "tool = \"put\"\nmode = \"auto\"\nmax_taint = \"private\"\nafter_untrusted = \"allow\"\nas = \"1000\"\n\
         constraints.paths = [\"write:@/files\"]",
    );
    host
}

fn deny(host: &Host, tool: &str) {
    let text = format!(
        "tool = \"{tool}\"\nmode = \"deny\"\nconstraints.paths = [\"read:@/files/closed\"]"
    );
    host.grant("deny", &text);
}

fn designed(host: &Host, tool: &str, grant: &str, below: &str) -> Result<Design, Refusal> {
    let loaded = load(&host.directories, 1).unwrap();
    let arguments = serde_json::json!({ "path": host.path(below) }).to_string();
    let (tool, grant) = (ToolName::new(tool).unwrap(), GrantId::new(grant).unwrap());
    let now = Timestamp::from_millis(0);
    design(
        &loaded,
        permit(&loaded.policy, &tool, &grant, &arguments, now).unwrap(),
    )
}

fn hash(host: &Host, below: &str) -> Hash32 {
    let design = designed(host, "show", "read", below).unwrap();
    design.plan.hash().unwrap()
}

#[test]
fn the_same_call_has_the_same_plan_and_another_call_another() {
    let host = prepared();
    assert_eq!(
        hash(&host, "files/open/a.md"),
        hash(&host, "files/open/a.md")
    );
    assert_ne!(
        hash(&host, "files/open/a.md"),
        hash(&host, "files/closed/a.md")
    );
    assert_ne!(
        hash(&host, "files/not-there"),
        hash(&host, "files/not-there-2")
    );
}

#[test]
fn a_plan_holds_what_the_call_names_for_the_owner_that_the_grant_names() {
    let host = prepared();
    let design = designed(&host, "show", "read", "files/open/a.md").unwrap();
    let path = host.path("files/open/a.md").to_str().unwrap().to_owned();
    assert_eq!(
        design.plan.trees().collect::<Vec<_>>(),
        [(path.as_str(), false, Access::Read)]
    );
    assert_eq!(design.trees[0].owner.0, 1000);
    assert_eq!(
        design.plan.program.cwd,
        host.path("files").to_str().unwrap()
    );
    let input = design.input.unwrap();
    assert_eq!(design.plan.program.input, digest(input.as_bytes()));
}

#[test]
fn an_edited_file_is_the_only_one_that_its_plan_lets_be_read() {
    let host = prepared();
    host.write("config/tools/edit.toml", &WRITER.replace("write", "edit"));
    host.grant(
        "edit",
        "tool = \"edit\"\nmode = \"auto\"\nmax_taint = \"private\"\nafter_untrusted = \"allow\"\nas = \"1000\"\n\
         constraints.paths = [\"read:@/files\", \"write:@/files/open\"]",
    );
    let rules = |tool: &str, grant: &str, below: &str| -> Vec<(String, Rule)> {
        let plan = designed(&host, tool, grant, below).unwrap().plan;
        let of_trees = |rule: LandlockRule| {
            let tree = matches!(rule.rule, Rule::Tree(_));
            tree.then_some((rule.path, rule.rule))
        };
        plan.landlock.into_iter().filter_map(of_trees).collect()
    };
    let text = |below: &str| host.path(below).to_str().unwrap().to_owned();
    let written = (text("files/open"), Rule::Tree(Access::WriteFiles));
    let read = (text("files/open/a.md"), Rule::Tree(Access::Read));
    assert_eq!(
        rules("edit", "edit", "files/open/a.md"),
        [written.clone(), read]
    );
    assert_eq!(
        rules("edit", "edit", "files/open/new"),
        std::slice::from_ref(&written)
    );
    assert_eq!(rules("put", "write", "files/open/a.md"), [written]);
}

#[test]
fn the_shorter_of_the_tools_timeout_and_the_profiles_wall_counts() {
    let host = prepared();
    let wall = |host: &Host| {
        let design = designed(host, "put", "write", "files/open/a.md").unwrap();
        design.plan.limits.wall_ms
    };
    assert_eq!(wall(&host), 7000);
    host.write(
        "config/profiles/short.toml",
        "extends = \"tools/base\"\nlimits.wall = \"2s\"",
    );
    host.write(
        "config/tools/put.toml",
        &WRITER.replace("tools/base", "short"),
    );
    assert_eq!(wall(&host), 2000);
}

#[test]
fn a_link_into_a_denied_path_is_denied_and_without_the_denial_it_is_followed() {
    let host = prepared();
    assert!(designed(&host, "show", "read", "files/open/link").is_ok());
    deny(&host, "show");
    let refusal = designed(&host, "show", "read", "files/open/link").unwrap_err();
    assert_eq!(refusal.reason, DenyReason::DeniedByGrant);
    assert!(refusal.detail.contains("deny grant deny"));
    assert!(designed(&host, "show", "read", "files/open/a.md").is_ok());
}

#[test]
fn a_directory_that_holds_a_denied_path_is_not_bound_for_writing() {
    let host = prepared();
    assert!(designed(&host, "put", "write", "files/new.md").is_ok());
    deny(&host, "put");
    let refusal = designed(&host, "put", "write", "files/new.md").unwrap_err();
    assert_eq!(refusal.reason, DenyReason::DeniedByGrant);
    assert!(designed(&host, "put", "write", "files/open/new.md").is_ok());
}

#[test]
fn a_denial_of_another_tool_denies_nothing_here() {
    let host = prepared();
    deny(&host, "put");
    assert!(designed(&host, "show", "read", "files/open/link").is_ok());
}

#[test]
fn a_link_that_leads_out_is_path_outside() {
    let host = prepared();
    symlink("/etc/passwd", host.path("files/open/out")).unwrap();
    let refusal = designed(&host, "show", "read", "files/open/out").unwrap_err();
    assert_eq!(refusal.reason, DenyReason::PathOutside);
}

#[test]
fn a_tool_starts_in_its_granted_directory_or_beside_its_granted_file() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().to_str().unwrap().to_owned();
    std::fs::write(directory.path().join("file"), "x").unwrap();
    assert_eq!(working_directory(top.clone()), top);
    assert_eq!(working_directory(format!("{top}/file")), top);
    assert_eq!(working_directory(format!("{top}/not-there")), top);
    assert_eq!(working_directory("/".to_owned()), "/");
    assert_eq!(working_directory("/not-there".to_owned()), "/dev");
}
