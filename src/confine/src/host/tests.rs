mod programs;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use tempfile::TempDir;

use super::*;
use crate::profile::Profiles;

/// A directory to be looked at, by the name it really has.
struct Place {
    directory: TempDir,
    base: String,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(directory.path()).unwrap();
        let base = base.to_str().unwrap().to_owned();
        Self { directory, base }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    fn write(&self, name: &str, content: &[u8], mode: u32) -> String {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        self.path(name)
    }

    fn link(&self, name: &str, target: &str) {
        symlink(target, self.directory.path().join(name)).unwrap();
    }
}

fn profile(view: &[String], exec: &[String], search: &str) -> Profile {
    let mut profile = Profiles::load(&BTreeMap::new())
        .unwrap()
        .get("tools/base")
        .unwrap()
        .clone();
    profile.view = view.to_vec();
    profile.exec = exec.to_vec();
    profile.env = BTreeMap::from([("PATH".to_owned(), search.to_owned())]);
    profile
}

fn take(program: &str, search: &str) -> Result<Host, HostError> {
    Host::take(
        &profile(&[], &[], search),
        Path::new(program),
        Privilege::Root,
    )
}

fn reals(chain: &[Located]) -> Vec<&str> {
    chain.iter().map(|at| at.real.as_str()).collect()
}

/// The smallest ELF file that says something: a header, and one program header for a loader.
fn elf(loader: Option<&str>) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18] = 62;
    bytes[32] = 64;
    bytes[54] = 56;
    if let Some(loader) = loader {
        bytes[56] = 2;
        let mut note = [0; 56];
        note[0] = 4;
        let mut entry = [0; 56];
        entry[0] = 3;
        entry[8] = 64 + 112;
        entry[32] = u8::try_from(loader.len() + 1).unwrap();
        bytes.extend(note);
        bytes.extend(entry);
        bytes.extend(loader.as_bytes());
        bytes.push(0);
    }
    bytes
}

#[test]
fn links_on_the_way_are_kept_and_the_end_has_none() {
    let place = Place::new();
    place.write("usr/lib/x/file", b"", 0o644);
    place.link("lib", "usr/lib");
    place.link("usr/lib/y", "../lib/x");
    place.link("top", &place.path("lib/y"));
    let found = locate::locate(&place.path("top/file")).unwrap().unwrap();
    assert_eq!(found.real, place.path("usr/lib/x/file"));
    assert!(!found.directory);
    let links: Vec<_> = found.links.iter().map(|link| link.path.clone()).collect();
    assert_eq!(
        links,
        [
            place.path("top"),
            place.path("lib"),
            place.path("usr/lib/y")
        ]
    );
    assert_eq!(found.links[1].target, "usr/lib");
    let up = locate::locate(&place.path("lib/..")).unwrap().unwrap();
    assert_eq!((up.real, up.directory), (place.path("usr"), true));
    assert_eq!(locate::locate("/..").unwrap().unwrap().real, "/");
}

#[test]
fn what_is_not_there_is_no_fact_and_a_circle_is_an_error() {
    let place = Place::new();
    place.write("file", b"", 0o644);
    place.link("dangling", "nowhere");
    place.link("a", "b");
    place.link("b", "a");
    for absent in ["none", "none/x", "file/x", "dangling"] {
        assert_eq!(locate::locate(&place.path(absent)).unwrap(), None);
    }
    assert!(matches!(
        locate::locate(&place.path("a")),
        Err(HostError::Links(_))
    ));
}

#[test]
fn views_that_exist_are_taken_and_sockets_are_not_viewable() {
    let place = Place::new();
    place.write("dir/file", b"", 0o644);
    let program = place.write("program", &elf(None), 0o755);
    let views = ["dir", "dir/file", "none"].map(|name| place.path(name));
    let host = Host::take(
        &profile(&views, &[], ""),
        Path::new(&program),
        Privilege::Root,
    )
    .unwrap();
    let found: Vec<_> = host
        .views
        .iter()
        .map(|(path, at)| (path.clone(), at.directory))
        .collect();
    assert_eq!(found, [(views[0].clone(), true), (views[1].clone(), false)]);
    let _socket = UnixListener::bind(place.directory.path().join("socket")).unwrap();
    let error = Host::take(
        &profile(&[place.path("socket")], &[], ""),
        Path::new(&program),
        Privilege::Root,
    );
    assert!(matches!(error, Err(HostError::Kind(_))), "{error:?}");
}

#[test]
fn patterns_bring_loaders_but_not_the_interpreters_of_scripts() {
    let place = Place::new();
    let loader = place.write("ld.so", &elf(None), 0o755);
    place.write("bin/snake", &elf(Some(&loader)), 0o755);
    place.write(
        "bin/snake-config",
        format!("#!{loader}\n").as_bytes(),
        0o755,
    );
    place.write("bin/snail", &elf(None), 0o755);
    fs::create_dir(place.directory.path().join("bin/snakes")).unwrap();
    let patterns = [place.path("bin/snake*"), place.path("none")];
    let program = place.path("bin/snail");
    let host = Host::take(
        &profile(&[], &patterns, ""),
        Path::new(&program),
        Privilege::Root,
    )
    .unwrap();
    let found: Vec<_> = host.exec[&patterns[0]]
        .iter()
        .map(|one| (one.at.real.clone(), one.loader.is_some()))
        .collect();
    assert_eq!(
        found,
        [
            (place.path("bin/snake"), true),
            (place.path("bin/snake-config"), false),
            (place.path("bin/snakes"), false),
        ]
    );
    assert_eq!(host.exec[&patterns[1]], []);
}

#[test]
fn a_program_of_this_host_is_described_with_the_links_it_is_reached_by() {
    let host = take("/bin/sh", "").unwrap();
    assert_eq!(host.program, "/bin/sh");
    let real = fs::canonicalize("/bin/sh").unwrap();
    assert_eq!(host.chain[0].real, real.to_str().unwrap());
    // A shell is dynamic on the hosts we know, or is all there is.
    for at in &host.chain {
        assert_eq!(
            fs::canonicalize(&at.real).unwrap().to_str(),
            Some(at.real.as_str())
        );
    }
}
