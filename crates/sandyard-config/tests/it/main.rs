//! What operators meet: sources, precedence, problems, the rule about listeners, and the generated files.

mod binding;
mod e2b;
mod files;
mod gateway;
mod generated;
mod precedence;
mod problems;
mod settings;
mod show;
mod table;

use std::path::PathBuf;

use sandyard_config::{Loaded, Origin, Problems, Sources, Table, load};
use sandyard_providers::Registry;
use tempfile::TempDir;

/// A working directory, a data directory and a system file of their own, and nothing else said.
pub(crate) struct Host {
    pub(crate) dir: TempDir,
    pub(crate) sources: Sources,
}

impl Host {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let make = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir(&path).expect("folder");
            path
        };
        let sources = Sources {
            working_dir: make("work"),
            default_data_dir: make("data"),
            system_config_file: make("etc").join("sandyard.toml"),
            table: table(),
            ..Sources::default()
        };
        Self { dir, sources }
    }

    pub(crate) fn flag(mut self, key: &str, text: &str) -> Self {
        self.sources.flags.push((key.to_owned(), text.to_owned()));
        self
    }

    pub(crate) fn var(mut self, name: &str, text: &str) -> Self {
        let environment = &mut self.sources.environment;
        environment.insert(name.to_owned(), text.to_owned());
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file below the host's own directory: `work/.env`, `data/sandyard.toml`, `etc/sandyard.toml`.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.path(name), text).expect("write");
        self
    }

    /// The configuration file most tests use.
    pub(crate) fn toml(self, text: &str) -> Self {
        self.file("data/sandyard.toml", text)
    }

    pub(crate) fn load(&self) -> Result<Loaded, Problems> {
        load(&self.sources)
    }

    pub(crate) fn loaded(&self) -> Loaded {
        self.load().unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// The errors as text, with the host's own directory left out.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.texts(&self.load().expect_err("problems").errors)
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.texts(&self.loaded().warnings)
    }

    fn texts(&self, problems: &[sandyard_config::Problem]) -> Vec<String> {
        let own = format!("{}/", self.dir.path().display());
        problems
            .iter()
            .map(|problem| problem.to_string().replace(&own, ""))
            .collect()
    }
}

/// Where the value of a setting comes from.
pub(crate) fn origin(loaded: &Loaded, key: &str) -> Origin {
    loaded.settings.values.origin(key).clone()
}

/// The settings of the program, its providers' included.
pub(crate) fn table() -> Table {
    Registry::BUILTIN.table()
}
