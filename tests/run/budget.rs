//! What a budget gives, and that nothing else is there.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::place::{Ended, bare, places};

#[test]
fn a_file_is_read_if_the_budget_says_so_and_else_is_not_there() {
    for place in places("a_file_is_read_if_the_budget_says_so") {
        let note = place.show("files/note");
        let script = format!("read line < {note} && echo \"got $line\"");
        let without = place.shell(&[], &script);
        assert_eq!(
            (without.code, without.out.as_str()),
            (Some(2), ""),
            "{without:?}"
        );
        assert!(without.err.contains("No such file"), "{without:?}");
        for budget in [
            format!("fs:read:{note}"),
            "fs:read:note".to_owned(),
            "fs:read:.".to_owned(),
        ] {
            let with = place.shell(&["--allow", &budget], &script);
            assert_eq!(
                (with.code, with.out.as_str()),
                (Some(0), "got a note\n"),
                "{with:?}"
            );
        }
    }
}

#[test]
fn a_directory_is_written_if_the_budget_says_so_and_belongs_to_its_owner() {
    for place in places("a_directory_is_written_if_the_budget_says_so") {
        let out = place.show("out");
        let script = format!("echo made > {out}/file");
        let read = place.shell(&["--allow", &format!("fs:read:{out}")], &script);
        assert_eq!(read.code, Some(2), "{read:?}");
        assert!(
            read.err.contains("Permission denied") || read.err.contains("Read-only"),
            "{read:?}"
        );
        assert!(!place.path("out/file").exists());
        let write = place.shell(&["--allow", &format!("fs:write:{out}")], &script);
        assert_eq!(write.code, Some(0), "{write:?}");
        assert_eq!(
            fs::read_to_string(place.path("out/file")).unwrap(),
            "made\n"
        );
        let [file, directory] =
            ["out/file", "out"].map(|path| fs::metadata(place.path(path)).unwrap());
        assert_eq!(file.uid(), directory.uid());
        // To write is not to read.
        let script = format!("read line < {out}/file && echo \"$line\"");
        let write = place.shell(&["--allow", &format!("fs:write:{out}")], &script);
        assert_eq!((write.code, write.out.as_str()), (Some(2), ""), "{write:?}");
        assert!(write.err.contains("Permission denied"), "{write:?}");
        let both = format!("fs:write:{out},fs:read:{out}");
        let both = place.shell(&["--allow", &both], &script);
        assert_eq!(
            (both.code, both.out.as_str()),
            (Some(0), "made\n"),
            "{both:?}"
        );
    }
}

#[test]
fn a_variable_is_known_if_the_budget_names_it() {
    for place in places("a_variable_is_known_if_the_budget_names_it") {
        let words = ["sh", "-c", "echo ${SECRET-unknown}/${OTHER-unknown}"];
        let run = |options: &[&str]| {
            let mut command = place.command(options);
            command.env("SECRET", "7391").env("OTHER", "1");
            let output = command.args(words).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(run(&[]), "unknown/unknown\n");
        assert_eq!(run(&["--allow", "env:SECRET"]), "7391/unknown\n");
        assert_eq!(
            run(&["--allow", "env:SECRET", "--allow=env:OTHER"]),
            "7391/1\n"
        );
    }
}

#[test]
fn what_a_budget_may_not_say_is_refused_with_the_way_out_and_nothing_is_run() {
    for place in places("what_a_budget_may_not_say_is_refused") {
        std::os::unix::fs::symlink(place.path("files"), place.path("link")).unwrap();
        let out = place.show("out");
        for (budget, code, says) in [
            (
                "tool:search".to_owned(),
                2,
                "tools cannot be offered to a program yet",
            ),
            (
                "net:example.org".to_owned(),
                2,
                "no host can be reached from a sandbox yet",
            ),
            ("fs:raed:/x".to_owned(), 2, "read: or write:"),
            (
                format!("fs:read:{}", place.show("bin")),
                125,
                "boxmaker's binaries",
            ),
            (
                format!("fs:read:{}", place.show("state")),
                125,
                "no program may reach boxmaker's own files",
            ),
            (
                format!("fs:read:{}", place.show("link")),
                125,
                "leads through a link",
            ),
            ("fs:read:missing".to_owned(), 125, "make it first"),
        ] {
            let script = format!("echo run > {out}/ran");
            let options = ["--allow", &budget, "--allow", &format!("fs:write:{out}")];
            let ended = place.shell(&options, &script);
            assert_eq!(
                (ended.code, ended.out.as_str()),
                (Some(code), ""),
                "{budget}: {ended:?}"
            );
            assert!(ended.err.contains(says), "{budget}: {ended:?}");
        }
        assert!(!place.path("out/ran").exists());
        // The twin: the same script with the part of the budget that is in order.
        let ended = place.shell(
            &["--allow", &format!("fs:write:{out}")],
            &format!("echo run > {out}/ran"),
        );
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(place.path("out/ran").exists());
    }
}

#[test]
fn everything_behind_the_dashes_is_the_programs() {
    for place in places("everything_behind_the_dashes_is_the_programs") {
        let words = [
            "printf",
            "%s\n",
            "--allow",
            "fs:read:/",
            "--",
            "--json",
            "-h",
        ];
        let output = place.run(&[], &words);
        assert!(output.status.success());
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(out, "--allow\nfs:read:/\n--\n--json\n-h\n");
    }
}

#[test]
fn where_no_namespace_can_be_made_the_budget_holds_and_the_gaps_are_said() {
    let Some(place) = bare("where_no_namespace_can_be_made") else {
        return;
    };
    let read =
        |options: &[&str], file: &str| Ended::of(place.run(options, &["cat", &place.show(file)]));
    let without = read(&[], "files/note");
    assert_eq!(
        (without.code, without.out.as_str()),
        (Some(1), ""),
        "{without:?}"
    );
    assert!(without.err.contains("Permission denied"), "{without:?}");
    let with = read(&["--allow", "fs:read:note"], "files/note");
    assert_eq!(
        (with.code, with.out.as_str()),
        (Some(0), "a note\n"),
        "{with:?}"
    );
    assert!(with.err.contains("confinement partial"), "{with:?}");
    assert!(with.err.contains("gaps: mount pid net"), "{with:?}");
    let full = read(
        &["--allow", "fs:read:note", "--confinement", "full"],
        "files/note",
    );
    assert_eq!((full.code, full.out.as_str()), (Some(125), ""), "{full:?}");
    assert!(
        full.err.contains("no namespaces can be made here"),
        "{full:?}"
    );
}
