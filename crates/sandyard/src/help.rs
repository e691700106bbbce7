//! The program's help: commands in groups, global options in one place, other names of commands.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

/// The commands of each group, in the order in which `sandyard --help` lists them. Hidden commands are in none.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Sandboxes",
        &[
            "create", "ls", "info", "stats", "metrics", "events", "timeout", "update", "pause",
            "resume", "stop", "snapshot", "fork", "diff", "rm", "prune",
        ],
    ),
    (
        "Commands and files",
        &[
            "exec", "shell", "attach", "ps", "kill", "wait", "logs", "cp", "files",
        ],
    ),
    (
        "Network",
        &[
            "open",
            "port-forward",
            "ports",
            "network",
            "flows",
            "secret",
        ],
    ),
    ("Storage", &["template", "volume"]),
    (
        "Server",
        &[
            "serve", "login", "logout", "context", "health", "config", "user", "key", "audit",
            "provider", "e2b", "mcp", "version",
        ],
    ),
    (
        "Without a server",
        &["run", "tools", "doctor", "selftest", "demo", "completions"],
    ),
];

/// Other names, which help does not list: those of other programs.
const ALIASES: [(&str, &[&str]); 5] = [
    ("ls", &["list"]),
    ("rm", &["delete", "remove"]),
    ("info", &["inspect", "show"]),
    ("resume", &["start", "wake"]),
    ("shell", &["ssh"]),
];

/// Completes the command line that the types declare.
pub(crate) fn complete(command: Command) -> Command {
    let globals: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .collect();
    let names: Vec<String> = globals.iter().map(|arg| option_of(arg)).collect();
    let note = format!(
        "Global options: {}; see `sandyard --help`",
        names.join(", ")
    );
    let header = command.get_styles().get_header();
    let heading = |text: &str| format!("{header}{text}:{header:#}");
    let mut commands = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(commands, "{}", heading(title));
        for name in names {
            let found = command.find_subcommand(name);
            let about = found.and_then(Command::get_about).map(ToString::to_string);
            let _ = writeln!(commands, "  {name:12}  {}", about.unwrap_or_default());
        }
        commands.push('\n');
    }
    let mut options = format!("{}\n", heading("Global options"));
    for arg in globals {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.replace(" [", "\n          [");
        let _ = writeln!(options, "      {}\n          {help}", option_of(arg));
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}{options}\n{}\n{{options}}{{after-help}}",
        heading("Options"),
    );
    command
        .mut_subcommands(|it| complete_subcommand(it, &note))
        .help_template(StyledStr::from(template))
}

fn complete_subcommand(command: Command, note: &str) -> Command {
    let aliases = ALIASES.iter().find(|(name, _)| *name == command.get_name());
    let aliases = aliases.map(|(_, aliases)| *aliases).unwrap_or_default();
    let after_help = match command.get_after_help() {
        Some(text) => format!("{text}\n\n{note}"),
        None => note.to_owned(),
    };
    command
        .aliases(aliases)
        .after_help(after_help)
        .mut_subcommands(|it| complete_subcommand(it, note))
}

/// An option as help writes it: `--url URL`.
fn option_of(arg: &Arg) -> String {
    let value = arg.get_value_names().and_then(<[_]>::first);
    let value = value.map(|value| format!(" {value}"));
    format!(
        "--{}{}",
        arg.get_long().unwrap_or_default(),
        value.unwrap_or_default()
    )
}

/// The arguments, with `help --help` as `help`, which takes no options.
pub(crate) fn arguments(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if let [_, help, option] = arguments.as_slice()
        && help == "help"
        && (option == "--help" || option == "-h")
    {
        arguments.pop();
    }
    arguments
}

/// Keeps only the best of the commands that are suggested for a misspelt one.
pub(crate) fn keep_best_suggestion(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::Strings(names)) = error.get(ContextKind::SuggestedSubcommand)
        // The parser sorts them, the most similar one last.
        && let Some(best) = names.last().cloned()
    {
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(vec![best]),
        );
    }
    error
}
