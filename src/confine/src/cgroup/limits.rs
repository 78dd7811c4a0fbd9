//! What is written to which file of a group to limit a layer, and what the kernel says when it is read back.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use proto::Layer;

use super::CgroupError;
use super::hierarchy::Version;
use crate::plan::Limits;

/// The period over which processor time is counted, in microseconds.
const CPU_PERIOD: u64 = 100_000;

/// One file of a limit.
struct Setting {
    file: &'static str,
    written: String,
    /// What the file says from then on.
    kept: String,
    /// Not every kernel has the file: it depends on how swap is accounted.
    optional: bool,
}

/// The settings of one layer, in the order in which they are written.
fn settings(version: Version, layer: Layer, limits: &Limits) -> Vec<Setting> {
    let exact = |file, value: String| Setting {
        file,
        kept: value.clone(),
        written: value,
        optional: false,
    };
    let bytes = |file| Setting {
        kept: whole_pages(limits.memory).to_string(),
        ..exact(file, limits.memory.to_string())
    };
    let optional = |setting| Setting {
        optional: true,
        ..setting
    };
    let quota = u64::from(limits.cpu) * (CPU_PERIOD / 100);
    match (version, layer) {
        (Version::V1, Layer::Memory) => vec![
            bytes("memory.limit_in_bytes"),
            // Memory and swap together: after the plain limit, which it may not be below.
            optional(bytes("memory.memsw.limit_in_bytes")),
            optional(exact("memory.swappiness", "0".to_owned())),
        ],
        (Version::V2, Layer::Memory) => vec![
            bytes("memory.max"),
            optional(exact("memory.swap.max", "0".to_owned())),
            // Whatever is in the group dies together: half a sandbox would go on in an unknown state.
            exact("memory.oom.group", "1".to_owned()),
        ],
        (_, Layer::Pids) => vec![exact("pids.max", limits.pids.to_string())],
        (Version::V1, _) => vec![
            exact("cpu.cfs_period_us", CPU_PERIOD.to_string()),
            exact("cpu.cfs_quota_us", quota.to_string()),
        ],
        (Version::V2, _) => vec![exact("cpu.max", format!("{quota} {CPU_PERIOD}"))],
    }
}

/// The kernel counts memory in pages, and keeps a limit cut to them.
fn whole_pages(bytes: u64) -> u64 {
    let page = rustix::param::page_size() as u64;
    bytes / page * page
}

/// Sets the limit of `layer` on the group of `directory`.
pub(super) fn set(
    directory: &Path,
    version: Version,
    layer: Layer,
    limits: &Limits,
) -> Result<(), CgroupError> {
    settings(version, layer, limits)
        .into_iter()
        .filter(|setting| !setting.optional || directory.join(setting.file).exists())
        .try_for_each(|setting| write(&directory.join(setting.file), &setting.written))
}

/// Writes one value to a file of the kernel, which is never made.
fn write(path: &Path, value: &str) -> Result<(), CgroupError> {
    let write = || {
        OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(value.as_bytes())
    };
    write().map_err(|source| CgroupError::Limit {
        path: path.to_owned(),
        value: value.to_owned(),
        source,
    })
}

