//! Writes a report as a Markdown table.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::report::{Cell, Column, Report, Row, Section, Unit};

/// Renders `report` as Markdown for people: a table for each section that was measured.
pub(crate) fn markdown(report: &Report) -> String {
    let mut text = String::new();
    for section in Section::ALL {
        let rows: Vec<&Row> = report
            .rows
            .iter()
            .filter(|row| row.section == section && !row.cells.is_empty())
            .collect();
        if !rows.is_empty() {
            let _ = writeln!(text, "### {}\n\n{}\n", section.heading(), lines(&rows));
        }
    }
    text + &notes(report)
}

fn lines(rows: &[&Row]) -> String {
    let columns: BTreeSet<Column> = rows
        .iter()
        .flat_map(|row| row.cells.keys().copied())
        .collect();
    let mut lines = vec![line(
        ["figure", "goal", ""]
            .into_iter()
            .chain(columns.iter().map(|column| column.heading())),
    )];
    lines.push(line(
        ["---", "---:", ":-:"]
            .into_iter()
            .chain(columns.iter().map(|_| "---:")),
    ));
    for row in rows {
        let cells = columns.iter().map(|column| cell(row, *column));
        lines.push(line(
            [row.label.clone(), goal(row), mark(row).to_owned()]
                .into_iter()
                .chain(cells),
        ));
    }
    lines.join("\n")
}

fn line<T: AsRef<str>>(cells: impl Iterator<Item = T>) -> String {
    cells.fold("|".to_owned(), |mut line, cell| {
        line.push(' ');
        line.push_str(cell.as_ref());
        line.push_str(" |");
        line
    })
}

fn goal(row: &Row) -> String {
    let sign = if row.unit.is_more_better() {
        "≥"
    } else {
        "≤"
    };
    row.goal.map_or_else(String::new, |goal| {
        format!("{sign} {goal}{}", row.unit.suffix())
    })
}

fn mark(row: &Row) -> &'static str {
    match row.is_goal_met() {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "",
    }
}

fn cell(row: &Row, column: Column) -> String {
    let Some(cell) = row.cells.get(&column) else {
        return "–".to_owned();
    };
    let mut text = figure(row.unit, cell);
    // A goal holds for one size; a cell measured with another size says so.
    if row.cells.values().any(|other| other.batch != cell.batch) && row.unit != Unit::Count {
        let _ = write!(text, " for {}", cell.batch);
    }
    if let Some(ratio) = row.ratio_to(column) {
        let _ = write!(text, " ({}×)", short(ratio));
    }
    text
}

fn figure(unit: Unit, cell: &Cell) -> String {
    match unit {
        Unit::Count => format!("{} of {}", cell.value, cell.batch),
        _ => format!("{}{}", short(cell.value), unit.suffix()),
    }
}

/// Writes three significant figures or so: more would be noise.
fn short(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn notes(report: &Report) -> String {
    let host = &report.host;
    let spreads: Vec<String> = report
        .rows
        .iter()
        .filter_map(|row| {
            let cell = row.cells.get(&Column::Sandyard)?;
            Some(format!(
                "{}.{} ±{:.0} % (n={})",
                row.section.name(),
                row.id,
                cell.spread? * 50.0,
                cell.samples
            ))
        })
        .collect();
    let mut text = format!(
        "Host: Linux {}, {}, {} MiB. Against: {}.\n\
         (N×) is how many times better sandyard is than that column, per sandbox.\n\
         Noise: starting a plain `true` takes {:.2} ms, and its median moves by ±{:.0} % from round to round.\n",
        host.kernel,
        host.processors,
        host.memory_mib,
        if host.rivals.is_empty() {
            "nobody".to_owned()
        } else {
            host.rivals.join(", ")
        },
        report.spawn_millis,
        report.spawn_spread * 50.0,
    );
    if !spreads.is_empty() {
        let _ = writeln!(
            text,
            "Round-to-round movement of sandyard's medians: {}.",
            spreads.join(", ")
        );
    }
    if report.quick {
        text.push_str("Quick run: few samples, so take no 99th percentile from it.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::report::Host;

    #[test]
    fn table_has_goal_mark_and_ratio() {
        let cell = |value, batch| Cell {
            value,
            batch,
            samples: 200,
            spread: Some(0.1),
        };
        let cells = BTreeMap::from([
            (Column::Sandyard, cell(4.0, 100)),
            (Column::DockerApi, cell(160.0, 20)),
        ]);
        let rows = vec![Row {
            cells,
            ..Row::new("burst", "Burst", Unit::Millis, Some(5.0))
        }];
        let host = Host {
            kernel: "6".into(),
            processors: "2 × x".into(),
            memory_mib: 1,
            rivals: vec![],
        };
        let text = markdown(&Report {
            host,
            quick: false,
            spawn_millis: 1.0,
            spawn_spread: 0.2,
            rows,
        });
        assert!(
            text.contains("| Burst | ≤ 5 ms | ✓ | 4.00 ms for 100 | 160 ms for 20 (200×) |"),
            "{text}"
        );
        assert!(text.contains("engine.burst ±5 % (n=200)"), "{text}");
    }
}
