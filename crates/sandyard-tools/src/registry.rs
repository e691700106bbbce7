//! All tools by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::custom::Servers;
use crate::tool::Tool;
use crate::{agents, browser, dev, files, media, search, shell, slides, todo, web};

/// Other names that older clients use, and the tools that they mean.
const ALIASES: &[(&str, &str)] = &[
    ("browser_navigate", "browser_navigation"),
    ("register_deployment", "register_port"),
];

/// The built-in tools, in the order they are listed, and those of the user's own MCP servers.
#[derive(Debug)]
pub(crate) struct Registry {
    built_in: Vec<Arc<Tool>>,
    by_name: BTreeMap<String, Arc<Tool>>,
    custom: Arc<Servers>,
}

impl Registry {
    /// All built-in tools, and those of these servers.
    pub(crate) fn new(custom: Arc<Servers>) -> Self {
        let families = [
            shell::tools(),
            files::tools(),
            search::tools(),
            todo::tools(),
            browser::tools(),
            web::tools(),
            dev::tools(),
            slides::tools(),
            media::tools(),
            agents::tools(),
        ];
        let mut built_in: Vec<_> = families.into_iter().flatten().collect();
        let aliases: Vec<_> = ALIASES
            .iter()
            .filter_map(|(name, of)| {
                Some(
                    built_in
                        .iter()
                        .find(|tool| tool.name() == *of)?
                        .renamed(name),
                )
            })
            .collect();
        built_in.extend(aliases);
        let built_in: Vec<_> = built_in.into_iter().map(Arc::new).collect();
        let by_name = built_in
            .iter()
            .map(|tool| (tool.name().to_owned(), tool.clone()))
            .collect();
        Self {
            built_in,
            by_name,
            custom,
        }
    }

    /// All tools.
    pub(crate) fn all(&self) -> Vec<Arc<Tool>> {
        let mut all = self.built_in.clone();
        all.extend(self.custom.tools());
        all
    }

    /// Finds a tool by name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Tool>> {
        match self.by_name.get(name) {
            Some(tool) => Some(tool.clone()),
            None => self.custom.find(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_tool_has_a_description() {
        let registry = Registry::new(Arc::default());
        assert_eq!(registry.by_name.len(), registry.built_in.len());
        for tool in registry.all() {
            assert!(tool.definition.description.is_some(), "{tool:?}");
            assert_eq!(tool.definition.input_schema["type"], "object", "{tool:?}");
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod structured_tests;
