//! Users and groups by name, from `/etc/passwd` and `/etc/group`. Directory services are not asked: a grant for a
//! user that only they know names its number.

use std::fs;
use std::io;

/// The uid and primary gid of `user`, a name or a number; none if there is no such name. A number that the file does
/// not list has the gid of the same number.
///
/// # Errors
/// `/etc/passwd` could not be read.
pub(crate) fn user(user: &str) -> io::Result<Option<(u32, u32)>> {
    Ok(find_user(&fs::read_to_string("/etc/passwd")?, user))
}

/// The gid of the group `name`; none if there is none.
///
/// # Errors
/// `/etc/group` could not be read.
pub(crate) fn group(name: &str) -> io::Result<Option<u32>> {
    let text = fs::read_to_string("/etc/group")?;
    Ok(text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let found = fields.next()? == name;
        found.then(|| fields.nth(1)?.parse().ok()).flatten()
    }))
}

fn find_user(passwd: &str, user: &str) -> Option<(u32, u32)> {
    let number: Option<u32> = user.parse().ok();
    let listed = passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
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
}
