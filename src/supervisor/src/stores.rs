//! What a tool that writes could carry from one name to another, judged on the disk. The policy compares paths as they
//! are written; here mounts and hard links count too, and whether a granted path is a file: whoever may replace files in
//! a directory may also rename them, and a rename moves what is in a file under a name that another grant, or a deny
//! grant, is about.

use std::path::Path;

use confine::named::{Missing, place_of};
use policy::{BindingAccess, GrantEntry, GrantedPath, Sound};
use proto::grant::Mode;

use crate::place::Place;

/// Every way in which one grant's writes would reach what another grant is about, each as a mistake of the writer's file.
pub(crate) fn check(sound: &Sound) -> Vec<Missing> {
    let mut problems = Vec::new();
    for writer in sound
        .grants()
        .iter()
        .filter(|grant| grant.file().mode != Mode::Deny)
    {
        let written = writer
            .paths()
            .iter()
            .filter(|path| path.access() == BindingAccess::Write);
        for written in written {
            // What cannot be looked at has been told already: grants are admitted one by one before this.
            let Ok(place) = Place::of(Path::new(written.path())) else {
                continue;
            };
            let writer = Writer {
                grant: writer,
                written,
                place,
                whole: is_whole(sound, writer),
            };
            problems.extend(
                sound
                    .grants()
                    .iter()
                    .flat_map(|other| writer.against(other)),
            );
        }
    }
    problems
}

/// Whether the tool of `grant` gets the granted trees whole, because it declares no argument that is a path.
fn is_whole(sound: &Sound, grant: &GrantEntry) -> bool {
    sound
        .tool(&grant.file().tool)
        .is_some_and(|tool| !tool.declares_paths())
}

struct Writer<'a> {
    grant: &'a GrantEntry,
    written: &'a GrantedPath,
    place: Place,
    whole: bool,
}

impl Writer<'_> {
    fn against(&self, other: &GrantEntry) -> Vec<Missing> {
        let places = other.paths().iter().filter_map(|path| {
            Place::of(Path::new(path.path()))
                .ok()
                .map(|place| (path, place))
        });
        places
            .filter_map(|(path, place)| self.carries(other, path, &place))
            .collect()
    }

    fn carries(&self, other: &GrantEntry, path: &GrantedPath, place: &Place) -> Option<Missing> {
        let wrong = |rule, fix| Missing {
            file: format!("grants/{}.toml", self.grant.id()),
            key: place_of(self.grant.file(), self.written.path()),
            rule,
            fix,
            forbidden: false,
        };
        let (written, id) = (self.written, other.id());
        let read = path.access() == BindingAccess::Read && other.file().mode != Mode::Deny;
        if read && self.place.overlaps(place) && self.launders(other) {
            return Some(wrong(
                format!(
                    "{written} and {path} of grant {id} are one place on the disk, and {id} reads it as cleaner than what \
                     may be written"
                ),
                format!(
                    "correct the labels of {id}, or let the two grants be about different places"
                ),
            ));
        }
        // The same grant may well read what it writes.
        let own = other.id() == self.grant.id() && path.access() == BindingAccess::Write;
        if own || !place.lies_below(&self.place) || (place.is_directory() && !self.whole) {
            return None;
        }
        let what = if place.is_directory() {
            "directory"
        } else {
            "file"
        };
        Some(wrong(
            format!(
                "whoever writes in {written} can rename what lies there, also to or from {path}, the {what} that grant {id} \
                 is about"
            ),
            format!(
                "grant {id} the whole of {}, or let {} write elsewhere",
                written.path(),
                self.grant.id()
            ),
        ))
    }

    fn launders(&self, reader: &GrantEntry) -> bool {
        let reader = reader.file();
        let below = self
            .grant
            .file()
            .max_taint
            .is_some_and(|taint| reader.result_class < taint);
        !reader.untrusted || below
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::load::{self, tests::Host};

    const WRITER: &str = "tool = \"put\"\nmode = \"auto\"\nmax_taint = \"private\"\nafter_untrusted = \"allow\"\nas = \"1000\"\n";
    const READER: &str = "tool = \"show\"\nmode = \"auto\"\nmax_taint = \"private\"\n";

    fn paths(host: &Host, text: &str, access: &str, below: &str) -> String {
        format!(
            "{text}constraints.paths = [\"{access}:{}\"]\n",
            host.path(below).display()
        )
    }

    /// A host that has besides `show`, which reads, `put`, which writes.
    fn host() -> Host {
        let host = load::tests::host();
        host.write(
            "config/tools/put.toml",
            &load::tests::TOOL.replace("= \"read\"", "= \"write\""),
        );
        host
    }

    fn problems(writes: &str, other: &str, access: &str, to: &str) -> Vec<String> {
        let host = host();
        fs::create_dir_all(host.path("files/d/sub")).unwrap();
        fs::write(host.path("files/d/pub.md"), "x").unwrap();
        host.grant("w", &paths(&host, WRITER, "write", writes));
        host.grant("r", &paths(&host, other, access, to));
        host.problems()
    }

    #[test]
    fn a_file_that_a_grant_is_about_lies_in_no_directory_that_another_writes() {
        for (other, access) in [
            (READER, "read"),
            ("tool = \"show\"\nmode = \"deny\"\n", "read"),
        ] {
            let found = problems("files/d", other, access, "files/d/pub.md");
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains("can rename what lies there"), "{found:?}");
            // What does not exist yet can become a file.
            assert_eq!(problems("files/d", other, access, "files/d/later").len(), 1);
            // The twins: a directory, which the writer of files cannot rename, and the whole of it.
            assert_eq!(problems("files/d", other, access, "files/d/sub"), [""; 0]);
            assert_eq!(
                problems("files/d/sub", other, access, "files/d/pub.md"),
                [""; 0]
            );
        }
        assert_eq!(problems("files/d", READER, "read", "files/d"), [""; 0]);
    }

    #[test]
    fn a_second_name_of_a_place_does_not_launder_what_is_written_there() {
        let host = host();
        fs::create_dir_all(host.path("files/d")).unwrap();
        fs::create_dir_all(host.path("files/e")).unwrap();
        fs::write(host.path("files/d/one"), "x").unwrap();
        fs::hard_link(host.path("files/d/one"), host.path("files/e/two")).unwrap();
        host.grant("w", &paths(&host, WRITER, "write", "files/d/one"));
        let trusted = format!("{READER}untrusted = false\n");
        host.grant("r", &paths(&host, &trusted, "read", "files/e/two"));
        let found = host.problems();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("are one place on the disk"), "{found:?}");
        // The twin: read as what it is.
        host.grant("r", &paths(&host, READER, "read", "files/e/two"));
        assert_eq!(host.problems(), [""; 0]);
    }
}
