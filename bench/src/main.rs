//! Prints the performance table: our engine beside Docker and bubblewrap, measured in one run.
//!
//! `bench/run` prepares the rivals, calls this program and clears up; see `bench/README.md`.
#![forbid(unsafe_code)]

mod args;
mod host;
mod memory;
mod plan;
mod report;
mod rows;
mod stats;
mod subject;
mod table;
mod waits;

use std::io::Write as _;
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use crate::args::{Args, Field};
use crate::plan::Plan;
use crate::report::{Report, Row};
use crate::rows::Subjects;
use crate::stats::Samples;
use crate::subject::Live as _;
use crate::subject::engine::OwnEngine;

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(count) = args.churn {
        let engine = args.engine()?.context("`--churn` needs `--sandyard`")?;
        return churn(&engine, count, args.waits);
    }
    let plan = Plan::new(args.quick, &args.only)?;
    let Field { subjects, rivals } = args.field()?;
    let (rows, noise) = measure(&plan, &subjects)?;
    let report = Report {
        host: host::describe(rivals)?,
        quick: plan.quick,
        spawn_millis: noise.percentile(50.0).unwrap_or(0.0),
        spawn_spread: noise.spread().unwrap_or(0.0),
        rows,
    };
    let json =
        serde_json::to_string_pretty(&report).context("failed to write the report as JSON")?;
    if let Some(path) = &args.save {
        std::fs::write(path, &json)
            .with_context(|| format!("failed to write `{}`", path.display()))?;
    }
    let text = if args.json {
        format!("{json}\n")
    } else {
        table::markdown(&report)
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("failed to print the table")
}

/// Creates and deletes, and says what one round took and where it waited: something for a profiler to look at.
fn churn(engine: &OwnEngine, count: usize, show_waits: bool) -> Result<()> {
    let round = || engine.create().and_then(|id| engine.delete(&id));
    // The first ones make what all later ones share.
    (0..count.min(5)).try_for_each(|_| round())?;
    let start = Instant::now();
    let work = || (0..count).try_for_each(|_| round());
    let (result, waits) = if show_waits {
        waits::watch(work)
    } else {
        (work(), Vec::new())
    };
    result?;
    let each = start.elapsed().as_secs_f64() * 1e3 / count.max(1) as f64;
    let mut text = format!("{count} × create and delete: {each:.2} ms each\n");
    for (stack, times) in waits.iter().take(15) {
        text.push_str(&format!("{times:6}  {stack}\n"));
    }
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("failed to print")
}

/// Runs the groups one after another, with a look at the host's own noise before each and after the last.
fn measure(plan: &Plan, subjects: &Subjects) -> Result<(Vec<Row>, Samples)> {
    type Group = fn(&Plan, &Subjects) -> Result<Vec<Row>>;
    let groups: [(&str, Group); plan::GROUPS.len()] = [
        ("start", rows::start::measure),
        ("pool", rows::pool::measure),
        ("output", rows::output::measure),
        ("exec", rows::exec::measure),
        ("freeze", rows::freeze::measure),
        ("burst", rows::burst::measure),
        ("crowd", rows::crowd::measure),
        ("files", rows::files::measure),
    ];
    let (mut rows, mut noise) = (Vec::new(), Samples::default());
    for (name, group) in groups.into_iter().filter(|(name, _)| plan.has(name)) {
        noise.push_round(host::spawn_round(plan.samples)?);
        let start = Instant::now();
        rows.extend(group(plan, subjects).with_context(|| format!("failed to measure `{name}`"))?);
        writeln!(
            std::io::stderr(),
            "measured {name} in {:.1} s",
            start.elapsed().as_secs_f64()
        )
        .ok();
    }
    noise.push_round(host::spawn_round(plan.samples)?);
    Ok((rows, noise))
}
