//! The groups of rows by name.

use anyhow::Result;

use super::{Subjects, burst, crowd, egress, exec, files, freeze, output, pool, sdk, start, tools};
use crate::plan::Plan;
use crate::report::Row;

/// Rows that are measured together.
#[derive(Debug)]
pub(crate) struct Group {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// IDs of its rows, known before measuring, so that the command line can select one.
    pub(crate) rows: &'static [&'static str],
    /// Measures all subjects and returns the rows.
    pub(crate) measure: fn(&Plan, &Subjects<'_>) -> Result<Vec<Row>>,
}

/// All groups, in the order they run.
pub(crate) const GROUPS: [Group; 11] = [
    Group {
        name: "start",
        rows: &[
            "start_p50",
            "start_p99",
            "delete_p50",
            "one_shot_p50",
            "one_shot_p99",
        ],
        measure: start::measure,
    },
    Group {
        name: "pool",
        rows: &["pool_p50", "pool_p99"],
        measure: pool::measure,
    },
    Group {
        name: "output",
        rows: &["output_p50", "output_p99"],
        measure: output::measure,
    },
    Group {
        name: "exec",
        rows: &["exec_p50", "exec_p99"],
        measure: exec::measure,
    },
    Group {
        name: "freeze",
        rows: &["pause_p50", "resume_p50", "wake_p50"],
        measure: freeze::measure,
    },
    Group {
        name: "burst",
        rows: &["burst_wall"],
        measure: burst::measure,
    },
    Group {
        name: "crowd",
        rows: &[
            "crowd_create",
            "crowd_answer",
            "crowd_pss",
            "crowd_available",
            "crowd_manager",
            "crowd_exec_p50",
            "crowd_exec_p99",
            "crowd_status_p50",
            "crowd_status_p99",
            "crowd_back",
            "crowd_some",
            "crowd_adopt",
            "crowd_delete",
        ],
        measure: crowd::measure,
    },
    Group {
        name: "files",
        rows: &["files"],
        measure: files::measure,
    },
    Group {
        name: "egress",
        rows: &[
            "egress_rate",
            "egress_first_byte_p50",
            "egress_added_p50",
            "egress_create_p50",
        ],
        measure: egress::measure,
    },
    Group {
        name: "tools",
        rows: &["tools_first_p50", "tools_read_p50", "tools_memory"],
        measure: tools::measure,
    },
    Group {
        name: "sdk",
        rows: &[
            "sdk_p50",
            "sdk_p95",
            "sdk_p99",
            "sdk_worked",
            "sdk_burst_p50",
            "sdk_burst_p95",
            "sdk_burst_p99",
            "sdk_burst_worked",
        ],
        measure: sdk::measure,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;

    #[test]
    fn every_group_gives_the_rows_it_names() {
        let plan = Plan::new(true, Selection::default());
        for group in GROUPS {
            let rows = (group.measure)(&plan, &[]).unwrap();
            let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
            assert_eq!(ids, group.rows, "{}", group.name);
        }
    }
}
