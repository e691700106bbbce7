//! The tool server: time to the first result, time of a call, and memory.

use anyhow::{Context as _, Result};

use super::{Figures, Subjects, in_turns, lasting, median_row, timed, with_live, with_percentile};
use crate::plan::Plan;
use crate::report::{Column, Row, Unit};
use crate::subject::Live;

/// Measures subjects with a tool server: the server with its default pool.
pub(crate) fn measure(plan: &Plan, subjects: &Subjects<'_>) -> Result<Vec<Row>> {
    let with_tools: Vec<&dyn Live> = lasting(subjects)
        .into_iter()
        .filter(|subject| subject.column() == Column::Sandyard && subject.has_tools())
        .collect();
    let first = first_row(plan, &with_tools)?;
    let [read, used] = used_rows(plan, &with_tools)?;
    Ok(vec![first, read, used])
}

fn first_row(plan: &Plan, subjects: &[&dyn Live]) -> Result<Row> {
    let [first] = in_turns(plan, subjects, |_, subject| {
        let (id, millis) = timed(|| {
            let id = subject.create()?;
            subject.first_tool_call(&id)?;
            Ok(id)
        })?;
        subject.delete(&id)?;
        Ok([millis])
    })?;
    let label = "create → first answer of a tool, over MCP";
    Ok(median_row("tools_first_p50", label, Some(60.0), &first))
}

fn used_rows(plan: &Plan, subjects: &[&dyn Live]) -> Result<[Row; 2]> {
    let mut memory = Figures::new();
    let [read] = with_live(subjects, |ids| {
        let sessions = subjects.iter().zip(ids);
        let sessions = sessions.map(|(subject, id)| subject.first_tool_call(id));
        let sessions = sessions.collect::<Result<Vec<_>>>()?;
        let read = in_turns(plan, subjects, |index, subject| {
            let ((), millis) = timed(|| subject.read_by_tool(&ids[index], &sessions[index]))?;
            Ok([millis])
        })?;
        for (subject, id) in subjects.iter().zip(ids) {
            let bytes = subject.tools_memory(id)?;
            let bytes = u32::try_from(bytes >> 10).context("more memory than there is")?;
            let samples = memory.entry(subject.column()).or_default();
            samples.push_round(vec![f64::from(bytes) / 1024.0]);
        }
        Ok(read)
    })?;
    let label = "Read of a small file, over MCP";
    let read = median_row("tools_read_p50", label, Some(2.0), &read);
    let label = "memory of the tool server after that (PSS)".to_owned();
    let row = Row::new("tools_memory", label, Unit::Mebibytes, Some(15.0));
    Ok([read, with_percentile(row, &memory, 50.0)])
}
