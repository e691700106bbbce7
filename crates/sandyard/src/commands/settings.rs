//! The flags of `sandyard serve`, made from the table of settings, and what comes of them.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use sandyard_config::{Kind, Loaded, Setting, Sources};

use crate::global::{Global, default_data_dir};

/// The data directory has a flag on every command already.
const ELSEWHERE: &str = "data_dir";

/// What flags say: pairs of a setting's key and a text.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingFlags {
    pairs: Vec<(String, String)>,
    config: Option<PathBuf>,
}

impl SettingFlags {
    /// Reads all sources of settings and checks everything.
    pub(crate) fn load(&self, global: &Global) -> anyhow::Result<Loaded> {
        let mut flags = self.pairs.clone();
        if let Some(folder) = global.named_data_dir() {
            flags.push((ELSEWHERE.to_owned(), folder.display().to_string()));
        }
        let sources = Sources::of_process(flags, self.config.clone(), default_data_dir())?;
        Ok(sandyard_config::load(&sources)?)
    }
}

fn flags() -> impl Iterator<Item = (&'static Setting, &'static str)> {
    sandyard_config::all()
        .filter(|setting| setting.key != ELSEWHERE)
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
        // A switch may stand alone.
        Kind::Switch => argument
            .value_name("BOOL")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        _ => argument.value_name(setting.name().to_uppercase()),
    }
    .action(ArgAction::Set)
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("The configuration file [default: sandyard.toml in the data directory, else /etc/sandyard/sandyard.toml]")
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
        let said = |(setting, _): (&'static Setting, _)| {
            let text = matches.get_one::<String>(setting.key)?;
            Some((setting.key.to_owned(), text.clone()))
        };
        Ok(Self {
            pairs: flags().filter_map(said).collect(),
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

    fn parse(words: &[&str]) -> SettingFlags {
        let command = SettingFlags::augment_args(Command::new("serve"));
        let matches = command
            .try_get_matches_from([&["serve"], words].concat())
            .unwrap();
        SettingFlags::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn every_flag_of_the_table_reaches_its_setting() {
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
