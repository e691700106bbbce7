//! Results of one run: rows of cells, goals, and the host.

use std::collections::BTreeMap;

use serde::Serialize;

/// The two sections of the report. Each is a table with its own columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Section {
    /// Our engine through its client library, and all rivals.
    Engine,
    /// Our server through HTTP, and rivals with an HTTP API.
    Http,
}

impl Section {
    /// Both sections, in the order in which they are measured.
    pub(crate) const ALL: [Self; 2] = [Self::Engine, Self::Http];

    /// Returns the name by which it is asked for.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Http => "http",
        }
    }

    /// Returns the heading of its table.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Engine => "Engine, through its client library",
            Self::Http => "HTTP, through `sandyard serve`",
        }
    }
}

/// Measured subjects, in the order of the table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Column {
    /// Ours: the engine through its client library, or the server as it comes.
    Sandyard,
    /// Our server when it keeps no ready sandboxes.
    SandyardNoPool,
    /// Our server without ready sandboxes, and with sandboxes without egress.
    SandyardNoGateway,
    /// The host itself, with no sandbox around the program.
    Host,
    /// Docker through its HTTP API, containers without network: the closest match to what we do.
    DockerApi,
    /// Docker through its command line, containers without network.
    DockerCli,
    /// Docker through its command line, containers on a bridge: the default of `docker run`.
    DockerBridge,
    /// `bwrap`, which has no daemon, limits, own root tree or live sandboxes: a floor, not a rival.
    Bubblewrap,
}

impl Column {
    /// Returns the heading of the column.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Sandyard => "sandyard",
            Self::SandyardNoPool => "sandyard, no pool",
            Self::SandyardNoGateway => "sandyard, no pool, no gateway",
            Self::Host => "host, no sandbox",
            Self::DockerApi => "docker (API)",
            Self::DockerCli => "docker (CLI)",
            Self::DockerBridge => "docker (CLI, bridge)",
            Self::Bubblewrap => "bubblewrap",
        }
    }
}

/// Unit of a figure, which tells the better direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Milliseconds; less is better.
    Millis,
    /// Mebibytes of memory; less is better.
    Mebibytes,
    /// Megabytes (10⁶ bytes) per second; more is better.
    MegabytesPerSecond,
    /// Fraction of requests that were answered; more is better.
    Count,
}

impl Unit {
    /// Returns the unit as written behind a number.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Millis => " ms",
            Self::Mebibytes => " MiB",
            Self::MegabytesPerSecond => " MB/s",
            Self::Count => "",
        }
    }

    /// Whether a larger figure is the better one.
    pub(crate) fn is_more_better(self) -> bool {
        matches!(self, Self::MegabytesPerSecond | Self::Count)
    }
}

/// Holds one figure of one subject.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cell {
    /// The figure, in the row's unit.
    pub(crate) value: f64,
    /// Number of sandboxes that the figure covers: a wall time of 20 containers is compared per container.
    pub(crate) batch: usize,
    /// Number of samples.
    pub(crate) samples: usize,
    /// Spread between rounds; see [`crate::stats::Samples::spread`].
    pub(crate) spread: Option<f64>,
}

/// Holds one line of the table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// Table that the row belongs to.
    pub(crate) section: Section,
    /// Stable name within its section, for scripts that compare runs.
    pub(crate) id: &'static str,
    /// Label for people.
    pub(crate) label: String,
    /// Unit of the cells.
    pub(crate) unit: Unit,
    /// Goal: a minimum or maximum, depending on [`Unit::is_more_better`].
    pub(crate) goal: Option<f64>,
    /// One figure for each subject that supports the operation.
    pub(crate) cells: BTreeMap<Column, Cell>,
}

impl Row {
    /// Creates a row without cells. The runner of the group sets the section.
    pub(crate) fn new(
        id: &'static str,
        label: impl Into<String>,
        unit: Unit,
        goal: Option<f64>,
    ) -> Self {
        Self {
            section: Section::Engine,
            id,
            label: label.into(),
            unit,
            goal,
            cells: BTreeMap::new(),
        }
    }

    /// Whether our own figure reaches the goal; none when either is missing.
    pub(crate) fn is_goal_met(&self) -> Option<bool> {
        let (goal, own_value) = (self.goal?, self.cells.get(&Column::Sandyard)?.value);
        Some(if self.unit.is_more_better() {
            own_value >= goal
        } else {
            own_value <= goal
        })
    }

    /// Returns how many times better we are than `column`, per sandbox; below one, we are worse.
    pub(crate) fn ratio_to(&self, column: Column) -> Option<f64> {
        let (own_cell, other_cell) = (self.cells.get(&Column::Sandyard)?, self.cells.get(&column)?);
        if column == Column::Sandyard || self.unit == Unit::Count {
            return None;
        }
        let each = |cell: &Cell| cell.value / cell.batch as f64;
        let ratio = if self.unit.is_more_better() {
            own_cell.value / other_cell.value
        } else {
            each(other_cell) / each(own_cell)
        };
        ratio.is_finite().then_some(ratio)
    }
}

/// Describes the machine, because figures mean nothing without it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Host {
    /// Kernel release.
    pub(crate) kernel: String,
    /// Processor model and count.
    pub(crate) processors: String,
    /// Memory in MiB.
    pub(crate) memory_mib: u64,
    /// Versions of what we are measured against.
    pub(crate) rivals: Vec<String>,
}

/// Holds a whole run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Host of the run.
    pub(crate) host: Host,
    /// Whether this was a quick run.
    pub(crate) quick: bool,
    /// Median time to start a plain `true`, and its spread between rounds: the noise of the host.
    pub(crate) spawn_millis: f64,
    /// See `spawn_millis`.
    pub(crate) spawn_spread: f64,
    /// The table.
    pub(crate) rows: Vec<Row>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unit: Unit, goal: f64, own_cell: (f64, usize), other_cell: (f64, usize)) -> Row {
        let cell = |(value, batch)| Cell {
            value,
            batch,
            samples: 1,
            spread: None,
        };
        let cells = BTreeMap::from([
            (Column::Sandyard, cell(own_cell)),
            (Column::DockerApi, cell(other_cell)),
        ]);
        Row {
            cells,
            ..Row::new("row", "Row", unit, Some(goal))
        }
    }

    #[test]
    fn less_time_is_better() {
        let row = row(Unit::Millis, 5.0, (4.0, 1), (200.0, 1));
        assert_eq!(
            (row.is_goal_met(), row.ratio_to(Column::DockerApi)),
            (Some(true), Some(50.0))
        );
    }

    #[test]
    fn batches_of_unlike_size_are_compared_per_piece() {
        let row = row(Unit::Millis, 500.0, (1000.0, 100), (4000.0, 20));
        assert_eq!(
            (row.is_goal_met(), row.ratio_to(Column::DockerApi)),
            (Some(false), Some(20.0))
        );
    }

    #[test]
    fn more_throughput_is_better() {
        let row = row(Unit::MegabytesPerSecond, 500.0, (600.0, 1), (300.0, 1));
        assert_eq!(
            (row.is_goal_met(), row.ratio_to(Column::DockerApi)),
            (Some(true), Some(2.0))
        );
    }

    #[test]
    fn missing_subject_has_no_ratio() {
        assert_eq!(
            row(Unit::Millis, 1.0, (1.0, 1), (1.0, 1)).ratio_to(Column::Bubblewrap),
            None
        );
    }
}
