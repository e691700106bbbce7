//! Egress: what the gateway costs a download, a connection and a create.

use anyhow::{Context as _, Result};

use super::{Figures, Subjects, in_turns, lasting, median_row, timed, with_live, with_percentile};
use crate::plan::Plan;
use crate::report::{Cell, Column, Row, Unit};
use crate::subject::Live;

/// Size of a response of which only the first byte matters.
const SMALL: usize = 1;

/// Measures downloads from a site on loopback: in a sandbox, through the gateway, and with the same program on the host. And
/// creates, with the gateway and without.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects<'_>) -> Result<Vec<Row>> {
    let (with_egress, makers): (Vec<&dyn Live>, Vec<&dyn Live>) = lasting(subjects)
        .into_iter()
        .partition(|subject| subject.column() == Column::Sandyard);
    let rate = rate_row(plan, &with_egress)?;
    let first_byte = first_byte_row(plan, &with_egress)?;
    let added = added_row(&first_byte);
    Ok(vec![rate, first_byte, added, create_row(plan, &makers)?])
}

fn rate_row(plan: &Plan, subjects: &[&dyn Live]) -> Result<Row> {
    let bytes = plan.file_bytes;
    let label = format!("download of {} MiB through the gateway", bytes >> 20);
    let mut figures = Figures::new();
    with_live(subjects, |ids| {
        for round in 0..=plan.round_count {
            for (subject, id) in subjects.iter().zip(ids) {
                let Some([through_gateway, direct]) = subject.download(id, bytes)? else {
                    continue;
                };
                // The first one warms up.
                if round > 0 {
                    for (column, download) in
                        [(subject.column(), through_gateway), (Column::Host, direct)]
                    {
                        let samples = figures.entry(column).or_default();
                        samples.push_round(vec![download.megabytes_per_second]);
                    }
                }
            }
        }
        Ok(())
    })?;
    let row = Row::new("egress_rate", label, Unit::MegabytesPerSecond, Some(1000.0));
    Ok(with_percentile(row, &figures, 50.0))
}

fn first_byte_row(plan: &Plan, subjects: &[&dyn Live]) -> Result<Row> {
    let [mut figures, direct] = with_live(subjects, |ids| {
        in_turns(plan, subjects, |index, subject| {
            let downloads = subject.download(&ids[index], SMALL)?;
            let millis = downloads.map(|both| both.map(|it| it.first_byte.as_secs_f64() * 1e3));
            millis.context("there is no egress")
        })
    })?;
    let direct = direct.into_values().map(|samples| (Column::Host, samples));
    figures.extend(direct);
    let label = "connect by name → first byte of the answer";
    Ok(median_row("egress_first_byte_p50", label, None, &figures))
}

/// Difference of the two medians of the previous row.
fn added_row(first_byte: &Row) -> Row {
    let label = "the same: added by the gateway, p50";
    let mut row = Row::new("egress_added_p50", label, Unit::Millis, Some(0.3));
    let cells = &first_byte.cells;
    if let (Some(gateway), Some(host)) = (cells.get(&Column::Sandyard), cells.get(&Column::Host)) {
        let value = gateway.value - host.value;
        let cell = Cell {
            value,
            ..gateway.clone()
        };
        row.cells.insert(Column::Sandyard, cell);
    }
    row
}

fn create_row(plan: &Plan, makers: &[&dyn Live]) -> Result<Row> {
    let makers: Vec<&dyn Live> = makers
        .iter()
        .copied()
        .filter(|subject| {
            matches!(
                subject.column(),
                Column::SandyardNoPool | Column::SandyardNoGateway
            )
        })
        .collect();
    let [create] = in_turns(plan, &makers, |_, subject| {
        let (id, millis) = timed(|| subject.create())?;
        subject.delete(&id)?;
        Ok([millis])
    })?;
    let label = "create with and without the gateway";
    Ok(median_row("egress_create_p50", label, None, &create))
}
