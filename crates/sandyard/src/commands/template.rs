//! `sandyard template`: what sandboxes start from.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use sandyard_core::size::Size;
use sandyard_template::Template;

use crate::cli::Global;
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum TemplateCommand {
    /// List templates
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a template from a root tree: a folder or a tar archive (plain, gzip, xz or zstd)
    Import {
        /// Its name
        name: String,
        /// The folder or archive; - reads an archive from standard input
        source: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a template; sandboxes made from it stay whole
    Rm {
        /// Its name
        name: String,
    },
}

/// Does what was asked for.
pub(crate) async fn template(
    global: &Global,
    command: TemplateCommand,
) -> anyhow::Result<ExitCode> {
    let engine = global.engine().await?;
    match command {
        TemplateCommand::Ls { json: true } => output::json(&engine.templates().await?)?,
        TemplateCommand::Ls { json: false } => list(&engine.templates().await?),
        TemplateCommand::Rm { name } => {
            engine.remove_template(&name).await?;
            output::line(name);
        }
        TemplateCommand::Import { name, source, json } => {
            let template = import(&engine, &name, &source).await;
            clear_progress();
            let template = template?;
            if json {
                output::json(&template)?;
            } else {
                output::line(&template.name);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(templates: &[Template]) {
    let rows: Vec<Vec<String>> = templates
        .iter()
        .map(|template| {
            let layers = template
                .parts
                .iter()
                .map(|part| part.layers.len())
                .max()
                .unwrap_or(0);
            vec![
                template.name.clone(),
                template.parts.len().to_string(),
                layers.to_string(),
            ]
        })
        .collect();
    output::table(&["NAME", "PARTS", "LAYERS"], &rows);
}

async fn import(
    engine: &sandyard_engine::Engine,
    name: &str,
    source: &PathBuf,
) -> anyhow::Result<Template> {
    let progress = |sent: u64| {
        if std::io::stderr().is_terminal() {
            eprint_progress(sent);
        }
    };
    if source.as_os_str() == "-" {
        return Ok(engine
            .import_template(name, tokio::io::stdin(), progress)
            .await?);
    }
    if source.is_dir() {
        return import_folder(engine, name, source, progress).await;
    }
    let file = tokio::fs::File::open(source)
        .await
        .with_context(|| format!("opening `{}`", source.display()))?;
    Ok(engine.import_template(name, file, progress).await?)
}

/// A folder travels as an archive, so that the launcher reads nothing that the caller could not.
async fn import_folder(
    engine: &sandyard_engine::Engine,
    name: &str,
    folder: &PathBuf,
    progress: impl FnMut(u64),
) -> anyhow::Result<Template> {
    let mut child = std::process::Command::new("tar")
        .args([
            "--create",
            "--numeric-owner",
            "--xattrs",
            "--one-file-system",
            "--file=-",
            "--directory",
        ])
        .arg(folder)
        .arg(".")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting tar")?;
    let pipe = child.stdout.take().context("reading from tar")?;
    let pipe = tokio::fs::File::from_std(std::os::fd::OwnedFd::from(pipe).into());
    let template = engine.import_template(name, pipe, progress).await;
    let status = child.wait().context("waiting for tar")?;
    let template = template?;
    if !status.success() {
        engine.remove_template(name).await?;
        bail!("tar could not read all of `{}`", folder.display());
    }
    Ok(template)
}

/// Makes room for what comes after the last progress line: the result, or an error.
fn clear_progress() {
    use std::io::Write;
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}

fn eprint_progress(sent: u64) {
    use std::io::Write;
    let _ = write!(
        std::io::stderr(),
        "\r{:>8} sent",
        Size(sent >> 20 << 20).to_string()
    );
}
