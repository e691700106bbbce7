//! The tools, a family a file.

mod commands;
mod copies;
mod files;
mod inspect;
mod lifecycle;
mod ports;
mod sandbox_tools;

use super::tool::Tool;

/// Every tool there is, in the order they are listed.
pub(super) fn all() -> impl Iterator<Item = &'static Tool> {
    const FAMILIES: [&[Tool]; 7] = [
        &lifecycle::TOOLS,
        &inspect::TOOLS,
        &commands::TOOLS,
        &files::TOOLS,
        &ports::TOOLS,
        &copies::TOOLS,
        &sandbox_tools::TOOLS,
    ];
    FAMILIES.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_tool_is_complete_and_unique() {
        let mut seen = BTreeSet::new();
        for tool in all() {
            assert!(seen.insert(tool.name), "{}", tool.name);
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(tool.name.bytes().all(is_plain), "{}", tool.name);
            assert!(tool.description.len() <= 600, "{}", tool.name);
            let output = tool.output.map(|output| output()).unwrap_or_default();
            for (fields, required) in [
                ((tool.input)(), tool.required),
                (output, tool.output_required),
            ] {
                for name in required {
                    assert!(fields[name].is_object(), "{}: {name}", tool.name);
                }
            }
            for (name, property) in (tool.input)().as_object().unwrap() {
                assert!(property["description"].is_string(), "{}: {name}", tool.name);
            }
        }
    }
}
