//! Which tools an MCP server lists. Others can still be called by name.

use crate::percent;

/// The tools that are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolSelection {
    /// Those that can work.
    #[default]
    Usable,
    /// All tools.
    All,
    /// Those of these names; one that ends with `*` stands for all names that begin like it.
    Names(Vec<String>),
}

impl ToolSelection {
    /// Reads `usable`, `all`, or names with commas.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "" | "usable" => Self::Usable,
            "all" => Self::All,
            names => Self::Names(
                names
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .collect(),
            ),
        }
    }

    /// Reads the parameter `tools` of a query; none without it.
    pub fn from_query(query: Option<&str>) -> Option<Self> {
        let mut pairs = query?.split('&');
        let value = pairs.find_map(|pair| pair.strip_prefix("tools="))?;
        Some(Self::parse(&percent::decode_strict(value)?))
    }

    /// Whether a tool is listed; `is_usable` is called for `Usable` alone.
    pub fn lists(&self, name: &str, is_usable: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Usable => is_usable(),
            Self::All => true,
            Self::Names(names) => names.iter().any(|entry| match entry.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == entry,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_or_a_setting_names_tools() {
        let of = |query| ToolSelection::from_query(Some(query));
        assert_eq!(of("a=1&tools=all"), Some(ToolSelection::All));
        assert_eq!(of("a=tools"), None);
        assert_eq!(of("tools="), Some(ToolSelection::Usable));
        let some = of("tools=Bash%2C+Read,browser_*".replace('+', "%20").as_str()).unwrap();
        for (name, is_listed) in [
            ("Bash", true),
            ("Read", true),
            ("browser_click", true),
            ("BashList", false),
            ("*", false),
        ] {
            assert_eq!(some.lists(name, || false), is_listed, "{name}");
        }
        assert!(!ToolSelection::Usable.lists("Bash", || false));
    }
}
