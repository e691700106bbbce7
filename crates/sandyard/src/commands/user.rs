//! `sandyard user`: who may come in; for admins.

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use sandyard_client::{User, UserChange, UserRequest};
use serde_json::json;

use super::show::text_of;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "Passwords are asked for on the terminal, or read as one line from standard input: they never stand on the
command line, where every user of the host could see them."
)]
pub(crate) enum UserCommand {
    /// Make a user
    Add {
        /// Its name
        name: String,
        /// May do everything, for every user
        #[arg(long)]
        admin: bool,
        /// It cannot log in, only use keys
        #[arg(long)]
        no_password: bool,
        /// How many sandboxes it may have [default: up to the settings]
        #[arg(long, value_name = "COUNT")]
        max_sandboxes: Option<i64>,
        #[command(flatten)]
        format: Format,
    },
    /// List users
    Ls {
        #[command(flatten)]
        format: Format,
    },
    /// Give a user another password
    Passwd {
        /// Its name
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// Remove a user
    Rm {
        /// Its name
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// Shut a user out, with all its keys and logins
    Disable {
        /// Its name
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// Let a user in again
    Enable {
        /// Its name
        name: String,
        #[command(flatten)]
        format: Format,
    },
}

/// Does what was asked for.
pub(crate) async fn user(global: &Global, command: UserCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let change = async |name: &str, change: UserChange, format| {
        let user = client.change_user(name, &change).await?;
        print(&user, format)
    };
    match command {
        UserCommand::Add {
            name,
            admin,
            no_password,
            max_sandboxes,
            format,
        } => {
            let password = if no_password { None } else { Some(password()?) };
            let role = if admin { "admin" } else { "user" }.to_owned();
            let request = UserRequest {
                name,
                password,
                role,
                max_sandboxes,
            };
            print(&client.add_user(&request).await?, format)?;
        }
        UserCommand::Ls { format } => list(&client.users().await?, format)?,
        UserCommand::Passwd { name, format } => {
            let password = Some(password()?);
            change(
                &name,
                UserChange {
                    password,
                    ..UserChange::default()
                },
                format,
            )
            .await?;
        }
        UserCommand::Disable { name, format } => change(&name, disabled(true), format).await?,
        UserCommand::Enable { name, format } => change(&name, disabled(false), format).await?,
        UserCommand::Rm { name, format } => {
            client.remove_user(&name).await?;
            match format.json {
                true => output::json(&json!({ "name": name }))?,
                false => output::line(&name),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn disabled(is_disabled: bool) -> UserChange {
    UserChange {
        is_disabled: Some(is_disabled),
        ..UserChange::default()
    }
}

fn print(user: &User, format: Format) -> anyhow::Result<()> {
    match format.json {
        true => output::json(user)?,
        false => output::line(&user.name),
    }
    Ok(())
}

fn list(users: &[User], format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json(&users);
    }
    let row = |user: &User| {
        let other = |name| Cell::from(text_of(&user.other, name));
        vec![
            Cell::from(&user.name),
            Cell::from(&user.role),
            other("disabled"),
            other("created_at"),
        ]
    };
    let rows: Vec<Vec<Cell>> = users.iter().map(row).collect();
    output::table(&["NAME", "ROLE", "DISABLED", "CREATED"], &rows);
    Ok(())
}

/// Asks for a password without showing it, twice; or reads it as a line from standard input.
fn password() -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return read_line();
    }
    let before = tcgetattr(&stdin).context("preparing the terminal")?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &silent).context("preparing the terminal")?;
    let ask = |question: &str| {
        use std::io::Write;
        let _ = write!(std::io::stderr(), "{question}: ");
        let answer = read_line();
        output::note("");
        answer
    };
    let (first, second) = (ask("password"), ask("again"));
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &before);
    let first = first?;
    if first != second? {
        bail!("the two passwords are not the same");
    }
    Ok(first)
}

fn read_line() -> anyhow::Result<String> {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .context("reading the password")?;
    let password = line.trim_end_matches(['\n', '\r']);
    if password.is_empty() {
        bail!("there is no password on standard input");
    }
    Ok(password.to_owned())
}
