//! Errors with their causes and what to do about them.

use sandyard_client::{ApiError, ClientError};
use sandyard_engine::EngineError;

use super::note;

/// Prints an error with its causes, once each, and what to do about it.
pub(crate) fn error(error: &anyhow::Error) {
    note(format!("error: {error:#}"));
    if let Some(hint) = hint(error) {
        note(format!("hint: {hint}"));
    }
}

fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<EngineError>() {
            return error.hint.clone();
        }
        client_hint(cause.downcast_ref::<ClientError>()?)
    })
}

/// What to do about a call that failed, in commands.
pub(crate) fn client_hint(error: &ClientError) -> Option<String> {
    match error {
        ClientError::Untrusted { .. } => Some(
            "its certificate is not for this name or not trusted: use a name it has, or --ca-cert FILE"
                .to_owned(),
        ),
        ClientError::Unreachable { .. } => Some(
            "start it with `./run` or `sandyard serve`, or name another with --url or SANDYARD_URL"
                .to_owned(),
        ),
        ClientError::Disconnected { sandbox, pid, .. } => Some(format!(
            "`sandyard attach {sandbox} {pid}` continues it, or prints how it ended"
        )),
        // The server speaks of requests; here there are commands for that.
        ClientError::Api(refusal) => match refusal.code.as_str() {
            "sandbox_not_found" => Some("`sandyard ls` lists yours".to_owned()),
            "unauthenticated" => Some(
                "set SANDYARD_API_KEY; on the server's own host, name its data directory with --data-dir"
                    .to_owned(),
            ),
            _ => match refusal.hint.as_deref() {
                Some(hint) => Some(in_commands(hint)),
                None if is_about_template(refusal) => {
                    Some("`sandyard template ls` lists them".to_owned())
                }
                None => None,
            },
        },
        _ => None,
    }
}

/// Requests that the server's hints name, and the commands that make them.
const COMMANDS: [(&str, &str); 6] = [
    ("GET /secrets", "`sandyard secret ls`"),
    ("GET /templates", "`sandyard template ls`"),
    ("GET /volumes", "`sandyard volume ls`"),
    ("GET /health", "`sandyard provider ls`"),
    ("GET /sandboxes/{id}/events", "`sandyard events ID`"),
    ("GET /sandboxes", "`sandyard ls`"),
];

fn in_commands(hint: &str) -> String {
    match COMMANDS.iter().find(|(request, _)| hint.contains(request)) {
        Some((request, command)) => hint.replacen(request, command, 1),
        None => hint.to_owned(),
    }
}

/// Says whether it was the template that was not found.
fn is_about_template(refusal: &ApiError) -> bool {
    let is_named = |field: &String| field == "template" || field == "template_id";
    refusal.field.as_ref().is_some_and(is_named)
        || (refusal.status == 404 && refusal.detail.contains("template"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_speak_of_commands() {
        for (hint, expected) in [
            (
                "GET /secrets lists those you may use",
                "`sandyard secret ls` lists those you may use",
            ),
            (
                "GET /health tells when it is back",
                "`sandyard provider ls` tells when it is back",
            ),
            (
                "it was deleted; GET /sandboxes/{id}/events tells its story",
                "it was deleted; `sandyard events ID` tells its story",
            ),
            ("wait a little", "wait a little"),
        ] {
            assert_eq!(in_commands(hint), expected);
        }
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_told_from_no_server() {
        let error = anyhow::Error::new(ClientError::Untrusted {
            url: "https://yard.example".to_owned(),
            source: "invalid peer certificate: UnknownIssuer".into(),
        });
        assert!(hint(&error).is_some_and(|hint| hint.contains("--ca-cert FILE")));
    }

    #[test]
    fn a_server_that_is_not_there_can_be_started() {
        let error = anyhow::Error::new(ClientError::Unreachable {
            url: "http://127.0.0.1:1".to_owned(),
            source: "connection refused".into(),
        });
        assert_eq!(
            format!("{error:#}"),
            "no server at `http://127.0.0.1:1`: connection refused"
        );
        assert!(hint(&error).is_some_and(|hint| hint.contains("sandyard serve")));
    }
}