/// Whether the limit of `layer` stands as it was set, read back.
pub(super) fn check(
    directory: &Path,
    version: Version,
    layer: Layer,
    limits: &Limits,
) -> Result<(), String> {
    for setting in settings(version, layer, limits) {
        let (path, file) = (directory.join(setting.file), setting.file);
        if setting.optional && !path.exists() {
            continue;
        }
        let text =
            fs::read_to_string(path).map_err(|error| format!("cannot read {file}: {error}"))?;
        if text.trim() != setting.kept {
            return Err(format!("{file} is {}", text.trim()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        memory: 5_000_000,
        pids: 7,
        cpu: 150,
        files: 256,
        wall_ms: 1000,
    };
    const ALL: [Layer; 3] = [Layer::Memory, Layer::Pids, Layer::Cpu];
    const V1_FILES: [&str; 4] = [
        "memory.limit_in_bytes",
        "pids.max",
        "cpu.cfs_period_us",
        "cpu.cfs_quota_us",
    ];
    const V2_FILES: [&str; 5] = [
        "memory.max",
        "memory.swap.max",
        "memory.oom.group",
        "pids.max",
        "cpu.max",
    ];

    fn group(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in files {
            fs::write(directory.path().join(name), "").unwrap();
        }
        directory
    }

    fn set_all(directory: &tempfile::TempDir, version: Version) -> Result<(), CgroupError> {
        ALL.iter()
            .try_for_each(|layer| set(directory.path(), version, *layer, &LIMITS))
    }

    fn read(directory: &tempfile::TempDir, name: &str) -> String {
        fs::read_to_string(directory.path().join(name)).unwrap()
    }

    #[test]
    fn v1_limits_are_written_in_the_kernels_units() {
        let directory = group(&V1_FILES);
        set_all(&directory, Version::V1).unwrap();
        let written = V1_FILES.map(|name| read(&directory, name));
        assert_eq!(written, ["5000000", "7", "100000", "150000"]);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
    }

    #[test]
    fn v2_limits_are_written_in_the_kernels_units_without_swap_and_for_the_group_as_a_whole() {
        let directory = group(&V2_FILES);
        set_all(&directory, Version::V2).unwrap();
        let written = V2_FILES.map(|name| read(&directory, name));
        assert_eq!(written, ["5000000", "0", "1", "7", "150000 100000"]);
        fs::remove_file(directory.path().join("memory.swap.max")).unwrap();
        set_all(&directory, Version::V2).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_limit_that_was_raised_or_removed_does_not_hold() {
        for (version, layer, file, raised, kept) in [
            (
                Version::V1,
                Layer::Memory,
                "memory.limit_in_bytes",
                "5001216",
                "4997120",
            ),
            (
                Version::V1,
                Layer::Memory,
                "memory.memsw.limit_in_bytes",
                "9223372036854771712",
                "4997120",
            ),
            (Version::V1, Layer::Pids, "pids.max", "max", "7"),
            (Version::V1, Layer::Cpu, "cpu.cfs_quota_us", "-1", "150000"),
            (Version::V2, Layer::Memory, "memory.max", "max", "4997120"),
            (Version::V2, Layer::Memory, "memory.swap.max", "max", "0"),
            (Version::V2, Layer::Memory, "memory.oom.group", "0", "1"),
            (Version::V2, Layer::Pids, "pids.max", "8", "7"),
            (
                Version::V2,
                Layer::Cpu,
                "cpu.max",
                "max 100000",
                "150000 100000",
            ),
        ] {
            let directory = group(&[]);
            for setting in settings(version, layer, &LIMITS) {
                fs::write(directory.path().join(setting.file), setting.kept + "\n").unwrap();
            }
            let path = directory.path().join(file);
            let holds = || check(directory.path(), version, layer, &LIMITS);
            assert_eq!(holds(), Ok(()), "{file}");
            fs::write(&path, format!("{raised}\n")).unwrap();
            assert_eq!(holds(), Err(format!("{file} is {raised}")));
            fs::write(&path, format!("{kept}\n")).unwrap();
            assert_eq!(holds(), Ok(()), "{file}");
        }
    }

    #[test]
    fn a_limit_file_that_is_not_there_is_an_error_and_is_not_made() {
        for version in [Version::V1, Version::V2] {
            let directory = group(&[]);
            let error = set(directory.path(), version, Layer::Pids, &LIMITS).unwrap_err();
            assert!(matches!(error, CgroupError::Limit { .. }), "{error:?}");
            assert!(!directory.path().join("pids.max").exists());
            let reason = check(directory.path(), version, Layer::Pids, &LIMITS).unwrap_err();
            assert!(reason.starts_with("cannot read pids.max: "), "{reason}");
        }
    }
}
