//! The context of every check: the plan, and the identity of the probe.

use crate::identity::Identity;
use crate::plan::Plan;

/// The plan, and facts that are read once, before an attempt can change them.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) plan: Plan,
    pub(crate) identity: Identity,
    /// The descriptors at the start and what they point to, before the probe opens any of its own.
    pub(crate) descriptors: Vec<(i32, String)>,
}

impl Context {
    pub(crate) fn take(plan: Plan) -> Self {
        Self {
            descriptors: descriptors(),
            identity: Identity::take(),
            plan,
        }
    }

    /// Whether we are root inside. As root some things are allowed that an ordinary user must not do.
    pub(crate) fn is_root(&self) -> bool {
        self.identity.uid == 0
    }
}

fn descriptors() -> Vec<(i32, String)> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    // Collected first: the directory's own descriptor is in the list and closed by the time its link is read.
    let numbers: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers
        .into_iter()
        .filter_map(|fd| {
            let target = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
            Some((fd, target.to_string_lossy().into_owned()))
        })
        .collect()
}
