//! Paths as spellings (policy.md section 4): what a grant may say, what a call may say, and what lies beneath what.
//!
//! Everything here is lexical. Whether a path exists, or leads elsewhere by a link, is for the supervisor to find
//! out; this file never looks. One path has one spelling, so that no two judges can read it differently.

use std::fmt;

use proto::tool::Resource;

/// Trees of the kernel that no grant may name and no call may reach: what they show depends on who looks.
const KERNEL_TREES: [&str; 3] = ["/dev", "/proc", "/sys"];
/// The most bytes of a path, the terminating NUL of `PATH_MAX` not counted (path_resolution(7)).
const MAX_BYTES: usize = 4095;

/// Characters by which shells say "any". A name may hold them, but who grants or denies such a name means the pattern,
/// and would get a rule that matches nothing.
const PATTERN_SIGNS: [char; 3] = ['*', '?', '['];

/// What a granted path, or a path in a call, is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BindingAccess {
    /// It is read.
    Read,
    /// It is written.
    Write,
}

impl BindingAccess {
    /// The word that stands for it in grant files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// What an argument that a tool declares as `resource` is used for: one access, or both, of which a grant must
    /// then hold each.
    pub(crate) fn of(resource: Resource) -> impl Iterator<Item = Self> {
        let reads = resource.reads().then_some(Self::Read);
        let writes = resource.writes().then_some(Self::Write);
        reads.into_iter().chain(writes)
    }
}

impl fmt::Display for BindingAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of a grant's `paths`, for example `read:/srv/notes`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GrantedPath {
    access: BindingAccess,
    path: String,
}

impl GrantedPath {
    /// What it may be used for.
    #[must_use]
    pub const fn access(&self) -> BindingAccess {
        self.access
    }

    /// The absolute path, in its one spelling.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads `read:PATH` or `write:PATH`. No sign of a pattern stands in it, deny grants included.
    pub(crate) fn parse(text: &str) -> Result<Self, PathRule> {
        let (access, path) = match text.split_once(':') {
            Some(("read", path)) => (BindingAccess::Read, path),
            Some(("write", path)) => (BindingAccess::Write, path),
            _ => return Err(PathRule::Prefix),
        };
        spelling(path)?;
        if !path.starts_with('/') {
            return Err(PathRule::Relative);
        }
        if path.chars().any(char::is_control) {
            return Err(PathRule::Control);
        }
        if let Some(sign) = path.chars().find(|sign| PATTERN_SIGNS.contains(sign)) {
            return Err(PathRule::Pattern(sign));
        }
        kernel_tree(path)?;
        Ok(Self {
            access,
            path: path.to_owned(),
        })
    }
}

impl fmt::Display for GrantedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.access, self.path)
    }
}

/// One path that a permitted call may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The granted path that it lies beneath, or is.
    pub root: String,
    /// The absolute path as the call spells it; a relative one is joined to the grant's single root.
    pub path: String,
    /// What it is used for.
    pub access: BindingAccess,
    /// Whether this is a whole granted tree, because the tool declares no path argument. False for a path that the
    /// call names, even where it names the granted path itself.
    pub whole: bool,
}

/// The rule that a spelling breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathRule {
    #[error("a path must not be empty")]
    Empty,
    #[error("a path must not have more than {MAX_BYTES} bytes")]
    TooLong,
    #[error("a path must not hold a NUL")]
    Nul,
    #[error("a path must not hold a control character")]
    Control,
    #[error("a path must not hold the component `..`")]
    Parent,
    #[error("a path must not hold the component `.`")]
    Current,
    #[error("a path must not hold `//`")]
    DoubleSlash,
    #[error("a path must not end in `/`")]
    TrailingSlash,
    #[error("a granted path must begin with `read:/` or `write:/`")]
    Prefix,
    #[error("a granted path must be absolute")]
    Relative,
    #[error("a path must not lie in {0}")]
    KernelTree(&'static str),
    #[error(
        "a granted path is a plain prefix: it holds everything below it, and `{0}` stands for nothing else"
    )]
    Pattern(char),
}

