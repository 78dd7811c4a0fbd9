//! What is measured on: a policy like the demo's, files of another user, and what everything is started from.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use confine::cgroup::Backend;
use confine::launch::{Launcher, LauncherOptions, PoolSizes};
use confine::profile::Profiles;
use policy::Policy;
use proto::Layer;
use proto::config::CgroupChoice;

use crate::Outcome;

/// The user to whom the files belong.
pub(crate) const OWNER: u32 = 1000;

/// Everything that stays the same from round to round.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Where boxmaker's binaries are.
    pub(crate) binaries: PathBuf,
    /// Where this run's files are.
    pub(crate) directory: PathBuf,
    pub(crate) policy: Policy,
    pub(crate) profiles: Profiles,
    pub(crate) launcher: Launcher,
    /// One with a warm pool.
    pub(crate) warm: Launcher,
}

impl Setting {
    /// Makes `directory` anew, but for what the build put there.
    pub(crate) fn build(directory: &Path, binaries: &Path) -> Outcome<Self> {
        for name in ["home", "ledger", "config", "files"] {
            match fs::remove_dir_all(directory.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => fs::create_dir_all(directory.join(name))?,
            }
        }
        let backend = Backend::detect(CgroupChoice::Auto, "bench")?;
        let waive: Vec<Layer> = backend.missing().iter().map(|(layer, _)| *layer).collect();
        let files = configure(directory, &waive)?;
        fill(&directory.join("files"))?;
        let first = |errors: Vec<_>| errors.first().map_or(String::new(), ToString::to_string);
        Ok(Self {
            binaries: binaries.to_owned(),
            directory: directory.to_owned(),
            policy: Policy::load(&files, 1).map_err(first)?,
            profiles: Profiles::load(&files).map_err(|errors| format!("{errors:?}"))?,
            launcher: launcher(binaries, "bench", waive.clone(), 0)?,
            warm: launcher(binaries, "bench-warm", waive, 1)?,
        })
    }

    /// The file that every call reads.
    pub(crate) fn note(&self) -> PathBuf {
        self.directory.join("files/notes/garden.md")
    }

    /// The arguments of that call.
    pub(crate) fn arguments(&self) -> String {
        serde_json::json!({ "path": self.note() }).to_string()
    }
}

/// A launcher with so many stages of each kind in its warm pool.
fn launcher(binaries: &Path, name: &str, waive: Vec<Layer>, pool: u8) -> Outcome<Launcher> {
    Ok(Launcher::new(LauncherOptions {
        stage: binaries.join("boxmaker-stage"),
        uid_range: (1_879_048_192, 65_536),
        cgroup: CgroupChoice::Auto,
        name: format!("{name}-{}", std::process::id()),
        waive,
        pool: PoolSizes {
            tools: pool,
            named: BTreeMap::new(),
        },
        bare: None,
    })?)
}

/// Writes the demo's grants and tools for these files, and gives them as they are loaded.
fn configure(directory: &Path, waive: &[Layer]) -> Outcome<BTreeMap<String, Vec<u8>>> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiles/examples");
    let own = directory.join("files").to_string_lossy().into_owned();
    let waive: Vec<String> = waive.iter().map(|layer| format!("\"{layer}\"")).collect();
    let config = format!("waive = [{}]\n", waive.join(", "));
    fs::write(directory.join("config/config.toml"), &config)?;
    let mut files = BTreeMap::from([("config.toml".to_owned(), config.into_bytes())]);
    for (from, to) in [
        ("demo/grants", "grants"),
        ("demo/tools", "tools"),
        ("tools", "tools"),
    ] {
        fs::create_dir_all(directory.join("config").join(to))?;
        for entry in fs::read_dir(examples.join(from))? {
            let path = entry?.path();
            // Of the tools to copy, those that the demo uses: others have profiles of their own.
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            if from == "tools" && !["fs_read", "fs_list", "fs_write"].contains(&name.as_ref()) {
                continue;
            }
            let text = fs::read_to_string(&path)?.replace("@FILES@", &own);
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{to}/{name}");
            fs::write(directory.join("config").join(&name), &text)?;
            files.insert(name, text.into_bytes());
        }
    }
    Ok(files)
}

/// The directories that the grants name, with one note, all of it closed to everybody but the owner.
fn fill(files: &Path) -> Outcome<()> {
    let mut all = vec![files.to_owned()];
    for name in [
        "notes", "inbox", "vault", "scripts", "strict", "letters", "out",
    ] {
        fs::create_dir(files.join(name))?;
        all.push(files.join(name));
    }
    let note = files.join("notes/garden.md");
    fs::write(
        &note,
        "# Garden\n\nBeans on the south wall, peas by the shed.\n",
    )?;
    for path in &all {
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
    }
    fs::set_permissions(&note, Permissions::from_mode(0o600))?;
    for path in all.iter().chain([&note]) {
        chown(path, Some(OWNER), Some(OWNER))?;
    }
    Ok(())
}
