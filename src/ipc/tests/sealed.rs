//! The configuration sealed into memory, and read back.
#![allow(
    clippy::unwrap_used,
    reason = "what a test takes for granted may end it"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use ipc::{Files, FilesError};
use proptest::prelude::*;
use rustix::fs::{MemfdFlags, SealFlags};

#[test]
fn sealed_files_cannot_be_changed_by_who_holds_them() {
    let files = Files(BTreeMap::from([(
        "config.toml".into(),
        b"waive = []".to_vec(),
    )]));
    let memory = files.seal().unwrap();
    let mut file = fs::File::from(memory.try_clone().unwrap());
    assert_eq!(
        file.write_all(b"x").unwrap_err().kind(),
        std::io::ErrorKind::PermissionDenied
    );
    assert_eq!(
        file.set_len(1).unwrap_err().kind(),
        std::io::ErrorKind::PermissionDenied
    );
    let error = rustix::fs::fcntl_add_seals(&memory, SealFlags::empty()).unwrap_err();
    assert_eq!(error, rustix::io::Errno::PERM);
    assert_eq!(Files::unseal(memory).unwrap(), files);
}

/// A memory file with these bytes and these seals.
fn memory(bytes: &[u8], seals: SealFlags) -> OwnedFd {
    let memory =
        rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    let mut file = fs::File::from(memory);
    file.write_all(bytes).unwrap();
    rustix::fs::fcntl_add_seals(&file, seals).unwrap();
    file.into()
}

#[test]
fn memory_that_could_still_change_is_refused() {
    let every = [SealFlags::WRITE, SealFlags::SHRINK, SealFlags::GROW];
    let sealed = every.into_iter().collect::<SealFlags>();
    assert_eq!(
        Files::unseal(memory(b"", sealed)).unwrap(),
        Files::default()
    );
    for missing in every {
        let error = Files::unseal(memory(b"", sealed - missing)).unwrap_err();
        assert!(
            matches!(error, FilesError::Format("it is not sealed")),
            "{error}"
        );
    }
    let plain = tempfile::tempfile().unwrap();
    let error = Files::unseal(plain.into()).unwrap_err();
    assert!(
        matches!(error, FilesError::Memory(_) | FilesError::Format(_)),
        "{error}"
    );
    let (reader, _writer) = std::io::pipe().unwrap();
    let error = Files::unseal(reader.as_fd().try_clone_to_owned().unwrap()).unwrap_err();
    assert!(matches!(error, FilesError::Memory(_)), "{error}");
}

#[test]
fn sealed_memory_that_ends_inside_a_file_or_claims_too_much_is_refused() {
    let sealed = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW;
    let whole = [&1_u64.to_be_bytes()[..], b"a", &2_u64.to_be_bytes(), b"bc"].concat();
    let files = Files::unseal(memory(&whole, sealed)).unwrap();
    assert_eq!(files.0, BTreeMap::from([("a".into(), b"bc".to_vec())]));
    for cut in 1..whole.len() {
        let error = Files::unseal(memory(&whole[..cut], sealed)).unwrap_err();
        assert!(
            matches!(error, FilesError::Format("it ends inside a file")),
            "{cut}: {error}"
        );
    }
    let error = Files::unseal(memory(&u64::MAX.to_be_bytes(), sealed)).unwrap_err();
    assert!(
        matches!(error, FilesError::Format("it ends inside a file")),
        "{error}"
    );
    let no_name = [&1_u64.to_be_bytes()[..], b"\xff", &0_u64.to_be_bytes()].concat();
    let error = Files::unseal(memory(&no_name, sealed)).unwrap_err();
    assert!(
        matches!(error, FilesError::Format("a file name is not UTF-8")),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_files_survive_being_sealed(
        files in prop::collection::btree_map(".{0,20}", prop::collection::vec(any::<u8>(), 0..200), 0..6),
    ) {
        let files = Files(files);
        prop_assert_eq!(Files::unseal(files.seal().unwrap()).unwrap(), files);
    }

    #[test]
    fn any_sealed_bytes_are_files_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW;
        if let Ok(files) = Files::unseal(memory(&bytes, seals)) {
            let stored: usize = files.0.iter().map(|(name, bytes)| 16 + name.len() + bytes.len()).sum();
            prop_assert!(stored <= bytes.len());
        }
    }
}
