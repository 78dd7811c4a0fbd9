//! What a program needs to start, from files made by hand.

use super::*;

#[test]
fn a_dynamic_program_brings_its_loader_and_a_static_one_nothing() {
    let place = Place::new();
    let loader = place.write("ld.so", &elf(None), 0o755);
    place.link("lib", ".");
    let named = place.path("lib/ld.so");
    let dynamic = place.write("dynamic", &elf(Some(&named)), 0o755);
    let fixed = place.write("static", &elf(None), 0o755);
    assert_eq!(
        reals(&take(&dynamic, "").unwrap().chain),
        [&dynamic, &loader]
    );
    assert_eq!(reals(&take(&fixed, "").unwrap().chain), [&fixed]);
    let broken = place.write("broken", &elf(Some(&place.path("none"))), 0o755);
    assert_eq!(
        take(&broken, "").unwrap_err().to_string(),
        format!(
            "{} does not exist, and {broken} needs it",
            place.path("none")
        )
    );
}

#[test]
fn a_script_brings_its_interpreters_up_to_four() {
    let place = Place::new();
    let base = place.write("0", &elf(None), 0o755);
    let mut chain = vec![base.clone()];
    let mut last = base;
    for depth in 1..=5 {
        let script = format!("#! {last}  -x y \nrest");
        last = place.write(&depth.to_string(), script.as_bytes(), 0o755);
        chain.insert(0, last.clone());
        if depth <= 4 {
            assert_eq!(reals(&take(&last, "").unwrap().chain), chain);
        }
    }
    let error = take(&last, "").unwrap_err().to_string();
    assert!(
        error.ends_with("more than 4 scripts stand behind one another"),
        "{error}"
    );
}

#[test]
fn env_looks_in_the_profiles_path() {
    let place = Place::new();
    let env = place.write("bin/env", &elf(None), 0o755);
    place.write("one/snake", b"not executable", 0o644);
    let snake = place.write("two/snake", &elf(None), 0o755);
    let search = format!("relative:{}:{}", place.path("one"), place.path("two"));
    for line in ["snake", "-S snake -u", "-S  snake\t-u"] {
        let script = place.write("script", format!("#!{env} {line}\n").as_bytes(), 0o755);
        let chain = take(&script, &search).unwrap().chain;
        assert_eq!(reals(&chain), [&script, &env, &snake], "{line}");
    }
    for (line, search, reason) in [
        (
            "snake",
            "/nowhere",
            "snake is nowhere in the profile's PATH",
        ),
        ("-i snake", search.as_str(), "names no program plainly"),
        ("A=b snake", &search, "names no program plainly"),
        ("", &search, "names no program plainly"),
        ("./snake", &search, "relative to a directory nobody knows"),
    ] {
        let script = place.write("script", format!("#!{env} {line}\n").as_bytes(), 0o755);
        let error = take(&script, search).unwrap_err().to_string();
        assert!(error.ends_with(reason), "{error}");
    }
}

#[test]
fn programs_that_cannot_start_are_refused_with_the_reason() {
    let place = Place::new();
    let good = elf(None);
    let change = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let long = format!("#!/{}", "x".repeat(300));
    let mut headers = elf(Some("/x"));
    headers.truncate(100);
    let mut far = elf(Some("/x"));
    far[39] = 0x80;
    for (content, reason) in [
        (
            change(4, 1),
            "it is a 32-bit program; those are killed by the system call filter",
        ),
        (change(5, 2), "it is a program for another machine"),
        (change(18, 183), "it is a program for another machine"),
        (good[..40].to_vec(), "its ELF header is cut short"),
        (headers, "its ELF program headers lie outside the file"),
        (far, "its ELF program headers lie outside the file"),
        (
            elf(Some("")),
            "the path of its loader has no sensible length",
        ),
        (
            elf(Some("ld.so")),
            "the path of its loader is not absolute text",
        ),
        (
            b"echo".to_vec(),
            "it is neither an ELF program nor a script with #!",
        ),
        (
            Vec::new(),
            "it is neither an ELF program nor a script with #!",
        ),
        (
            b"#!sh\n".to_vec(),
            "its first line names no absolute interpreter",
        ),
        (b"#!\xff\n".to_vec(), "its first line is not UTF-8"),
        (
            b"#!/bin/sh\0 -x\n".to_vec(),
            "its first line holds a zero byte",
        ),
        (long.into_bytes(), "its first line is longer than 255 bytes"),
    ] {
        let path = place.write("program", &content, 0o755);
        let error = take(&path, "").unwrap_err().to_string();
        assert_eq!(error, format!("cannot start {path}: {reason}"));
    }
    let path = place.write("program", &good, 0o755);
    take(&path, "").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
    let error = take(&path, "").unwrap_err().to_string();
    assert!(error.contains("mode 0750"), "{error}");
    let error = take(&place.base, "").unwrap_err().to_string();
    assert!(error.ends_with("it is not a regular file"), "{error}");
    assert!(take("program", "").is_err());
}
