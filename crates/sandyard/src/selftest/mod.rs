//! The escape suite against this very host: three sandboxes, a hostile program in them, and a look at what it reached.
//!
//! | file | who |
//! |---|---|
//! | `yard` | makes the sandboxes, carries the probe in, runs it, removes everything |
//! | `escape` | every way out, as root and as the user; then whether the agent still lives |
//! | `exhaust` | using things up in one sandbox while another must answer |
//! | `leftovers` | what is still there when all is deleted |

mod escape;
mod exhaust;
mod leftovers;
mod yard;

use std::path::Path;

use anyhow::Context as _;
use sandyard_engine::Engine;
use sandyard_probe::{Report, Suite, host};

use crate::output;
use yard::Yard;

/// Runs the whole suite. Progress goes to standard error.
pub(crate) async fn run(engine: &Engine, data_dir: &Path) -> anyhow::Result<Suite> {
    let places = vec![data_dir.to_owned()];
    let planted = tokio::task::spawn_blocking(move || host::plant(&places))
        .await?
        .context("planting secrets")?;
    output::note("Making three sandboxes");
    let yard = Yard::make(engine, data_dir, &planted.plan()).await?;
    let mut reports = escape::run(&yard).await?;
    reports.push(exhaust::run(&yard).await?);
    output::note("Removing the sandboxes");
    let mut findings = leftovers::run(yard, data_dir).await?;
    findings.extend(planted.verify());
    reports.push(Report {
        label: "the host afterwards".to_owned(),
        identity: None,
        findings,
    });
    Ok(Suite::new(reports))
}
