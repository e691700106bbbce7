//! Every tool by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::custom::Servers;
use crate::tool::Tool;
use crate::{agents, browser, dev, files, media, search, shell, slides, todo, web};

/// Short names of the first clients, and the tools they mean.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("browser_navigate", "browser_navigation"),
    ("register_deployment", "register_port"),
];

/// The tools there are: ours, in the order they are shown, and those of the user's own servers.
#[derive(Debug)]
pub(crate) struct Registry {
    ours: Vec<Arc<Tool>>,
    by_name: BTreeMap<String, Arc<Tool>>,
    custom: Arc<Servers>,
}

impl Registry {
    /// All of ours, and those of these servers.
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
        let mut ours: Vec<_> = families.into_iter().flatten().collect();
        let others: Vec<_> = OTHER_NAMES
            .iter()
            .filter_map(|(name, of)| Some(ours.iter().find(|tool| tool.name() == *of)?.named(name)))
            .collect();
        ours.extend(others);
        let ours: Vec<_> = ours.into_iter().map(Arc::new).collect();
        let by_name = ours
            .iter()
            .map(|tool| (tool.name().to_owned(), tool.clone()))
            .collect();
        Self {
            ours,
            by_name,
            custom,
        }
    }

    /// All tools there are now.
    pub(crate) fn all(&self) -> Vec<Arc<Tool>> {
        let mut all = self.ours.clone();
        all.extend(self.custom.tools());
        all
    }

    /// One of them.
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
    fn every_name_is_there_once_and_every_tool_is_described() {
        let registry = Registry::new(Arc::default());
        assert_eq!(registry.by_name.len(), registry.ours.len());
        for tool in registry.all() {
            assert!(tool.told.description.is_some(), "{tool:?}");
            assert_eq!(tool.told.input_schema["type"], "object", "{tool:?}");
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod both_parts;
