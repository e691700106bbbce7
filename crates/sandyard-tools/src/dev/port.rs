//! `register_port`: the address of a service in this sandbox.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listens;
use crate::reply::{Problem, Reply};
use crate::tool::{Effect, Tool};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The port the service listens on.
    port: u16,
}

#[derive(Serialize, JsonSchema)]
struct Registered {
    /// The port.
    port: u16,
    /// Its address from outside.
    url: String,
    /// Whether something listens there now.
    is_listening: bool,
    /// What to do about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The tool.
pub(super) fn tool() -> Tool {
    crate::tool::tool::<Args, _, _>(
        "register_port",
        "Get the address of a port",
        Effect::Looks,
        "Answers with the address under which a service on a port of this sandbox is reached from outside. Start the service \
         first, on 0.0.0.0.",
        |workshop, args, _call| async move {
            let port = args.port;
            if port == 0 {
                return Err(Problem::new("port must be 1 to 65535"));
            }
            let told = workshop.told();
            let template = told.port_url.ok_or_else(|| {
                Problem::new(
                    "the address of this sandbox's ports is not known in here: ask the server for it (expose-port), or have \
                     setup-mcp called for this sandbox, which tells it",
                )
            })?;
            let url = template.replace("{port}", &port.to_string());
            let is_listening = listens(port).await;
            let note = (!is_listening).then(|| {
                format!("nothing listens on port {port} yet: start the service, on 0.0.0.0")
            });
            let text = match &note {
                Some(note) => format!("{url}\n{note}"),
                None => url.clone(),
            };
            let registered = Registered {
                port,
                url,
                is_listening,
                note,
            };
            Ok(Reply::text(text).with_structured(registered))
        },
    )
    .answers::<Registered>()
}
