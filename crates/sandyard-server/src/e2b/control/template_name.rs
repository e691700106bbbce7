//! The template that a text names.
//!
//! E2B writes templates as `name`, `team/name` and `name:tag`. The team is ignored: a caller finds its own templates and public ones.
//! But if it is the name of a provider, it selects that provider: `docker/python:3.12`. Templates have no tags yet, except where the
//! provider's own have.

use sandyard_core::ErrorKind;
use sandyard_service::{ServiceError, ServiceResult, Snapshot};

use crate::app::App;
use crate::call::Call;

/// Tags that are ignored.
const TAGS: [&str; 2] = [":default", ":latest"];
/// E2B's name of the default template.
pub(crate) const BASE: &str = "base";
/// Templates that the SDKs use by default, and the folder of the source tree that each is built from.
const BUILT: [(&str, &str); 2] = [
    ("code-interpreter-v1", "templates/code-interpreter"),
    ("mcp-gateway", "templates/mcp-gateway"),
];
/// Longest name, in bytes.
const MAX_LEN: usize = 512;

/// The name without the team and an ignored tag.
pub(crate) fn plain(text: &str) -> &str {
    without_tag(text.rsplit('/').next().unwrap_or(text))
}

/// Checks the name of a template.
fn check(text: &str) -> ServiceResult<&str> {
    let name = plain(text);
    checked(text, name)
}

fn checked<'t>(text: &str, name: &'t str) -> ServiceResult<&'t str> {
    if text.len() <= MAX_LEN && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Ok(name);
    }
    Err(missing("").hint("a template's name has letters, digits and `-_.`"))
}

/// A template that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// The provider, if the text names one.
    pub(crate) provider: Option<String>,
    /// The template's own name.
    pub(crate) name: String,
}

/// Parses the name of a template.
pub(crate) fn read(app: &App, text: &str) -> ServiceResult<Name> {
    match app.service().provider_in_template(text) {
        Some((provider, rest)) => Ok(Name {
            provider: Some(provider.to_owned()),
            // The rest is a name of the provider's own, which may contain slashes.
            name: checked(text, without_tag(rest))?.to_owned(),
        }),
        None => Ok(Name {
            provider: None,
            name: check(text)?.to_owned(),
        }),
    }
}

/// The name of a provider's template in this dialect.
pub(crate) fn qualified_name(app: &App, provider: &str, name: &str) -> String {
    match provider == app.service().provider_info().name {
        true => name.to_owned(),
        false => format!("{provider}/{name}"),
    }
}

fn without_tag(name: &str) -> &str {
    TAGS.iter()
        .find_map(|tag| name.strip_suffix(tag))
        .unwrap_or(name)
}

/// The default template of a provider; none if this server does not have the provider.
pub(crate) fn default_name_of(app: &App, provider: &str) -> Option<String> {
    let providers = app.service().providers();
    let view = providers
        .into_iter()
        .find(|view| view.info.name == provider)?;
    Some(match view.is_default {
        true => default_name(app),
        false => view.info.default_template,
    })
}

/// The default template.
fn default_name(app: &App) -> String {
    let set = app.service().settings().default_template.clone();
    set.filter(|name| name != BASE)
        .unwrap_or_else(|| app.service().provider_info().default_template)
}

/// Replaces aliases by the name of the template, which need not exist.
pub(crate) async fn resolve(call: &Call, text: &str) -> ServiceResult<Name> {
    let mut read = read(&call.app, text)?;
    if read.name == BASE || read.name == "default" {
        read.name = match &read.provider {
            Some(provider) => default_name_of(&call.app, provider).unwrap_or_default(),
            None => default_name(&call.app),
        };
        return Ok(read);
    }
    let snapshots = call.service().snapshots(&call.caller, None).await?;
    let is_meant = |snapshot: &Snapshot| {
        snapshot.owner == call.caller.name && snapshot.alias.as_deref() == Some(read.name.as_str())
    };
    if let Some(called) = snapshots.into_iter().find(is_meant) {
        read.name = called.name;
    }
    Ok(read)
}

/// The failure of a create whose template does not exist. A provider with templates from elsewhere explains it best itself.
pub(crate) fn not_found(app: &App, text: &str, error: ServiceError) -> ServiceError {
    let name = app.service().provider_for_template(text);
    let providers = app.service().providers();
    let provider = providers
        .iter()
        .find(|provider| Some(&provider.info.name) == name.as_ref());
    match provider.is_some_and(|it| it.info.capabilities.has_external_templates) {
        true => error,
        false => missing(text),
    }
}

/// The error for a template that does not exist, with what to do.
pub(crate) fn missing(text: &str) -> ServiceError {
    let printable: String = text.chars().filter(|c| !c.is_control()).take(80).collect();
    let name = plain(&printable);
    let built = BUILT.iter().find(|(built, _)| *built == name);
    let hint = if let Some((_, folder)) = built {
        format!(
            "not installed: build it from `{folder}` as templates/README.md says, then `sandyard template import {name} FILE`"
        )
    } else if name.contains(':') {
        "templates have no tags here: leave out the colon and the text after it".to_owned()
    } else {
        format!(
            "GET /templates lists all; `sandyard template import {name} FILE` adds one; the default is `{BASE}`"
        )
    };
    ServiceError::new(ErrorKind::NotFound, format!("no template `{printable}`"))
        .field("template")
        .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_and_default_tags_are_ignored() {
        for text in ["kept", "team/kept", "kept:default", "a/kept:latest"] {
            assert_eq!(plain(text), "kept");
        }
        assert_eq!(plain("kept:v2"), "kept:v2");
        for invalid in ["", "a/", ":default", "a b", "ü", &"x".repeat(600)] {
            assert!(check(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn the_error_for_a_missing_template_says_how_to_get_it() {
        let hint = |name: &str| missing(name).hint.unwrap();
        assert!(hint("code-interpreter-v1").contains("`templates/code-interpreter`"));
        assert!(hint("mcp-gateway").contains("`templates/mcp-gateway`"));
        assert!(hint("mine").contains("template import mine"));
        assert!(hint("mine:v2").contains("tags"));
    }
}
