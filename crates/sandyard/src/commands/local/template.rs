//! Lists, imports and deletes templates of this data directory's engine.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use sandyard_core::size::Size;
use sandyard_engine::Engine;
use sandyard_template::Template;
use serde_json::json;

use super::super::archive::pack_root;
use super::super::lifecycle::apply_to_each;
use super::super::template::{TemplateCommand, pull};
use crate::global::Global;
use crate::output::Cell;

/// Lists, imports or deletes templates.
pub(in crate::commands) async fn template(
    global: &Global,
    command: TemplateCommand,
) -> anyhow::Result<ExitCode> {
    let engine = global.engine().await?;
    match command {
        TemplateCommand::Ls(format) => {
            let templates = engine.templates().await?;
            format.print_table(&["NAME", "SIZE", "LAYERS"], &templates, |template| {
                let layers = template.parts.iter().map(|part| part.layers.len()).max();
                let size = template.size_bytes.map(|bytes| Size(bytes).readable());
                vec![
                    Cell::from(&template.name),
                    Cell::from(size.unwrap_or_default()),
                    Cell::from(layers.unwrap_or(0).to_string()),
                ]
            })
        }
        TemplateCommand::Rm {
            name,
            force,
            format,
        } => {
            let existing = engine.templates().await?;
            apply_to_each(&name, format, async |name| {
                if !force.is_set() || existing.iter().any(|template| template.name == name) {
                    engine.remove_template(name).await?;
                }
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
            let (registry, image) = pull::find(&image, plain_http).await?;
            let name = name.unwrap_or_else(|| image.template_name());
            let (archive, download) = image.archive(registry);
            let template = engine.import_template(&name, archive, show_progress).await;
            clear_progress();
            let template = pull::outcome(template, download).await?;
            format.print(&template, &template.name)
        }
        TemplateCommand::Import {
            name,
            source,
            format,
        } => {
            let template = import(&engine, &name, &source).await;
            clear_progress();
            let template = template?;
            format.print(&template, &template.name)
        }
    }
}

async fn import(engine: &Engine, name: &str, source: &Path) -> anyhow::Result<Template> {
    if source.as_os_str() == "-" {
        return Ok(engine
            .import_template(name, tokio::io::stdin(), show_progress)
            .await?);
    }
    if source.is_dir() {
        // A directory is sent as an archive, so that the launcher reads nothing that the caller could not read.
        let (archive, packed) = pack_root(source)?;
        let template = engine.import_template(name, archive, show_progress).await;
        let packed = packed.finish(source);
        let template = template?;
        if let Err(error) = packed {
            engine.remove_template(name).await?;
            return Err(error);
        }
        return Ok(template);
    }
    let file = tokio::fs::File::open(source)
        .await
        .with_context(|| format!("opening `{}`", source.display()))?;
    Ok(engine.import_template(name, file, show_progress).await?)
}

fn show_progress(bytes_sent: u64) {
    if std::io::stderr().is_terminal() {
        let size = Size(bytes_sent >> 20 << 20).to_string();
        let _ = write!(std::io::stderr(), "\r{size:>8} sent");
    }
}

/// Clears the progress line.
fn clear_progress() {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}
