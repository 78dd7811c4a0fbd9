//! `fs_read` on real files.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::run::{NOBODY, directory, give, root, tool, tool_as};

#[test]
fn a_text_file_comes_back_byte_for_byte() {
    let home = directory();
    let path = home.path().join("notes über alles.md");
    let text = "# Notes\r\n\n\tgrüße, 世界 \u{1f600}\nlast line without newline";
    fs::write(&path, text).unwrap();
    assert_eq!(tool("fs_read", &json!({"path": path})).result(), text);
}

#[test]
fn a_range_of_lines_ends_with_the_way_to_the_next() {
    let home = directory();
    let path = home.path().join("long.txt");
    let text: String = (1..=5000).map(|line| format!("line {line}\n")).collect();
    fs::write(&path, &text).unwrap();
    let mut whole = String::new();
    let mut offset = 1;
    loop {
        let page = tool("fs_read", &json!({"path": path, "offset": offset})).result();
        match page.split_once("[fs_read: ") {
            Some((lines, note)) => {
                whole.push_str(lines);
                let next = note
                    .trim_end()
                    .trim_end_matches(']')
                    .rsplit(' ')
                    .next()
                    .unwrap();
                offset = next.parse().unwrap();
            }
            None => {
                whole.push_str(&page);
                break;
            }
        }
    }
    assert_eq!(whole, text);
    let page = tool(
        "fs_read",
        &json!({"path": path, "offset": 4999, "limit": 1}),
    )
    .result();
    assert_eq!(
        page,
        "line 4999\n[fs_read: lines 4999 to 4999 shown, more follow: offset = 5000]\n"
    );
}

#[test]
fn ranges_that_name_nothing_are_errors() {
    let home = directory();
    let path = home.path().join("three.txt");
    fs::write(&path, "1\n2\n3\n").unwrap();
    let failure = |arguments| tool("fs_read", &arguments).failure();
    let error = failure(json!({"path": path, "offset": 4}));
    assert!(error.contains("offset = 4 is past the end"), "{error}");
    assert!(error.contains("has 3 lines"), "{error}");
    assert!(failure(json!({"path": path, "offset": 0})).contains("counts lines from 1"));
    assert!(failure(json!({"path": path, "limit": 0})).contains("asks for nothing"));
    let error = failure(json!({"path": path, "offset": 6, "encoding": "hex"}));
    assert!(error.contains("has 6 bytes"), "{error}");
    assert_eq!(
        tool("fs_read", &json!({"path": path, "offset": 3})).result(),
        "3\n"
    );
}

#[test]
fn a_binary_file_is_described_and_its_bytes_are_there_for_the_asking() {
    let home = directory();
    let path = home.path().join("picture");
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.resize(100_000, 7);
    fs::write(&path, &bytes).unwrap();
    let text = tool("fs_read", &json!({"path": path})).result();
    assert!(
        text.starts_with("[fs_read: not text: PNG image, 100000 bytes]\n"),
        "{text}"
    );
    let text = tool(
        "fs_read",
        &json!({"path": path, "encoding": "hex", "limit": 8}),
    )
    .result();
    assert_eq!(
        text,
        "89504e470d0a1a0a\n[fs_read: bytes 0 to 7 shown, more follow: offset = 8]\n"
    );
    let arguments = json!({"path": path, "encoding": "base64", "offset": 99_998});
    assert_eq!(tool("fs_read", &arguments).result(), "Bwc=\n");
    let text = tool("fs_read", &json!({"path": path, "encoding": "hex"})).result();
    assert!(text.ends_with("[fs_read: bytes 0 to 65535 shown, more follow: offset = 65536]\n"));
}

