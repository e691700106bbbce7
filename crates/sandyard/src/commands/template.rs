//! `sandyard template`: what sandboxes start from.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sandyard_client::{Client, Template};
use sandyard_core::size::Size;
use tokio::io::AsyncRead;

use super::archive::pack_root;
use super::local;
use super::show::text_of;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Args)]
pub(crate) struct TemplateArgs {
    /// Ask the engine of this data directory instead of a server
    #[arg(long, global = true)]
    local: bool,
    /// Ask for this provider of the server; `sandyard provider ls` lists them
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "local")]
    provider: Option<String>,
    #[command(subcommand)]
    command: TemplateCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum TemplateCommand {
    /// List templates
    Ls {
        #[command(flatten)]
        format: Format,
    },
    /// Make a template from a root tree: a folder or a tar archive (plain, gzip, xz or zstd)
    Import {
        /// Its name
        name: String,
        /// The folder or archive; - reads an archive from standard input
        source: PathBuf,
        #[command(flatten)]
        format: Format,
    },
    /// Remove a template; sandboxes made from it stay whole
    Rm {
        /// Its name
        name: String,
        #[command(flatten)]
        format: Format,
    },
}

/// Does what was asked for.
pub(crate) async fn template(global: &Global, args: TemplateArgs) -> anyhow::Result<ExitCode> {
    if args.local {
        return local::template::template(global, args.command).await;
    }
    let client = global.client()?;
    let provider = args.provider.as_deref();
    match args.command {
        TemplateCommand::Ls { format } => {
            let mut templates = client.templates().await?;
            if let Some(provider) = provider {
                templates.retain(|template| template.provider == provider);
            }
            list(&templates, format)?;
        }
        TemplateCommand::Rm { name, format } => {
            client.remove_template_from(provider, &name).await?;
            print_name(&name, format)?;
        }
        TemplateCommand::Import {
            name,
            source,
            format,
        } => {
            let template = import(&client, provider, &name, &source).await?;
            match format.json {
                true => output::json(&template)?,
                false => output::line(&template.name),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn print_name(name: &str, format: Format) -> anyhow::Result<()> {
    match format.json {
        true => output::json(&serde_json::json!({ "name": name }))?,
        false => output::line(name),
    }
    Ok(())
}

fn list(templates: &[Template], format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json(&templates);
    }
    let row = |template: &Template| {
        let size = template.size_bytes.map(|bytes| Size(bytes).to_string());
        vec![
            Cell::from(&template.name),
            Cell::from(&template.provider),
            Cell::from(size.unwrap_or_default()),
            Cell::from(text_of(&template.other, "note")),
        ]
    };
    let rows: Vec<Vec<Cell>> = templates.iter().map(row).collect();
    output::table(&["NAME", "PROVIDER", "SIZE", "NOTE"], &rows);
    Ok(())
}

async fn import(
    client: &Client,
    provider: Option<&str>,
    name: &str,
    source: &Path,
) -> anyhow::Result<Template> {
    if source.is_dir() {
        let (archive, packed) = pack_root(source)?;
        let template = client
            .import_template_to(provider, name, shown(archive, None))
            .await;
        let packed = packed.finish(source);
        let template = template?;
        if let Err(error) = packed {
            client.remove_template_from(provider, name).await?;
            return Err(error);
        }
        return Ok(template);
    }
    if source.as_os_str() == "-" {
        return Ok(client
            .import_template_to(provider, name, shown(tokio::io::stdin(), None))
            .await?);
    }
    let opening = || format!("opening `{}`", source.display());
    let file = tokio::fs::File::open(source).await.with_context(opening)?;
    let size = file.metadata().await.with_context(opening)?.len();
    Ok(client
        .import_template_to(provider, name, shown(file, Some(size)))
        .await?)
}

/// Shows on terminals how much has been read.
fn shown(
    reader: impl AsyncRead + Send + Unpin + 'static,
    size_bytes: Option<u64>,
) -> impl AsyncRead + Send + 'static {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(size_bytes, target);
    if let Ok(style) = ProgressStyle::with_template("{bytes} sent {binary_bytes_per_sec}") {
        bar.set_style(style);
    }
    bar.wrap_async_read(reader)
}
