//! The escape suite on this host: a hostile program, the probe, runs in three sandboxes.
//!
//! | file | does |
//! |---|---|
//! | `environment` | creates the sandboxes, copies the probe into them and runs it |
//! | `escape` | runs all escape checks as root and as the user, then checks that the agent survived |
//! | `exhaust` | uses up the resources of one sandbox while another one must answer |
//! | `leftovers` | deletes the sandboxes and checks that nothing remains |

mod environment;
mod escape;
mod exhaust;
mod leftovers;

use std::path::Path;

use anyhow::Context as _;
use sandyard_engine::Engine;
use sandyard_probe::{Report, Suite, host};

use crate::output;
use environment::TestEnv;

/// Runs the whole suite. Prints progress to standard error.
pub(crate) async fn run(engine: &Engine, data_dir: &Path) -> anyhow::Result<Suite> {
    let folders = vec![data_dir.to_owned()];
    let planted = tokio::task::spawn_blocking(move || host::plant(&folders))
        .await?
        .context("planting secrets on the host")?;
    output::note("Creating three sandboxes");
    let env = TestEnv::create(engine, data_dir, &planted.plan()).await?;
    let mut reports = escape::run(&env).await?;
    reports.push(exhaust::run(&env).await?);
    output::note("Deleting the sandboxes");
    let mut findings = leftovers::run(env, data_dir).await?;
    findings.extend(planted.verify());
    reports.push(Report {
        label: "the host afterwards".to_owned(),
        identity: None,
        findings,
    });
    Ok(Suite::new(reports))
}
