//! How much to measure.

use anyhow::{Result, bail};

/// Names the groups of rows, in the order they run.
pub(crate) const GROUPS: [&str; 8] = [
    "start", "pool", "output", "exec", "freeze", "burst", "crowd", "files",
];

/// Says how much to measure and which groups of rows.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Whether this is the short run.
    pub(crate) quick: bool,
    /// Rounds in which subjects take turns.
    pub(crate) rounds: usize,
    /// Samples of a sequential figure for a subject that is fast.
    pub(crate) samples: usize,
    /// Sandboxes started at once.
    pub(crate) burst: usize,
    /// Sandboxes live at once.
    pub(crate) crowd: usize,
    /// Bytes of the file that travels.
    pub(crate) file_bytes: usize,
    groups: Vec<String>,
}

impl Plan {
    /// Makes the full or the quick plan, for all groups or those named in `only`.
    pub(crate) fn new(quick: bool, only: &[String]) -> Result<Self> {
        if let Some(stranger) = only.iter().find(|name| !GROUPS.contains(&name.as_str())) {
            bail!(
                "no rows are called `{stranger}`\nhint: there are {}",
                GROUPS.join(", ")
            );
        }
        let groups = if only.is_empty() {
            GROUPS.map(str::to_owned).to_vec()
        } else {
            only.to_vec()
        };
        Ok(match quick {
            true => Self {
                quick,
                rounds: 2,
                samples: 20,
                burst: 20,
                crowd: 50,
                file_bytes: 16 << 20,
                groups,
            },
            false => Self {
                quick,
                rounds: 5,
                samples: 200,
                burst: 100,
                crowd: 1000,
                file_bytes: 100 << 20,
                groups,
            },
        })
    }

    /// Says whether the group of this name is asked for.
    pub(crate) fn has(&self, group: &str) -> bool {
        self.groups.iter().any(|name| name == group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_rows_are_refused_with_the_known_ones() {
        let error = Plan::new(false, &["strat".to_owned()])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`strat`") && error.contains("start"),
            "{error}"
        );
    }

    #[test]
    fn only_limits_the_groups() {
        let plan = Plan::new(true, &["exec".to_owned()]).unwrap();
        assert!(plan.has("exec") && !plan.has("start"));
    }
}
