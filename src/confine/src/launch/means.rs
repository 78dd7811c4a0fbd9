//! What sandboxes can be made of on this host, by this process: tried, not guessed.

use std::path::Path;

use caps::errors::CapsError;

use super::trial::build_in_user_namespace;
use crate::host::Privilege;

/// What sandboxes can be made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Means {
    /// In short.
    pub privilege: Privilege,
    /// If it is [`Privilege::Bare`], what was refused: the step and the kernel's answer.
    pub refusal: Option<String>,
}

impl Means {
    /// Of this process, with the stage at `stage`. Without the rights of root one sandbox is built in a user namespace, up to
    /// its measurement.
    ///
    /// # Errors
    /// The process cannot read its own capabilities.
    pub fn of_this_process(stage: &Path) -> Result<Self, CapsError> {
        if Privilege::is_root()? {
            return Ok(Self {
                privilege: Privilege::Root,
                refusal: None,
            });
        }
        let refusal = build_in_user_namespace(stage).err();
        let privilege = match refusal {
            Some(_) => Privilege::Bare,
            None => Privilege::UserNamespace,
        };
        Ok(Self { privilege, refusal })
    }
}