/// What to write instead of the entry `text` of a grant's paths, which breaks `rule`.
pub(crate) fn way_out(text: &str, rule: PathRule) -> String {
    let (access, path) = match text.split_once(':') {
        Some((access @ ("read" | "write"), path)) => (access, path),
        _ => ("read", text),
    };
    match rule {
        PathRule::Prefix if text.starts_with('/') => {
            format!("write \"read:{text}\" to let it be read, \"write:{text}\" to let it be written")
        }
        PathRule::Prefix if text.contains(":/") => {
            "write an entry that begins with `read:` for what may be read, and one with `write:` for what may be written"
                .to_owned()
        }
        PathRule::Relative if path.starts_with(['~', '$']) => {
            format!("write the directory out, such as \"{access}:/home/ann/notes\"")
        }
        PathRule::TrailingSlash => format!("write \"{access}:{}\"", path.trim_end_matches('/')),
        PathRule::DoubleSlash => "write one `/`".to_owned(),
        PathRule::Current | PathRule::Parent => "write the path that it leads to".to_owned(),
        PathRule::KernelTree(_) => {
            "remove it: what the kernel shows there depends on who looks, so no tool gets it".to_owned()
        }
        PathRule::Pattern(_) => match before_stars(path) {
            Some(above) => format!("write \"{access}:{above}\""),
            None => "write each path in full, as an entry of its own, or the directory that holds them all".to_owned(),
        },
        _ => "write it as \"read:/srv/notes\" or \"write:/srv/notes\"".to_owned(),
    }
}

/// What lies above the components of stars that `path` ends in, if no other sign of a pattern stands in it.
fn before_stars(path: &str) -> Option<&str> {
    let mut above = path;
    while let Some((before, "*" | "**")) = above.rsplit_once('/') {
        above = before;
    }
    let plain = above.starts_with('/') && !above.contains(PATTERN_SIGNS);
    plain.then_some(above)
}

/// Checks that `path`, absolute or relative, is written in the one way that paths are written.
pub(crate) fn spelling(path: &str) -> Result<(), PathRule> {
    if path.is_empty() {
        return Err(PathRule::Empty);
    }
    if path.len() > MAX_BYTES {
        return Err(PathRule::TooLong);
    }
    if path.contains('\0') {
        return Err(PathRule::Nul);
    }
    if path == "/" {
        return Ok(());
    }
    if path.contains("//") {
        return Err(PathRule::DoubleSlash);
    }
    for component in path.strip_prefix('/').unwrap_or(path).split('/') {
        match component {
            // `//` is excluded above, so that only the end can be empty.
            "" => return Err(PathRule::TrailingSlash),
            "." => return Err(PathRule::Current),
            ".." => return Err(PathRule::Parent),
            _ => {}
        }
    }
    Ok(())
}

/// Refuses an absolute path that is or lies in a tree of the kernel.
pub(crate) fn kernel_tree(path: &str) -> Result<(), PathRule> {
    match KERNEL_TREES.iter().find(|tree| beneath(path, tree)) {
        Some(tree) => Err(PathRule::KernelTree(tree)),
        None => Ok(()),
    }
}

/// Whether the absolute `path` is `root` or lies beneath it, by whole components.
pub(crate) fn beneath(path: &str, root: &str) -> bool {
    match path.strip_prefix(root) {
        Some(rest) => rest.is_empty() || rest.starts_with('/') || root == "/",
        None => false,
    }
}

/// Whether one of two absolute paths contains the other.
pub(crate) fn overlap(one: &str, other: &str) -> bool {
    beneath(one, other) || beneath(other, one)
}

/// `path` as an absolute path: itself, or joined to `root`. None when it is relative and there is no root.
pub(crate) fn absolute(path: &str, root: Option<&str>) -> Option<String> {
    if path.starts_with('/') {
        return Some(path.to_owned());
    }
    match root? {
        "/" => Some(format!("/{path}")),
        root => Some(format!("{root}/{path}")),
    }
}

