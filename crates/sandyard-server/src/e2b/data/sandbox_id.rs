//! The id of a sandbox in the name that a client uses.

/// The id in a name. COMPAT(e2b): old clients append a dash and the id of a client.
pub(crate) fn id_of(name: &str) -> &str {
    name.split_once('-').map_or(name, |(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_after_a_dash_is_ignored() {
        assert_eq!(id_of("abc"), "abc");
        assert_eq!(id_of("abc-6532622b"), "abc");
        assert_eq!(id_of("abc-1-2"), "abc");
        assert_eq!(id_of("-abc"), "");
    }
}
