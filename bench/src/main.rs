//! Prints the performance table: our engine and server beside Docker and bubblewrap, measured in one run.
//!
//! `bench/run` prepares the rivals, calls this program and clears up; see `bench/README.md`.
#![forbid(unsafe_code)]

mod args;
mod host;
mod memory;
mod plan;
mod report;
mod rows;
mod selection;
mod stats;
mod subject;
mod table;
mod waits;

use std::cell::RefCell;
use std::io::Write as _;
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use crate::args::{Args, Field};
use crate::plan::Plan;
use crate::report::{Report, Row, Section};
use crate::rows::group::GROUPS;
use crate::selection::Selection;
use crate::stats::Samples;
use crate::subject::server::Pool;
use crate::subject::{Live, Subject};

fn main() -> Result<()> {
    let args = Args::parse();
    if args.clear_up {
        return args.clear_up();
    }
    if let Some(count) = args.churn {
        return profile(&args, count);
    }
    let plan = Plan::new(args.quick, Selection::parse(&args.only)?);
    let mut results = Results::default();
    let measured = measure(&args, &plan, &mut results);
    // Results from before a failure are still useful.
    print(&args, &plan, results)?;
    measured
}

/// Prints the report and writes it to the requested file.
fn print(args: &Args, plan: &Plan, results: Results) -> Result<()> {
    let Results {
        rows,
        noise,
        rivals,
    } = results;
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

/// Returns a profiler something to look at.
fn profile(args: &Args, count: usize) -> Result<()> {
    const MISSING: &str = "`--churn` needs `--sandyard`";
    if args.http {
        let server = args.server(Pool::Empty)?.context(MISSING)?;
        churn(&server, count, args.waits)
    } else {
        let engine = args.engine()?.context(MISSING)?;
        churn(&engine, count, args.waits)
    }
}

/// Creates sandboxes, runs `true`, deletes them, and reports how long each step took and where it waited.
fn churn(subject: &dyn Live, count: usize, show_waits: bool) -> Result<()> {
    let steps: [RefCell<Vec<f64>>; 3] = Default::default();
    let round = || {
        let (id, create) = rows::timed(|| subject.create())?;
        let ((), exec) = rows::timed(|| subject.exec(&id))?;
        let ((), delete) = rows::timed(|| subject.delete(&id))?;
        for (step, millis) in steps.iter().zip([create, exec, delete]) {
            step.borrow_mut().push(millis);
        }
        anyhow::Ok(())
    };
    // The first ones create what later ones share.
    (0..count.min(5)).try_for_each(|_| round())?;
    for step in &steps {
        step.borrow_mut().clear();
    }
    let start = Instant::now();
    let work = || (0..count).try_for_each(|_| round());
    let (result, waits) = if show_waits {
        waits::watch(work)
    } else {
        (work(), Vec::new())
    };
    result?;
    let each = start.elapsed().as_secs_f64() * 1e3 / count.max(1) as f64;
    let [create, exec, delete] = steps.map(|step| {
        let millis = step.into_inner();
        stats::percentile(millis, 50.0).unwrap_or(0.0)
    });
    let mut text = format!(
        "{count} × {each:.2} ms; medians: create {create:.2} ms, run `true` {exec:.2} ms, delete {delete:.2} ms\n"
    );
    for (stack, times) in waits.iter().take(15) {
        text.push_str(&format!("{times:6}  {stack}\n"));
    }
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("failed to print")
}

/// Results of all sections.
#[derive(Default)]
struct Results {
    rows: Vec<Row>,
    noise: Samples,
    rivals: Vec<String>,
}

/// Runs the sections one after another, so that idle subjects of one do not use memory during the other.
fn measure(args: &Args, plan: &Plan, results: &mut Results) -> Result<()> {
    for section in Section::ALL {
        if plan.selection.has_section(section) {
            let field = args.field(section)?;
            let are_new = |rival: &&String| !results.rivals.contains(rival);
            let rivals: Vec<String> = field.rivals.iter().filter(are_new).cloned().collect();
            results.rivals.extend(rivals);
            measure_section(plan, section, &field, results)?;
        }
    }
    results.noise.push_round(host::spawn_round(plan.samples)?);
    Ok(())
}

/// Runs the groups one after another, and measures the noise of the host before each.
fn measure_section(
    plan: &Plan,
    section: Section,
    field: &Field,
    results: &mut Results,
) -> Result<()> {
    for group in GROUPS {
        // SDKs use HTTP, so the engine section would only have Docker's.
        let is_elsewhere = group.name == "sdk" && section == Section::Engine;
        if is_elsewhere || !plan.selection.has_group(section, &group) {
            continue;
        }
        results.noise.push_round(host::spawn_round(plan.samples)?);
        let (name, start) = (format!("{}.{}", section.name(), group.name), Instant::now());
        let subjects: Vec<&dyn Subject> = field
            .subjects
            .iter()
            .map(Box::as_ref)
            .filter(|subject| subject.is_in(group.name))
            .collect();
        let rows = (group.measure)(plan, &subjects)
            .with_context(|| format!("failed to measure `{name}`"))?;
        let is_wanted = |row: &Row| plan.selection.has_row(section, row.id);
        results.rows.extend(
            rows.into_iter()
                .filter(is_wanted)
                .map(|row| Row { section, ..row }),
        );
        let seconds = start.elapsed().as_secs_f64();
        writeln!(std::io::stderr(), "measured {name} in {seconds:.1} s").ok();
    }
    Ok(())
}
