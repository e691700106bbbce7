//! Template names with a meaning of their own.

/// The settings' name of the template that is used when a request names none.
pub(super) const BASE: &str = "base";

/// Says whether a name means the provider's default template.
pub(super) fn is_default(template: &str) -> bool {
    matches!(template, "" | BASE | "default")
}
