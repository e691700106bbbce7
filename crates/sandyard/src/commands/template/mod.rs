//! `sandyard template`.

mod credentials;
pub(super) mod pull;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sandyard_client::{Client, Template};
use sandyard_core::size::Size;
use serde_json::json;
use tokio::io::AsyncRead;

use super::archive::pack_root;
use super::lifecycle::{ForceArgs, apply_to_each};
use super::local;
use super::render::field_text;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Args)]
pub(crate) struct TemplateArgs {
    /// Use the engine of this data directory instead of a server
    #[arg(long, global = true)]
    local: bool,
    /// Provider that has the template; `sandyard provider ls` lists providers
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "local")]
    provider: Option<String>,
    #[command(subcommand)]
    command: TemplateCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum TemplateCommand {
    /// List templates
    Ls(Format),
    /// Create a template from a root file system or an image: a directory or a tar archive
    #[command(
        after_help = "The archive may be compressed with gzip, xz or zstd. Images are those that `docker save` and OCI tools write. Only admins can import templates.

Examples:
  templates/debian -o debian.tar.zst
  sandyard template import debian debian.tar.zst
  docker save python:3.13 | sandyard template import py -"
    )]
    Import {
        /// Name of the template
        name: String,
        /// Directory or archive; - reads an archive from standard input
        source: PathBuf,
        #[command(flatten)]
        format: Format,
    },
    /// Create a template from an image of a registry, such as docker.io, ghcr.io or your own
    #[command(
        after_help = "Accounts are those of `docker login`. Registries at loopback addresses speak plain HTTP. Only admins can create templates.

Examples:
  sandyard template pull python:3.13-slim
  sandyard create --template python-3.13-slim
  sandyard template pull ghcr.io/acme/app:1.2 app"
    )]
    Pull {
        /// Image, with a tag or digest
        image: String,
        /// Name of the template [default: name and tag of the image, like python-3.13-slim]
        name: Option<String>,
        /// Use HTTP without TLS
        #[arg(long)]
        plain_http: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Delete templates and snapshots
    #[command(
        after_help = "Sandboxes that were created from a template keep working, with and without --force. The default template cannot be \
deleted."
    )]
    Rm {
        /// Name of the template
        #[arg(required = true, value_name = "NAME")]
        name: Vec<String>,
        #[command(flatten)]
        force: ForceArgs,
        #[command(flatten)]
        format: Format,
    },
}

/// Lists, imports or deletes templates.
pub(crate) async fn template(global: &Global, args: TemplateArgs) -> anyhow::Result<ExitCode> {
    if args.local {
        return local::template::template(global, args.command).await;
    }
    let client = global.client()?;
    let provider = args.provider.as_deref();
    match args.command {
        TemplateCommand::Ls(format) => {
            let mut templates = client.templates().await?;
            if let Some(provider) = provider {
                templates.retain(|template| template.provider == provider);
            }
            let headings = ["NAME", "SIZE", "CREATED", "PROVIDER", "NOTE"];
            format.print_fitted(&headings, 4, &templates, |template| {
                let size = template.size_bytes.map(|bytes| Size(bytes).readable());
                vec![
                    Cell::from(&template.name),
                    Cell::from(size.unwrap_or_default()),
                    Cell::from(output::ago(&field_text(&template.other, "created_at"))),
                    Cell::from(&template.provider),
                    Cell::from(field_text(&template.other, "note")),
                ]
            })
        }
        TemplateCommand::Rm {
            name,
            force,
            format,
        } => {
            apply_to_each(&name, format, async |name| {
                force.outcome(client.remove_template_from(provider, name).await)?;
                Ok((json!({ "name": name }), name.to_owned()))
            })
            .await
        }
        TemplateCommand::Pull {
            image,
            name,
            plain_http,
            format,
        } => {
            let template = pull_image(&client, provider, &image, name, plain_http).await?;
            format.print(&template, &template.name)
        }
        TemplateCommand::Import {
            name,
            source,
            format,
        } => {
            let template = import(&client, provider, &name, &source).await?;
            format.print(&template, &template.name)
        }
    }
}

/// Sends an image from its registry to the server.
async fn pull_image(
    client: &Client,
    provider: Option<&str>,
    image: &str,
    name: Option<String>,
    is_plain: bool,
) -> anyhow::Result<Template> {
    let (registry, image) = pull::find(image, is_plain).await?;
    let name = name.unwrap_or_else(|| image.template_name());
    let size = image.size_bytes();
    let (archive, download) = image.archive(registry);
    let archive = with_progress(archive, Some(size));
    let imported = client.import_template_to(provider, &name, archive).await;
    pull::outcome(imported, download).await
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
            .import_template_to(provider, name, with_progress(archive, None))
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
            .import_template_to(provider, name, with_progress(tokio::io::stdin(), None))
            .await?);
    }
    let opening = || format!("opening `{}`", source.display());
    let file = tokio::fs::File::open(source).await.with_context(opening)?;
    let size = file.metadata().await.with_context(opening)?.len();
    Ok(client
        .import_template_to(provider, name, with_progress(file, Some(size)))
        .await?)
}

/// Shows on a terminal how much of the archive was sent.
fn with_progress(
    reader: impl AsyncRead + Send + Unpin + 'static,
    size_bytes: Option<u64>,
) -> impl AsyncRead + Send + 'static {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(size_bytes, target);
    let template = match size_bytes {
        Some(_) => "{percent} % of {total_bytes} sent {binary_bytes_per_sec} {eta}",
        None => "{bytes} sent {binary_bytes_per_sec}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.wrap_async_read(reader)
}
