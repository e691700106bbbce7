//! Bounds on a maker's own words, so that a row stays a row.

use std::collections::BTreeMap;

use sandyard_core::Caller;

use crate::error::{ServiceError, ServiceResult};
use crate::request::CreateRequest;

const MAX_WORDS_BYTES: usize = 64 << 10;
const MAX_NAME: usize = 128;
/// Templates may be images with a registry, a path, a tag and a digest.
const MAX_TEMPLATE: usize = 512;

/// Whose a new sandbox is to be.
pub(super) fn owner_of<'a>(caller: &'a Caller, request: &'a CreateRequest) -> &'a str {
    match &request.owner {
        Some(owner) if caller.is_admin() => owner,
        _ => &caller.name,
    }
}

/// Refuses names and words that are too long or hold what the store cannot.
pub(super) fn check_request(request: &CreateRequest) -> ServiceResult<()> {
    let names = [
        ("user_id", &request.owner, MAX_NAME),
        ("alias", &request.alias, MAX_NAME),
        ("project_name", &request.project, MAX_NAME),
        ("provider", &request.provider, MAX_NAME),
        ("template", &request.template, MAX_TEMPLATE),
    ];
    for (field, name, most) in names {
        let Some(name) = name else { continue };
        // `template` and `project` may be empty: some clients send that for «none».
        if name.len() > most || name.chars().any(char::is_control) {
            return Err(ServiceError::invalid(
                field,
                format!("`{field}` has at most {most} bytes and no control characters"),
            ));
        }
    }
    if request.owner.as_deref() == Some("") || request.alias.as_deref() == Some("") {
        return Err(ServiceError::invalid("user_id", "a name must not be empty"));
    }
    if let Some(key) = &request.idempotency_key
        && (key.is_empty() || key.len() > 255 || key.chars().any(char::is_control))
    {
        return Err(ServiceError::invalid(
            "idempotency_key",
            "an idempotency key has 1 to 255 bytes and no control characters",
        ));
    }
    for (field, words) in [
        ("metadata", &request.metadata),
        ("env", &request.env),
        ("ports", &request.ports),
    ] {
        check_map(field, words)?;
    }
    Ok(())
}

/// Refuses a map that is too large or holds NUL bytes.
pub(crate) fn check_map(
    field: &'static str,
    words: &BTreeMap<String, String>,
) -> ServiceResult<()> {
    let bytes: usize = words
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if bytes > MAX_WORDS_BYTES {
        return Err(ServiceError::invalid(
            field,
            format!("`{field}` has more than {MAX_WORDS_BYTES} bytes"),
        ));
    }
    let is_odd = |text: &String| text.contains('\0');
    if words
        .iter()
        .any(|(name, value)| is_odd(name) || is_odd(value))
    {
        return Err(ServiceError::invalid(
            field,
            format!("`{field}` holds a NUL byte"),
        ));
    }
    if matches!(field, "env" | "secrets")
        && let Some(name) = words
            .keys()
            .find(|name| name.is_empty() || name.contains('='))
    {
        return Err(ServiceError::invalid(
            field,
            format!("`{name}` cannot be the name of a variable"),
        ));
    }
    Ok(())
}
