//! The sources laid over one another, and everything that is wrong with them at once.

mod checks;
mod layers;
mod variables;

use std::path::PathBuf;

use crate::nearest::nearest;
use crate::problem::{Problem, Problems};
use crate::settings::Settings;
use crate::source::Sources;

/// Settings that can be used, and how they came about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Loaded {
    /// What the server works with.
    pub settings: Settings,
    /// Problems that do not prevent the start. Each gets a line in the log.
    pub warnings: Vec<Problem>,
    /// The configuration file that was read, if any.
    pub config_file: Option<PathBuf>,
}

/// Reads all sources and checks everything, [`check_binding`](crate::check_binding) included.
///
/// Reads the `.env` file and the configuration file, and looks whether named files are there; changes nothing.
///
/// # Errors
/// All problems at once, each with the place it comes from.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    let mut report = Report::default();
    let (values, config_file) = layers::gather(sources, &mut report);
    let settings = Settings::build(values);
    checks::check(&settings, &sources.table, &mut report);
    match report.errors.is_empty() {
        true => Ok(Loaded {
            settings,
            warnings: report.warnings,
            config_file,
        }),
        false => Err(Problems {
            errors: report.errors,
            warnings: report.warnings,
        }),
    }
}

/// What was found so far.
#[derive(Default)]
struct Report {
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

/// Adds the most similar name as a hint.
fn unknown(problem: Problem, input: &str, names: impl Iterator<Item = String>) -> Problem {
    let names: Vec<String> = names.collect();
    match nearest(input, names.iter().map(String::as_str)) {
        Some(name) => problem.hint(format!("did you mean `{name}`?")),
        None => problem,
    }
}
