//! `sandyard config`.

use std::process::ExitCode;

use clap::Subcommand;
use sandyard_config::{Problem, Problems};
use serde_json::json;

use super::settings::SettingFlags;
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the settings that `sandyard serve` would use and report all errors
    Check {
        #[command(flatten)]
        settings: SettingFlags,
        #[command(flatten)]
        format: Format,
    },
    /// Show all settings in effect and where each one comes from; secrets are hidden
    Show {
        #[command(flatten)]
        settings: SettingFlags,
        #[command(flatten)]
        format: Format,
    },
    /// Print an example configuration file with every setting
    Example,
}

/// Checks or prints settings. `check` exits with 1 if a setting is wrong.
pub(crate) fn config(global: &Global, command: &ConfigCommand) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Check { settings, format } => check(global, settings, *format),
        ConfigCommand::Show { settings, format } => {
            let loaded = settings.load(global)?;
            let values = &loaded.settings.values;
            format.print(&values.to_json(), values.to_table().trim_end())
        }
        ConfigCommand::Example => {
            let table = sandyard_providers::Registry::BUILTIN.table();
            output::line(sandyard_config::example_toml(&table).trim_end());
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check(global: &Global, settings: &SettingFlags, format: Format) -> anyhow::Result<ExitCode> {
    let (errors, warnings) = match settings.load(global) {
        Ok(loaded) => (Vec::new(), loaded.warnings),
        Err(error) => match error.downcast::<Problems>() {
            Ok(problems) => (problems.errors, problems.warnings),
            Err(error) => return Err(error),
        },
    };
    if format.json {
        let texts = |problems: &[Problem]| -> Vec<String> {
            problems.iter().map(ToString::to_string).collect()
        };
        output::json(&json!({ "errors": texts(&errors), "warnings": texts(&warnings) }))?;
    } else {
        for warning in &warnings {
            output::note(format!("warning: {warning}"));
        }
        for error in &errors {
            output::note(format!("error: {error}"));
        }
        if errors.is_empty() {
            output::line("the settings are valid");
        }
    }
    Ok(match errors.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
