//! Settings said by variables, of the environment and of `.env` alike.

use std::path::Path;

use super::layers::Layer;
use super::{Report, unknown};
use crate::problem::Problem;
use crate::setting::Setting;
use crate::source::env_file::EnvFile;
use crate::source::{Origin, Sources};
use crate::table::{OTHER_VARIABLES, Table};

pub(super) fn environment(sources: &Sources, report: &mut Report) -> Layer {
    for name in sources.environment.keys() {
        warn_if_unknown(&sources.table, name, Origin::Variable(name.clone()), report);
    }
    variables(&sources.table, report, |name| {
        let text = sources.environment.get(name)?;
        Some((text.clone(), Origin::Variable(name.to_owned())))
    })
}

pub(super) fn env_file(
    sources: &Sources,
    file: &EnvFile,
    path: &Path,
    report: &mut Report,
) -> Layer {
    let origin = |name: &str, line| Origin::EnvFile {
        path: path.to_owned(),
        line,
        name: name.to_owned(),
    };
    for (name, (_, line)) in &file.variables {
        warn_if_unknown(&sources.table, name, origin(name, *line), report);
    }
    variables(&sources.table, report, |name| {
        let (text, line) = file.variables.get(name)?;
        Some((text.clone(), origin(name, *line)))
    })
}

/// Looks every setting's variables up, strongest first.
fn variables(
    table: &Table,
    report: &mut Report,
    look_up: impl Fn(&str) -> Option<(String, Origin)>,
) -> Layer {
    let mut layer = Layer::new();
    for setting in table.all() {
        let found = setting.variables().into_iter().find_map(|name| {
            let (text, origin) = look_up(&name).filter(|(text, _)| !text.is_empty())?;
            if setting.kind.is_port() && is_service_link(&text) {
                let message = "is ignored: it describes a service of the container platform";
                report.warnings.push(Problem::new(message).at(origin));
                return None;
            }
            if is_somebody_elses_host(setting, &name, &text) {
                let message = "is ignored: it names no address to listen on";
                let hint = "SANDYARD_SERVER_HOST says where to listen";
                report
                    .warnings
                    .push(Problem::new(message).at(origin).hint(hint));
                return None;
            }
            Some((text, origin))
        });
        if let Some(found) = found {
            layer.insert(setting.key, found);
        }
    }
    layer
}

/// Kubernetes and Docker links set `REDIS_PORT=tcp://10.0.0.1:6379` for a service called `redis`.
fn is_service_link(text: &str) -> bool {
    text.starts_with("tcp://") || text.starts_with("udp://")
}

/// Compilers of conda and some shells set `HOST` to what they build for, like `x86_64-conda-linux-gnu`.
fn is_somebody_elses_host(setting: &Setting, name: &str, text: &str) -> bool {
    name == "HOST" && setting.kind.check(text, &[]).is_err()
}

/// Warns about a variable with our prefix that means nothing to us: probably a typing mistake.
fn warn_if_unknown(table: &Table, name: &str, origin: Origin, report: &mut Report) {
    // A service called `sandyard` makes the platform set the latter two; tests have variables of their own.
    const NOT_OURS: [&str; 3] = ["SANDYARD_TEST_", "SANDYARD_SERVICE_", "SANDYARD_PORT"];
    let is_known = OTHER_VARIABLES.iter().any(|(other, _)| *other == name)
        || table
            .all()
            .any(|setting| setting.variables().iter().any(|known| known == name));
    if !name.starts_with("SANDYARD_")
        || is_known
        || NOT_OURS.iter().any(|prefix| name.starts_with(prefix))
    {
        return;
    }
    let names = table
        .all()
        .flat_map(Setting::variables)
        .filter(|name| name.starts_with("SANDYARD_"));
    let problem = Problem::new("is ignored: there is no such variable").at(origin);
    report.warnings.push(unknown(problem, name, names));
}
