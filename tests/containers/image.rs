//! The image that every container here is made of, and running `scripts/container` with it.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use boxmaker_tests::binaries::binary;
use serde_json::Value;
use tempfile::TempDir;

/// Who owns the volume: a number that a remapped container has too, as its user 1000.
const VOLUME_OWNER: u32 = 720_999;

/// What each configuration says besides its grants, by the name under which `--config` finds it. In a remapped container
/// the usual uids of sandboxes are nobody's, so all but the first name others.
const CONFIGURATIONS: &[(&str, &str)] = &[
    ("usual", ""),
    ("plain", "uid_range = [32768, 16384]\n"),
    (
        "limits",
        "uid_range = [32768, 16384]\nwaive = [\"memory\", \"pids\", \"cpu\"]\n",
    ),
    (
        "all",
        "uid_range = [32768, 16384]\nwaive = [\"memory\", \"pids\", \"cpu\", \"uid\"]\n",
    ),
];

/// `fs_read` asks for full confinement, as every grant that does not say otherwise; `fs_list` is content with less.
const GRANTS: &[(&str, &str)] = &[
    ("read", "tool = \"fs_read\"\n"),
    ("list", "tool = \"fs_list\"\nconfinement = \"partial\"\n"),
];

/// The root of every container, or why there is none.
#[derive(Debug)]
pub(crate) struct Image {
    root: PathBuf,
    /// Held as long as the tests run: another run would build the image anew meanwhile.
    _lock: File,
}

impl Image {
    /// The image, built once for all tests; nothing, and that is said, where no container can be made.
    pub(crate) fn get(test: &str) -> Option<&'static Self> {
        static IMAGE: OnceLock<Result<Image, String>> = OnceLock::new();
        match IMAGE.get_or_init(Self::build) {
            Ok(image) => Some(image),
            Err(reason) => {
                println!("{reason} ({test})");
                None
            }
        }
    }

    fn build() -> Result<Self, String> {
        let able = Command::new(script()).output().expect("the script runs");
        if able.status.code() == Some(127) {
            return Err("skipped: containers need python3: apt-get install python3".to_owned());
        }
        if !able.status.success() {
            let said = String::from_utf8_lossy(&able.stdout).trim().to_owned();
            assert!(said.starts_with("skipped"), "{able:?}");
            return Err(said);
        }
        let host = Command::new(binary("boxmaker"))
            .args(["doctor", "--json", "--config", "/nonexistent"])
            .output()
            .expect("doctor runs");
        let landlock = diagnosis(&host)["landlock_abi"].as_u64();
        if landlock.is_none_or(|abi| abi < 6) {
            return Err(
                "skipped: the tables of containers need a kernel with Landlock ABI 6".to_owned(),
            );
        }
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let lock = File::create(place.join("containers.lock")).expect("a lock");
        lock.lock().expect("it locks");
        let root = place.join("containers");
        if root.exists() {
            fs::remove_dir_all(&root).expect("the last image goes");
        }
        let made = Command::new(script())
            .arg("root")
            .arg(&root)
            .args(
                [
                    "boxmaker",
                    "boxmaker-misbehave",
                    "boxmaker-stage",
                    "brokerd",
                    "bxctl",
                    "toolkit",
                ]
                .map(binary),
            )
            .output()
            .expect("the script runs");
        assert!(made.status.success(), "{made:?}");
        let image = Self { root, _lock: lock };
        image.fill();
        Ok(image)
    }

    /// Notes of the image itself, and the configurations.
    fn fill(&self) {
        let notes = self.root.join("srv/notes");
        fs::create_dir(&notes).expect("notes");
        fs::write(notes.join("a.md"), "of the image\n").expect("a note");
        for path in [&notes, &notes.join("a.md")] {
            chown(path, Some(1000), Some(1000)).expect("its owner");
        }
        fs::create_dir(self.root.join("srv/roots")).expect("what belongs to root");
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiles/examples/tools");
        for (name, text) in CONFIGURATIONS {
            let at = self.root.join("etc/boxmaker").join(name);
            for below in ["grants", "tools"] {
                fs::create_dir_all(at.join(below)).expect("a directory");
            }
            fs::write(at.join("config.toml"), text).expect("a configuration");
            for (grant, head) in GRANTS {
                let text = format!(
                    "{head}mode = \"auto\"\nmax_taint = \"secret\"\n\
                     constraints.paths = [\"read:/srv/notes\", \"read:/srv/roots\", \"read:/data\"]\n"
                );
                fs::write(at.join(format!("grants/{grant}.toml")), text).expect("a grant");
            }
            for tool in ["fs_read", "fs_list"] {
                let file = format!("{tool}.toml");
                fs::copy(tools.join(&file), at.join("tools").join(&file)).expect("a tool");
            }
        }
    }

    /// Runs `command` in a container that was started with `options` of Docker. It has a volume at `/data`.
    pub(crate) fn run(&self, options: &[&str], command: &[&str]) -> Output {
        let volume = volume();
        Command::new(script())
            .arg("run")
            .args(options)
            .arg("--volume")
            .arg(format!("{}:/data", volume.path().display()))
            .arg(&self.root)
            .args(command)
            .output()
            .expect("the script runs")
    }

    /// Runs `command` as a unit of systemd in systemd-nspawn.
    pub(crate) fn boot(&self, options: &[&str], command: &[&str]) -> Output {
        let volume = volume();
        Command::new(script())
            .arg("boot")
            .args(options)
            .arg("--bind")
            .arg(format!("{}:/data", volume.path().display()))
            .arg(&self.root)
            .args(command)
            .output()
            .expect("the script runs")
    }
}

/// A directory of the host with a note in it.
fn volume() -> TempDir {
    let volume = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let note = volume.path().join("a.md");
    fs::write(&note, "of the volume\n").expect("a note");
    for path in [volume.path(), &note] {
        chown(path, Some(VOLUME_OWNER), Some(VOLUME_OWNER)).expect("its owner");
    }
    volume
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/container")
}

/// What was printed, which must be all there is to say.
pub(crate) fn printed(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The diagnosis that a `boxmaker doctor --json` printed.
pub(crate) fn diagnosis(output: &Output) -> Value {
    let text = printed(output);
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"))
}
