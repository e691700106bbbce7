//! `sandyard user`, for admins.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use sandyard_client::{UserChange, UserRequest};
use serde_json::json;

use super::prompt::{self, Confirmation};
use super::render::field_text;
use crate::global::Global;
use crate::output::{Cell, Format};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "Passwords are asked for on the terminal, or read as one line from standard input. They are not accepted on the \
command line, where every user of the host could see them.

Examples:
  sandyard user add alice
  sandyard user add robot --no-password && sandyard key add ci --user robot
  sandyard user set alice --max-sandboxes 20"
)]
pub(crate) enum UserCommand {
    /// Create a user
    Add {
        /// Name of the user
        name: String,
        /// Make the user an admin, who may do everything for every user
        #[arg(long)]
        admin: bool,
        /// Create the user without a password: it can use API keys but not log in
        #[arg(long)]
        no_password: bool,
        /// Maximum number of sandboxes [default: the server's setting]
        #[arg(long, value_name = "COUNT")]
        max_sandboxes: Option<i64>,
        #[command(flatten)]
        format: Format,
    },
    /// List users
    Ls(Format),
    /// Change the role or the sandbox limit of a user
    #[command(override_usage = "sandyard user set [OPTIONS] <NAME>", group = clap::ArgGroup::new("change").args(["max_sandboxes", "admin", "no_admin"]).required(true).multiple(true))]
    Set {
        /// Name of the user
        name: String,
        /// Maximum number of sandboxes
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(0..=1_000_000))]
        max_sandboxes: Option<i64>,
        /// Make the user an admin, who may do everything for every user
        #[arg(long, conflicts_with = "no_admin")]
        admin: bool,
        /// Make the user an ordinary user
        #[arg(long)]
        no_admin: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Change the password of a user
    Passwd(UserArgs),
    /// Delete a user
    Rm(UserArgs),
    /// Disable a user, with all API keys and sessions
    Disable(UserArgs),
    /// Enable a disabled user
    Enable(UserArgs),
}

#[derive(Debug, Args)]
pub(crate) struct UserArgs {
    /// Name of the user
    name: String,
    #[command(flatten)]
    format: Format,
}

/// Creates, lists, changes or deletes users.
pub(crate) async fn user(global: &Global, command: UserCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let (name, change, format) = match command {
        UserCommand::Add {
            name,
            admin,
            no_password,
            max_sandboxes,
            format,
        } => {
            let request = UserRequest {
                name,
                password: (!no_password).then(password).transpose()?,
                role: if admin { "admin" } else { "user" }.to_owned(),
                max_sandboxes,
            };
            let user = client.add_user(&request).await?;
            return format.print(&user, &user.name);
        }
        UserCommand::Ls(format) => {
            let headings = ["NAME", "ROLE", "SANDBOXES", "DISABLED", "CREATED"];
            return format.print_table(&headings, &client.users().await?, |user| {
                let other = |name| field_text(&user.other, name);
                vec![
                    Cell::from(&user.name),
                    Cell::from(&user.role),
                    Cell::from(match other("max_sandboxes").as_str() {
                        "" => "default",
                        count => count,
                    }),
                    Cell::from(other("disabled")),
                    Cell::from(other("created_at")),
                ]
            });
        }
        UserCommand::Rm(UserArgs { name, format }) => {
            client.remove_user(&name).await?;
            return format.print(&json!({ "name": name }), &name);
        }
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
            let change = UserChange {
                role,
                max_sandboxes,
                ..UserChange::default()
            };
            (name, change, format)
        }
        UserCommand::Passwd(UserArgs { name, format }) => {
            let change = UserChange {
                password: Some(password()?),
                ..UserChange::default()
            };
            (name, change, format)
        }
        UserCommand::Disable(UserArgs { name, format }) => (name, set_disabled(true), format),
        UserCommand::Enable(UserArgs { name, format }) => (name, set_disabled(false), format),
    };
    let user = client.change_user(&name, &change).await?;
    format.print(&user, &user.name)
}

fn set_disabled(is_disabled: bool) -> UserChange {
    UserChange {
        is_disabled: Some(is_disabled),
        ..UserChange::default()
    }
}

fn password() -> anyhow::Result<String> {
    prompt::hidden("password", Confirmation::Repeat)
}
