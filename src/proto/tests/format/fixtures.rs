//! Reading the fixtures, and asking serde which words a type knows.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::de::DeserializeOwned;

/// The fixture `name`, for example `message/ping.json`.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let path = directory("").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The file names in one directory of the fixtures.
pub(crate) fn names(below: &str) -> BTreeSet<String> {
    std::fs::read_dir(directory(below))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn directory(below: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(below)
}

/// Every word that `T` takes where `json` has one it does not know; serde lists them in its error.
pub(crate) fn words<T: DeserializeOwned>(json: &str) -> BTreeSet<String> {
    let Err(error) = serde_json::from_str::<T>(json) else {
        panic!("{json} was meant to be refused");
    };
    let text = error.to_string();
    let (_, list) = text
        .split_once("expected ")
        .unwrap_or_else(|| panic!("no list of words in {text:?}"));
    list.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}
