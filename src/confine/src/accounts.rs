//! Users and groups by name and number, from `passwd`, `group`, `subuid` and `subgid` of `/etc`. Directory services are
//! not asked: a grant for a user that only they know names its number.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

/// Where the files are.
#[derive(Debug, Clone)]
pub struct Accounts(PathBuf);

/// Somebody who may have a uid or gid of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The user or group.
    pub name: String,
    /// The first number of theirs.
    pub first: u32,
    /// The last.
    pub last: u32,
    /// The file that says so.
    pub file: String,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            first,
            last,
            file,
        } = self;
        if first == last {
            write!(f, "{first} of {name} in {file}")
        } else {
            write!(f, "{first} to {last} of {name} in {file}")
        }
    }
}

impl Accounts {
    /// Those of this host.
    #[must_use]
    pub fn of_host() -> Self {
        Self("/etc".into())
    }

    /// Those of the files in another directory.
    #[must_use]
    pub const fn of(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The uid and primary gid of `user`, a name or a number; none if there is no such name. A number that the file does
    /// not list has the gid of the same number.
    ///
    /// # Errors
    /// `passwd` could not be read.
    pub fn user(&self, user: &str) -> io::Result<Option<(u32, u32)>> {
        let passwd = fs::read_to_string(self.0.join("passwd"))?;
        Ok(find_user(&passwd, user))
    }

    /// The gid of the group `name`; none if there is none.
    ///
    /// # Errors
    /// `group` could not be read.
    pub fn group(&self, name: &str) -> io::Result<Option<u32>> {
        let group = fs::read_to_string(self.0.join("group"))?;
        let mut found = entries(&group).filter(|fields| fields.first() == Some(&name));
        Ok(found.find_map(|fields| fields.get(2)?.parse().ok()))
    }

    /// Everybody who has a number of `first` to `last`, as a uid or as a gid, or may map one into a namespace of their own
    /// (subuid(5), subgid(5)). A file that is not there names nobody.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn within(&self, first: u32, last: u32) -> io::Result<Vec<Taken>> {
        let mut taken = Vec::new();
        // The numbers stand in the third field, or from the second on with their count in the third.
        for (name, counted) in [
            ("passwd", false),
            ("group", false),
            ("subuid", true),
            ("subgid", true),
        ] {
            let path = self.0.join(name);
            let text = match fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let file = path.display().to_string();
            taken.extend(entries(&text).filter_map(|fields| {
                let number = |place: usize| fields.get(place)?.parse::<u32>().ok();
                let (from, to) = if counted {
                    let count = number(2)?.checked_sub(1)?;
                    (number(1)?, number(1)?.saturating_add(count))
                } else {
                    (number(2)?, number(2)?)
                };
                (from <= last && first <= to).then(|| Taken {
                    name: fields.first().copied().unwrap_or_default().to_owned(),
                    first: from,
                    last: to,
                    file: file.clone(),
                })
            }));
        }
        Ok(taken)
    }
}

fn entries(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect())
}

fn find_user(passwd: &str, user: &str) -> Option<(u32, u32)> {
    let number: Option<u32> = user.parse().ok();
    let listed = entries(passwd).find_map(|fields| {
        let &[name, _, uid, gid, ..] = fields.as_slice() else {
            return None;
        };
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        let found = match number {
            Some(number) => uid == number,
            None => name == user,
        };
        found.then_some((uid, gid))
    });
    listed.or(number.map(|number| (number, number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_name_or_number() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:100:Ann:/home/ann:/bin/sh\n";
        assert_eq!(find_user(passwd, "ann"), Some((1000, 100)));
        assert_eq!(find_user(passwd, "1000"), Some((1000, 100)));
        assert_eq!(find_user(passwd, "1001"), Some((1001, 1001)));
        assert_eq!(find_user(passwd, "bob"), None);
        assert_eq!(find_user(passwd, ""), None);
    }

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Accounts) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let accounts = Accounts::of(directory.path().to_owned());
        (directory, accounts)
    }

    #[test]
    fn a_group_is_found_by_name() {
        let (_directory, accounts) = host(&[("group", "root:x:0:\nboxmaker:x:988:ann\n")]);
        assert_eq!(accounts.group("boxmaker").unwrap(), Some(988));
        assert_eq!(accounts.group("box").unwrap(), None);
    }

    #[test]
    fn whoever_has_a_number_of_a_range_is_found_in_all_four_files() {
        let (_directory, accounts) = host(&[
            (
                "passwd",
                "root:x:0:0::/:/bin/sh\nann:x:70000:100::/:/bin/sh\nbroken\n",
            ),
            ("group", "staff:x:70100:ann\n"),
            ("subuid", "ann:100000:65536\n1000:300000:0\nbad:x:y\n"),
            ("subgid", "bob:200000:10\n"),
        ]);
        for ((first, last), found) in [
            ((1, 69_999), None),
            ((70_000, 70_000), Some("70000 of ann in ")),
            ((69_000, 70_050), Some("passwd")),
            ((70_001, 70_099), None),
            ((70_050, 70_200), Some("70100 of staff in ")),
            ((70_101, 99_999), None),
            ((90_000, 100_000), Some("100000 to 165535 of ann in ")),
            ((165_535, 165_600), Some("subuid")),
            ((165_536, 199_999), None),
            ((200_009, 200_100), Some("200000 to 200009 of bob in ")),
            ((299_999, 300_001), None),
        ] {
            let taken = accounts.within(first, last).unwrap();
            let told: Vec<String> = taken.iter().map(Taken::to_string).collect();
            match found {
                None => assert_eq!(told, [""; 0], "{first} to {last}"),
                Some(part) => assert!(told.len() == 1 && told[0].contains(part), "{told:?}"),
            }
        }
        let (_directory, nobody) = host(&[]);
        assert_eq!(nobody.within(0, u32::MAX).unwrap(), []);
    }
}
