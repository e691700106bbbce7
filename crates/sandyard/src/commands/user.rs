//! `sandyard user`: who may come in; for admins.

use std::process::ExitCode;

use clap::Subcommand;
use sandyard_client::{User, UserChange, UserRequest};
use serde_json::json;

use super::ask::{self, Times};
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
    /// Change what a user may
    #[command(group = clap::ArgGroup::new("change").args(["max_sandboxes", "admin", "no_admin"]).required(true).multiple(true))]
    Set {
        /// Its name
        name: String,
        /// How many sandboxes it may have
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(0..=1_000_000))]
        max_sandboxes: Option<i64>,
        /// May do everything, for every user
        #[arg(long, conflicts_with = "no_admin")]
        admin: bool,
        /// May do what is its own
        #[arg(long)]
        no_admin: bool,
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
        UserCommand::Set {
            name,
            max_sandboxes,
            admin,
            no_admin,
            format,
        } => {
            let role = match (admin, no_admin) {
                (true, _) => Some("admin".to_owned()),
                (_, true) => Some("user".to_owned()),
                _ => None,
            };
            let wanted = UserChange {
                role,
                max_sandboxes,
                ..UserChange::default()
            };
            change(&name, wanted, format).await?;
        }
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
            Cell::from(match text_of(&user.other, "max_sandboxes").as_str() {
                "" => "default",
                count => count,
            }),
            other("disabled"),
            other("created_at"),
        ]
    };
    let rows: Vec<Vec<Cell>> = users.iter().map(row).collect();
    output::table(&["NAME", "ROLE", "SANDBOXES", "DISABLED", "CREATED"], &rows);
    Ok(())
}

fn password() -> anyhow::Result<String> {
    ask::hidden("password", Times::Twice)
}
