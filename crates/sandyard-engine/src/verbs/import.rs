//! Makes templates from archives, lists and removes them.

use std::io::Read;
use std::path::PathBuf;

use sandyard_template::{ImportOptions, SweepOptions, Template};

use super::list;
use crate::context::Context;
use crate::error::{EngineError, ErrorKind, Result};
use crate::record::Record;
use crate::spec::DEFAULT_TEMPLATE;

/// Unpacks an archive into a new template.
pub(crate) fn import(ctx: &Context, name: &str, archive: impl Read) -> Result<Template> {
    let options = ImportOptions {
        shim_program: Some(ctx.program.clone()),
        ..ImportOptions::new(ctx.owners())
    };
    let imported = ctx.templates.import_tar(name, archive, options);
    Ok(imported
        .map_err(|error| EngineError::template(format!("importing template `{name}`"), &error))?
        .template)
}

/// Lists templates by name.
pub(crate) fn templates(ctx: &Context) -> Result<Vec<Template>> {
    let mut all = ctx
        .templates
        .list()
        .map_err(|error| EngineError::template("listing templates", &error))?;
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// Removes a template by name. Sandboxes made from it keep its layers.
pub(crate) fn remove(ctx: &Context, name: &str) -> Result<()> {
    if name == DEFAULT_TEMPLATE {
        let message = format!(
            "template `{name}` cannot be removed: it is made from this host whenever it is needed"
        );
        return Err(EngineError::new(ErrorKind::Invalid, message)
            .hint("to use another template, pass `--template`"));
    }
    let removed = ctx.templates.remove(name);
    if removed
        .map_err(|error| EngineError::template(format!("removing template `{name}`"), &error))?
    {
        return Ok(());
    }
    Err(not_found(name))
}

/// The error for a template that does not exist.
pub(super) fn not_found(name: &str) -> EngineError {
    EngineError::new(ErrorKind::NotFound, format!("no template `{name}`"))
        .hint("list templates with `sandyard template ls`")
}

/// Deletes layers that neither a template nor a sandbox uses.
pub(crate) fn sweep_layers(ctx: &Context) -> Result<()> {
    let options = SweepOptions {
        in_use: layers_in_use(ctx)?,
        ..SweepOptions::default()
    };
    ctx.templates
        .sweep(&options)
        .map_err(|error| EngineError::template("sweeping layers", &error))?;
    Ok(())
}

fn layers_in_use(ctx: &Context) -> Result<Vec<PathBuf>> {
    let mut layers = Vec::new();
    for id in list::ids(ctx)? {
        // A record that cannot be read fails the sweep: its sandbox might use any layer.
        if let Some(record) = Record::read(&ctx.data.sandbox(&id))? {
            layers.extend(
                record
                    .template
                    .parts
                    .into_iter()
                    .flat_map(|part| part.layers),
            );
        }
    }
    Ok(layers)
}
