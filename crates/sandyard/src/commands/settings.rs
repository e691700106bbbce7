//! Options of `sandyard serve`, generated from the table of settings.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use sandyard_config::{Kind, Loaded, Setting, Sources};
use sandyard_providers::Registry;

use crate::global::{Global, default_data_dir};

/// The setting without an option here: `--data-dir` is a global option.
const DATA_DIR_KEY: &str = "data_dir";

/// The options given: pairs of a setting's key and its text.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingFlags {
    pairs: Vec<(String, String)>,
    config: Option<PathBuf>,
}

impl SettingFlags {
    /// Reads all sources of settings and checks them.
    pub(crate) fn load(&self, global: &Global) -> anyhow::Result<Loaded> {
        let mut flags = self.pairs.clone();
        if let Some(folder) = global.data_dir_option() {
            flags.push((DATA_DIR_KEY.to_owned(), folder.display().to_string()));
        }
        let table = Registry::BUILTIN.table();
        let sources = Sources::of_process(table, flags, self.config.clone(), default_data_dir())?;
        Ok(sandyard_config::load(&sources)?)
    }
}

fn flags() -> impl Iterator<Item = (&'static Setting, &'static str)> {
    let settings: Vec<_> = Registry::BUILTIN.table().all().collect();
    settings
        .into_iter()
        .filter(|setting| setting.key != DATA_DIR_KEY)
        .filter_map(|setting| Some((setting, setting.flag?.trim_start_matches('-'))))
}

fn argument(setting: &'static Setting, flag: &'static str) -> Arg {
    let default = match setting.default {
        "" => setting.when_unset,
        default => default,
    };
    let argument = Arg::new(setting.key)
        .long(flag)
        .help(format!("{} [default: {default}]", setting.doc))
        .help_heading("Settings");
    match setting.kind {
        // A switch needs no value.
        Kind::Switch => argument
            .value_name(value_name(Kind::Switch))
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        kind => argument.value_name(value_name(kind)),
    }
    .action(ArgAction::Set)
}

/// What a value is, for the help.
fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Path | Kind::File | Kind::AbsolutePath => "PATH",
        Kind::Switch => "BOOL",
        Kind::Integer(..) => "NUMBER",
        Kind::Duration(..) => "TIME",
        Kind::Size(..) => "SIZE",
        Kind::Cores(..) => "CPUS",
        Kind::Choice(_) => "MODE",
        Kind::Ports => "PORTS",
        Kind::Addresses | Kind::NameServers => "ADDRESSES",
        Kind::Networks => "NETWORKS",
        Kind::Provider | Kind::Providers => "PROVIDER",
        Kind::Domain | Kind::Host => "DOMAIN",
        Kind::HttpUrl | Kind::Url(_) => "URL",
        Kind::LogFilter => "LEVEL",
        Kind::Key(_) | Kind::SealingKey => "KEY",
        Kind::Text | Kind::Targets | Kind::Counts(_) | Kind::Tokens | Kind::ProviderOfEach => {
            "VALUE"
        }
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Configuration file [default: sandyard.toml in the data directory, or else /etc/sandyard/sandyard.toml]")
            .help_heading("Settings");
        let command = command.arg(config);
        flags().fold(command, |command, (setting, flag)| {
            command.arg(argument(setting, flag))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |(setting, _): (&'static Setting, _)| {
            let text = matches.get_one::<String>(setting.key)?;
            Some((setting.key.to_owned(), text.clone()))
        };
        Ok(Self {
            pairs: flags().filter_map(given).collect(),
            config: matches.get_one::<PathBuf>("config").cloned(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> SettingFlags {
        let command = SettingFlags::augment_args(Command::new("serve"));
        let matches = command
            .try_get_matches_from([&["serve"], arguments].concat())
            .unwrap();
        SettingFlags::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn options_set_their_settings() {
        let flags = parse(&["--host", "0.0.0.0", "--port=8100,8200", "--tls-self-signed"]);
        let expected = [
            ("server.host", "0.0.0.0"),
            ("server.port", "8100,8200"),
            ("server.tls_self_signed", "true"),
        ];
        let expected = expected.map(|(key, text)| (key.to_owned(), text.to_owned()));
        assert_eq!(flags.pairs, expected);
        assert_eq!(parse(&["--config", "/x"]).config, Some("/x".into()));
    }
}