#[test]
fn encodings_are_found_by_their_mark_or_taken_as_told() {
    let home = directory();
    let path = home.path().join("text");
    let read = |bytes: &[u8], encoding: Option<&str>| {
        fs::write(&path, bytes).unwrap();
        let mut arguments = json!({"path": path});
        if let Some(encoding) = encoding {
            arguments["encoding"] = encoding.into();
        }
        tool("fs_read", &arguments).result()
    };
    let little: Vec<u8> = "\u{feff}é\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(
        read(&little, None),
        "é\n[fs_read: decoded from UTF-16 little-endian]\n"
    );
    let big: Vec<u8> = "\u{feff}é\n"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    assert_eq!(
        read(&big, None),
        "é\n[fs_read: decoded from UTF-16 big-endian]\n"
    );
    assert_eq!(read(&big[2..], Some("utf-16be")), "é\n");
    let marked = read("\u{feff}é\n".as_bytes(), None);
    assert!(
        marked.starts_with("é\n[fs_read: the file begins with a UTF-8 byte order mark"),
        "{marked}"
    );
    assert_eq!(read(b"caf\xe9\n", Some("latin1")), "café\n");
    let replaced = read(b"caf\xe9\n", None);
    assert!(
        replaced.starts_with("caf\u{fffd}\n[fs_read: invalid UTF-8 was replaced"),
        "{replaced}"
    );
    assert!(replaced.contains("latin1"), "{replaced}");
    assert!(read(b"a\0b", None).contains("not text: binary data"));
    assert_eq!(read(b"a\0b", Some("utf-8")), "a\0b");
}

#[test]
fn a_huge_file_is_read_from_its_beginning_without_being_loaded() {
    let home = directory();
    let path = home.path().join("sparse");
    fs::write(&path, "first\nsecond\n").unwrap();
    // 1 TiB: loading it, or counting its lines, would not end.
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let text = tool(
        "fs_read",
        &json!({"path": path, "limit": 2, "encoding": "utf-8"}),
    )
    .result();
    assert_eq!(
        text,
        "first\nsecond\n[fs_read: lines 1 to 2 shown, more follow: offset = 3]\n"
    );
    let arguments = json!({"path": path, "encoding": "hex", "offset": (1_u64 << 40) - 2});
    assert_eq!(tool("fs_read", &arguments).result(), "0000\n");
}

#[test]
fn a_file_of_the_kernel_without_a_size_is_read_to_its_end() {
    let text = tool("fs_read", &json!({"path": "/proc/self/status"})).result();
    assert!(text.contains("Name:\ttoolkit\n"), "{text}");
}

#[test]
fn whatever_is_no_file_is_refused_at_once_and_a_file_beside_it_is_read() {
    let home = directory();
    let at = |name: &str| home.path().join(name);
    fs::write(at("file"), "text").unwrap();
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _listener = UnixListener::bind(at("socket")).unwrap();
    symlink("pipe", at("link")).unwrap();
    symlink("nowhere", at("broken")).unwrap();
    symlink("circle", at("circle")).unwrap();
    let refused = |path: &std::path::Path| tool("fs_read", &json!({"path": path})).failure();
    assert!(refused(&at("pipe")).contains("pipe is a named pipe: only regular files"));
    assert!(refused(&at("link")).contains("link is a named pipe"));
    assert!(refused(&at("socket")).contains("is a socket"));
    assert!(refused(std::path::Path::new("/dev/zero")).contains("is a character device"));
    assert!(refused(home.path()).contains("is a directory: list it with fs_list"));
    assert!(refused(&at("broken")).contains("it does not exist"));
    assert!(refused(&at("circle")).contains("lead in a circle"));
    assert!(refused(&at("file").join("x")).contains("a part of the path is a file"));
    assert_eq!(
        tool("fs_read", &json!({"path": at("file")})).result(),
        "text"
    );
}

#[test]
fn another_users_private_file_is_refused_to_others_and_read_by_its_owner() {
    if !root("reading as another user") {
        return;
    }
    let home = directory();
    let path = home.path().join("private");
    fs::write(&path, "mine").unwrap();
    give(&path, NOBODY, 0o600);
    let arguments = json!({"path": path});
    assert!(
        tool_as(NOBODY + 1, "fs_read", &arguments)
            .failure()
            .contains("permission denied")
    );
    assert_eq!(tool_as(NOBODY, "fs_read", &arguments).result(), "mine");
}