/// The path of a grant's entries, if they all name the same one.
pub(crate) fn single_root(paths: &[GrantedPath]) -> Option<&str> {
    let (first, rest) = paths.split_first()?;
    rest.iter()
        .all(|entry| entry.path == first.path)
        .then_some(first.path.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn grant_entries_have_one_spelling() {
        use PathRule as R;
        for (text, want) in [
            ("read:/srv/notes", Ok(())),
            ("write:/srv/notes", Ok(())),
            ("read:/", Ok(())),
            ("read:/a:b/c d/é/...", Ok(())),
            ("read:/..a/b..", Ok(())),
            ("read:/process", Ok(())),
            ("read:/srv/proc", Ok(())),
            ("", Err(R::Prefix)),
            ("/srv/notes", Err(R::Prefix)),
            ("Read:/srv", Err(R::Prefix)),
            ("exec:/srv", Err(R::Prefix)),
            (" read:/srv", Err(R::Prefix)),
            ("read:", Err(R::Empty)),
            ("read:srv", Err(R::Relative)),
            ("read: /srv", Err(R::Relative)),
            ("read:~/srv", Err(R::Relative)),
            ("read:/srv/", Err(R::TrailingSlash)),
            ("read://srv", Err(R::DoubleSlash)),
            ("read:/srv//notes", Err(R::DoubleSlash)),
            ("read://", Err(R::DoubleSlash)),
            ("read:/srv/./notes", Err(R::Current)),
            ("read:/.", Err(R::Current)),
            ("read:.", Err(R::Current)),
            ("read:/srv/..", Err(R::Parent)),
            ("read:/../srv", Err(R::Parent)),
            ("read:/srv/\0", Err(R::Nul)),
            ("read:/srv/a\nb", Err(R::Control)),
            ("read:/srv/a\u{85}b", Err(R::Control)),
            ("read:/srv/*", Err(R::Pattern('*'))),
            ("read:/srv/note?", Err(R::Pattern('?'))),
            ("read:/srv/[ab]", Err(R::Pattern('['))),
            ("read:/srv/]{a,b}!", Ok(())),
            ("read:/proc", Err(R::KernelTree("/proc"))),
            ("read:/proc/self/root", Err(R::KernelTree("/proc"))),
            ("write:/sys/fs/cgroup", Err(R::KernelTree("/sys"))),
            ("write:/dev", Err(R::KernelTree("/dev"))),
        ] {
            assert_eq!(GrantedPath::parse(text).map(|_| ()), want, "{text:?}");
        }
        for text in ["read:/srv/notes", "write:/a:b/c d"] {
            assert_eq!(GrantedPath::parse(text).unwrap().to_string(), text);
        }
        let long = format!("read:/{}", "a".repeat(MAX_BYTES - 1));
        assert!(GrantedPath::parse(&long).is_ok());
        assert_eq!(GrantedPath::parse(&(long + "a")), Err(R::TooLong));
    }

    #[test]
    fn beneath_counts_whole_components() {
        for (path, root, want) in [
            ("/srv/notes", "/srv/notes", true),
            ("/srv/notes/a", "/srv/notes", true),
            ("/srv/notes2", "/srv/notes", false),
            ("/srv/note", "/srv/notes", false),
            ("/srv", "/srv/notes", false),
            ("/srv", "/", true),
            ("/", "/", true),
            ("/", "/srv", false),
            ("/SRV/notes", "/srv", false),
            ("/srv /notes", "/srv", false),
        ] {
            assert_eq!(beneath(path, root), want, "{path} beneath {root}");
        }
    }

    #[test]
    fn a_relative_path_needs_one_root() {
        let read = |path: &str| GrantedPath::parse(&format!("read:{path}")).unwrap();
        let write = |path: &str| GrantedPath::parse(&format!("write:{path}")).unwrap();
        assert_eq!(single_root(&[]), None);
        assert_eq!(single_root(&[read("/a")]), Some("/a"));
        assert_eq!(single_root(&[read("/a"), write("/a")]), Some("/a"));
        assert_eq!(single_root(&[read("/a"), read("/b")]), None);
        assert_eq!(absolute("x/y", Some("/a")).as_deref(), Some("/a/x/y"));
        assert_eq!(absolute("x/y", Some("/")).as_deref(), Some("/x/y"));
        assert_eq!(absolute("/x", Some("/a")).as_deref(), Some("/x"));
        assert_eq!(absolute("x", None), None);
    }

    proptest! {
        #[test]
        fn what_passes_is_what_the_components_say(path in "[a./]{0,12}") {
            let walked = std::path::Path::new(&path)
                .components()
                .filter(|component| !matches!(component, std::path::Component::CurDir))
                .collect::<std::path::PathBuf>();
            if spelling(&path).is_ok() {
                prop_assert_eq!(walked.to_str().unwrap(), &path);
                prop_assert!(!path.split('/').any(|component| component == ".."));
            }
        }

        #[test]
        fn beneath_agrees_with_the_standard_library(path in "(/[ab]{1,2}){1,4}", root in "/|(/[ab]{1,2}){1,3}") {
            prop_assert_eq!(beneath(&path, &root), std::path::Path::new(&path).starts_with(&root));
        }
    }
}
