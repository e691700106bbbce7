//! Checks the texts and maps of a create request, so that a stored row stays small.

use std::collections::BTreeMap;

use sandyard_core::Caller;
use sandyard_core::bounds::{
    MAX_ALIAS, MAX_IDEMPOTENCY_KEY, MAX_MAP_BYTES, MAX_PROJECT, MAX_PROVIDER, MAX_TEMPLATE,
    MAX_USER_ID,
};

use crate::error::{Result, ServiceError};
use crate::request::CreateRequest;

/// Owner of the new sandbox.
pub(super) fn owner_of<'a>(caller: &'a Caller, request: &'a CreateRequest) -> &'a str {
    match &request.owner {
        Some(owner) if caller.is_admin() => owner,
        _ => &caller.name,
    }
}

/// Rejects texts and maps that are too large or contain characters that the store does not accept.
pub(super) fn check_request(request: &CreateRequest) -> Result<()> {
    let names = [
        ("user_id", &request.owner, MAX_USER_ID),
        ("alias", &request.alias, MAX_ALIAS),
        ("project_name", &request.project, MAX_PROJECT),
        ("provider", &request.provider, MAX_PROVIDER),
        ("template", &request.template, MAX_TEMPLATE),
        (
            "idempotency_key",
            &request.idempotency_key,
            MAX_IDEMPOTENCY_KEY,
        ),
    ];
    for (field, name, longest) in names {
        let Some(name) = name else { continue };
        // Some clients send an empty text for «no template», «no project» or «no provider».
        let shortest = usize::from(matches!(field, "user_id" | "alias" | "idempotency_key"));
        let length = name.chars().count();
        if !(shortest..=longest).contains(&length) || name.chars().any(char::is_control) {
            return Err(ServiceError::invalid(
                field,
                format!(
                    "`{field}` must have {shortest} to {longest} characters and no control characters (got {length})"
                ),
            ));
        }
    }
    for (field, map) in [
        ("metadata", &request.metadata),
        ("env", &request.env),
        ("ports", &request.ports),
    ] {
        check_map(field, map)?;
    }
    Ok(())
}

/// Rejects a map that is too large or contains NUL bytes.
pub(crate) fn check_map(field: &'static str, map: &BTreeMap<String, String>) -> Result<()> {
    let bytes: usize = map
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if bytes > MAX_MAP_BYTES {
        return Err(ServiceError::invalid(
            field,
            format!("`{field}` has more than {MAX_MAP_BYTES} bytes"),
        ));
    }
    let is_odd = |text: &String| text.contains('\0');
    if map
        .iter()
        .any(|(name, value)| is_odd(name) || is_odd(value))
    {
        return Err(ServiceError::invalid(
            field,
            format!("`{field}` holds a NUL byte"),
        ));
    }
    if matches!(field, "env" | "secrets")
        && let Some(name) = map
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
