//! What the owner can do when the system refuses a file of the home: the words that such an error ends with. Which file it
//! is and what was tried is in the error already.

use std::error::Error;
use std::io;

use rustix::io::Errno;

/// The way out of an error that the system's answer to a step on a file of the home caused; none for an answer that says
/// nothing of what to do.
pub(crate) fn of(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(answer) = error.downcast_ref::<io::Error>() {
            return of_answer(answer);
        }
        next = error.source();
    }
    None
}

fn of_answer(answer: &io::Error) -> Option<&'static str> {
    Some(match Errno::from_io_error(answer)? {
        Errno::ACCESS | Errno::PERM => {
            "boxmaker writes all of its home: start it as the user whose home it is, give them what is not theirs in it \
             (chown, chmod), or name a home of your own with --home or BOXMAKER_HOME"
        }
        Errno::ROFS => {
            "boxmaker writes its log and its socket there: mount it for writing, after a look at dmesg if it was before, or \
             name another home with --home or BOXMAKER_HOME"
        }
        Errno::NOSPC | Errno::DQUOT => {
            "nothing runs without a record: make room, or name another home with --home or BOXMAKER_HOME"
        }
        Errno::EXIST | Errno::NOTDIR | Errno::ISDIR | Errno::LOOP => {
            "what stands there is of another kind than boxmaker's own, or a link, which it does not follow: move it away"
        }
        Errno::NAMETOOLONG => {
            "name a shorter home with --home or BOXMAKER_HOME: the name of its socket has at most 107 bytes"
        }
        Errno::IO => "the disk fails: see dmesg, and move the home to another",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open x")]
    struct Step {
        source: io::Error,
    }

    fn told(source: io::Error) -> Option<&'static str> {
        of(&Step { source })
    }

    #[test]
    fn what_the_system_answers_has_a_way_out() {
        for (errno, says) in [
            (Errno::ACCESS, "a home of your own"),
            (Errno::ROFS, "mount it for writing"),
            (Errno::NOSPC, "make room"),
            (Errno::LOOP, "move it away"),
            (Errno::NAMETOOLONG, "shorter home"),
        ] {
            let words = told(errno.into()).unwrap();
            assert!(words.contains(says), "{errno}: {words}");
        }
    }

    #[test]
    fn what_says_nothing_of_what_to_do_has_none() {
        assert_eq!(told(Errno::INTR.into()), None);
        assert_eq!(told(io::Error::other("odd")), None);
        assert_eq!(of(&std::fmt::Error), None);
    }
}
