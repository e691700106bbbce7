//! The layers, strongest first: flags, environment, `.env`, configuration file, default.
//!
//! An empty text counts as not said, in every layer: that is how platforms pass on what nobody filled in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sandyard_core::percent;

use super::{Report, unknown, variables};
use crate::problem::Problem;
use crate::setting::Setting;
use crate::source::config_file::{self, ConfigFile};
use crate::source::env_file::{self, EnvFile};
use crate::source::{Origin, Sources};
use crate::values::Values;

/// What one layer says: text and origin by key.
pub(super) type Layer = BTreeMap<&'static str, (String, Origin)>;

/// Reads all layers. Returns what is in force, and the configuration file that was read.
pub(super) fn gather(sources: &Sources, report: &mut Report) -> (Values, Option<PathBuf>) {
    let env_path = sources.working_dir.join(".env");
    let env_file = env_file::read(&env_path);
    report.warnings.extend(env_file.warnings.iter().cloned());
    let mut layers = vec![
        flags(sources, report),
        variables::environment(sources, report),
        variables::env_file(sources, &env_file, &env_path, report),
    ];
    let data_dir = find_value(&layers, "data_dir").map_or_else(
        || sources.default_data_dir.clone(),
        |(text, _)| PathBuf::from(text),
    );
    let data_dir = sources.working_dir.join(data_dir);
    let found = find_config_file(sources, &env_file, &data_dir, report);
    let path = found.map(|(path, file)| {
        layers.push(file_layer(sources, file, report));
        path
    });
    (values(&layers, sources, report), path)
}

fn flags(sources: &Sources, report: &mut Report) -> Layer {
    let mut layer = Layer::new();
    for (key, text) in &sources.flags {
        match sources.table.setting(key) {
            Some(setting) => {
                let flag = setting
                    .flag
                    .map_or_else(|| format!("for {key}"), str::to_owned);
                layer.insert(setting.key, (text.clone(), Origin::Flag(flag)));
            }
            None => report.errors.push(unknown(
                Problem::new(format!("there is no setting `{key}`")),
                key,
                sources.table.all().map(|setting| setting.key.to_owned()),
            )),
        }
    }
    layer
}

/// Finds the one configuration file: the named one, else that of the data directory, else that of the system.
fn find_config_file(
    sources: &Sources,
    env_file: &EnvFile,
    data_dir: &Path,
    report: &mut Report,
) -> Option<(PathBuf, ConfigFile)> {
    const VARIABLE: &str = "SANDYARD_CONFIG";
    let of_env_file = || env_file.variables.get(VARIABLE).map(|(text, _)| text);
    let of_environment = sources
        .environment
        .get(VARIABLE)
        .filter(|text| !text.is_empty());
    let named = sources.config_file.clone().or_else(|| {
        let text = of_environment.or_else(of_env_file)?;
        (!text.is_empty()).then(|| PathBuf::from(text))
    });
    if let Some(path) = named {
        let path = sources.working_dir.join(path);
        let file = config_file::read(&sources.table, &path);
        if file.is_none() {
            let message = format!("there is no configuration file `{}`", path.display());
            report.errors.push(Problem::new(message));
        }
        return Some((path, file?));
    }
    [
        data_dir.join(Sources::CONFIG_FILE_NAME),
        sources.system_config_file.clone(),
    ]
    .into_iter()
    .find_map(|path| {
        let file = config_file::read(&sources.table, &path)?;
        Some((path, file))
    })
}

/// The file belongs to this server alone, so all its errors are reported, even where a stronger layer hides the value.
fn file_layer(sources: &Sources, file: ConfigFile, report: &mut Report) -> Layer {
    let mut file_report = Report {
        errors: file.errors,
        warnings: file.warnings,
    };
    let mut scratch = Values::new(&sources.table, &sources.working_dir);
    for (key, (text, origin)) in &file.entries {
        if let Some(setting) = sources.table.setting(key) {
            insert(
                &mut scratch,
                setting,
                text,
                origin.clone(),
                &mut file_report,
            );
        }
    }
    file_report.errors.sort_by_key(Problem::line);
    report.errors.append(&mut file_report.errors);
    report.warnings.append(&mut file_report.warnings);
    file.entries
}

fn values(layers: &[Layer], sources: &Sources, report: &mut Report) -> Values {
    let mut values = Values::new(&sources.table, &sources.working_dir);
    for setting in sources.table.all() {
        match find_value(layers, setting.key) {
            // Errors in the file were reported when it was read.
            Some((text, origin @ Origin::File { .. })) => {
                let _ = values.insert(setting, &text, origin);
            }
            Some((text, origin)) => insert(&mut values, setting, &text, origin, report),
            None => insert(
                &mut values,
                setting,
                setting.default,
                Origin::Default,
                report,
            ),
        }
    }
    fill_in(&mut values, sources, report);
    values
}

/// Defaults that depend on the host or on other settings.
fn fill_in(values: &mut Values, sources: &Sources, report: &mut Report) {
    let mut fill = |key: &str, make: &dyn Fn(&Values) -> String| {
        let setting = sources.table.setting(key);
        let setting = setting.filter(|_| !values.is_given(key));
        if let Some(setting) = setting {
            let text = make(values);
            insert(values, setting, &text, Origin::Default, report);
        }
    };
    fill("data_dir", &|_| {
        sources.default_data_dir.display().to_string()
    });
    fill("database.url", &|values| {
        let data_dir = values.path("data_dir").unwrap_or_default();
        let file = data_dir.join("sandyard.db");
        format!(
            "sqlite://{}",
            percent::encode_path(&file.display().to_string())
        )
    });
}

fn insert(
    values: &mut Values,
    setting: &'static Setting,
    text: &str,
    origin: Origin,
    report: &mut Report,
) {
    if let Err(problem) = values.insert(setting, text, origin.clone()) {
        let value = match setting.secret {
            true => "the value".to_owned(),
            false => format!("`{}`", setting.mask(text)),
        };
        let problem = Problem::new(format!("{value} {problem}")).about(setting.key);
        report.errors.push(problem.at(origin));
    }
}

fn find_value(layers: &[Layer], key: &str) -> Option<(String, Origin)> {
    let mut found = layers.iter().filter_map(|layer| layer.get(key));
    found.find(|(text, _)| !text.is_empty()).cloned()
}
