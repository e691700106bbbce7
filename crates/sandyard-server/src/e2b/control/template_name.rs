//! Which template a text means.
//!
//! E2B writes templates as `name`, `team/name` and `name:tag`. A team is an owner here, and everybody only finds its own and
//! those for everybody, so the team says nothing. Tags come with the building of templates: until then there is one of each.

use sandyard_core::{Caller, ErrorKind};
use sandyard_service::{ServiceError, ServiceResult};

use crate::app::App;

/// Tags that mean the template itself.
const TAGS: [&str; 2] = [":default", ":latest"];
/// E2B's name of what sandboxes start from by default.
pub(crate) const BASE: &str = "base";
/// Templates that the SDKs ask for by themselves, and the folder of the source tree with what each is made of.
const BUILT: [(&str, &str); 2] = [
    ("code-interpreter-v1", "templates/code-interpreter"),
    ("mcp-gateway", "templates/mcp-gateway"),
];
/// Longest text that is looked at.
const MAX_LEN: usize = 512;

/// The name without team and without a tag that says nothing.
pub(crate) fn plain(text: &str) -> &str {
    let name = text.rsplit('/').next().unwrap_or(text);
    TAGS.iter()
        .find_map(|tag| name.strip_suffix(tag))
        .unwrap_or(name)
}

/// Refuses what can be no template's name.
pub(crate) fn check(text: &str) -> ServiceResult<&str> {
    let name = plain(text);
    if text.len() <= MAX_LEN && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Ok(name);
    }
    Err(missing("").hint("a template's name has letters, digits and `-_.`"))
}

/// What sandboxes start from by default, by its real name.
pub(crate) fn default_name(app: &App) -> String {
    let set = app.service().settings().default_template.clone();
    set.filter(|name| name != BASE)
        .unwrap_or_else(|| app.service().provider_info().default_template)
}

/// The real name of what a caller means; that need not exist.
pub(crate) async fn resolve(app: &App, caller: &Caller, text: &str) -> ServiceResult<String> {
    let name = check(text)?;
    if name == BASE || name == "default" {
        return Ok(default_name(app));
    }
    let snapshots = app.service().snapshots(caller, None).await?;
    let called = snapshots
        .into_iter()
        .find(|snapshot| snapshot.owner == caller.name && snapshot.alias.as_deref() == Some(name));
    Ok(called.map_or_else(|| name.to_owned(), |snapshot| snapshot.name))
}

/// There is no such template, and what to do about that.
pub(crate) fn missing(text: &str) -> ServiceError {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(80).collect();
    let name = plain(&shown);
    let built = BUILT.iter().find(|(built, _)| *built == name);
    let hint = if let Some((_, folder)) = built {
        format!(
            "not installed: build it from `{folder}` as templates/README.md says, then `sandyard template import {name} FILE`"
        )
    } else if name.contains(':') {
        "there are no tags here: leave out what follows the colon".to_owned()
    } else {
        format!(
            "GET /templates lists what there is; `sandyard template import {name} FILE` adds one, leaving it out means `{BASE}`"
        )
    };
    ServiceError::new(ErrorKind::NotFound, format!("no template `{shown}`"))
        .field("template")
        .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_and_empty_tags_say_nothing() {
        for text in ["kept", "team/kept", "kept:default", "a/kept:latest"] {
            assert_eq!(plain(text), "kept");
        }
        assert_eq!(plain("kept:v2"), "kept:v2");
        for odd in ["", "a/", ":default", "a b", "ü", &"x".repeat(600)] {
            assert!(check(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn templates_the_sdks_ask_for_by_themselves_are_told_how_to_get() {
        let hint = |name: &str| missing(name).hint.unwrap();
        assert!(hint("code-interpreter-v1").contains("`templates/code-interpreter`"));
        assert!(hint("mcp-gateway").contains("`templates/mcp-gateway`"));
        assert!(hint("mine").contains("template import mine"));
        assert!(hint("mine:v2").contains("tags"));
    }
}
