//! Where settings are said: flags, variables, `.env`, the configuration file.

pub(crate) mod config_file;
pub(crate) mod env_file;
mod origin;
mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

pub use origin::Origin;

use crate::table::Table;

/// All that settings are read from. Filled by [`Sources::of_process`], or by hand in tests.
#[derive(Clone, Default)]
pub struct Sources {
    /// The settings there are.
    pub table: Table,
    /// What flags said: pairs of key and text. The strongest source.
    pub flags: Vec<(String, String)>,
    /// The environment.
    pub environment: BTreeMap<String, String>,
    /// Where `.env` is looked for and where relative paths count from.
    pub working_dir: PathBuf,
    /// The file named by `--config`.
    pub config_file: Option<PathBuf>,
    /// The data directory when nobody names one. It depends on who runs the server, which the caller knows.
    pub default_data_dir: PathBuf,
    /// The file to read when neither a file is named nor the data directory has one.
    pub system_config_file: PathBuf,
}

impl Sources {
    /// Where the configuration file of the whole system is.
    pub const SYSTEM_CONFIG_FILE: &'static str = "/etc/sandyard/sandyard.toml";

    /// The name of the configuration file in the data directory.
    pub const CONFIG_FILE_NAME: &'static str = "sandyard.toml";

    /// Collects the environment and working directory of this process.
    ///
    /// Variables that are not UTF-8 are left out: none of ours can be.
    pub fn of_process(
        table: Table,
        flags: Vec<(String, String)>,
        config_file: Option<PathBuf>,
        default_data_dir: PathBuf,
    ) -> std::io::Result<Self> {
        let environment = std::env::vars_os()
            .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)));
        Ok(Self {
            table,
            flags,
            environment: environment.collect(),
            working_dir: std::env::current_dir()?,
            config_file,
            default_data_dir,
            system_config_file: PathBuf::from(Self::SYSTEM_CONFIG_FILE),
        })
    }
}

impl fmt::Debug for Sources {
    /// Shows names only: any variable may be a secret, and so may a flag.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags: Vec<&String> = self.flags.iter().map(|(key, _)| key).collect();
        f.debug_struct("Sources")
            .field("flags", &flags)
            .field(
                "environment",
                &format!("{} variables", self.environment.len()),
            )
            .field("working_dir", &self.working_dir)
            .field("config_file", &self.config_file)
            .finish_non_exhaustive()
    }
}
