//! Error messages: the error, its causes, and a hint.

use sandyard_client::{ApiError, ClientError};
use sandyard_engine::EngineError;

use super::colour::label;
use super::{Colour, note};
use crate::global;

/// Prints an error with its causes and, if there is one, a hint.
pub(crate) fn error(error: &anyhow::Error) {
    let text = with_option_names(error);
    note(format!("{} {text}", label("error:", Colour::Bad)));
    if let Some(hint) = hint(error) {
        note(format!("{} {hint}", label("hint:", Colour::Bold)));
    }
}

/// Fields of requests, and the options that set them.
const OPTIONS: [(&str, &str); 7] = [
    ("`alias`", "`--name`"),
    ("`template_id`", "`--template`"),
    ("`timeout`", "`--timeout`"),
    ("`memory_limit`", "`--memory`"),
    ("`cpu_limit`", "`--cpu`"),
    ("`disk_limit`", "`--disk`"),
    ("`pids_limit`", "`--pids`"),
];

/// The error with its causes. Where the server names a field of the request, it names our option instead.
fn with_option_names(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let is_about_field = error.chain().any(|cause| {
        let refusal = cause.downcast_ref().and_then(ClientError::api);
        refusal.is_some_and(|refusal| refusal.field.is_some())
    });
    match OPTIONS.iter().find(|(field, _)| text.contains(field)) {
        Some((field, option)) if is_about_field => text.replace(field, option),
        _ => text,
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

/// Returns what to do about a failed request, in terms of this program's commands.
pub(crate) fn client_hint(error: &ClientError) -> Option<String> {
    match error {
        ClientError::Untrusted { .. } => Some(
            "the certificate is not trusted or is for another name: connect with a name it contains, or pass --ca-cert FILE"
                .to_owned(),
        ),
        ClientError::Unreachable { .. } => Some(
            "start the server with `./run` or `sandyard serve`, or set --url or SANDYARD_URL to another one"
                .to_owned(),
        ),
        ClientError::WrongScheme { right_url, .. } => Some(format!("use {right_url}")),
        ClientError::Disconnected { sandbox, pid, .. } => Some(format!(
            "`sandyard attach {sandbox} {pid}` reconnects to the command, or prints its result if it has ended"
        )),
        // The server's hints name HTTP requests.
        ClientError::Api(refusal) => match refusal.code.as_str() {
            "sandbox_not_found" => Some("`sandyard ls` lists your sandboxes".to_owned()),
            "unauthenticated" => Some(global::missing_key_reason().unwrap_or_else(|| {
                "set SANDYARD_API_KEY or run `sandyard login`; on the server's host, --data-dir DIR finds the admin key"
                    .to_owned()
            })),
            // Only an admin can make such a key.
            _ if refusal.hint.as_deref().is_some_and(|hint| hint.contains("--scope admin")) => {
                Some("only an admin can do this: ask an admin of the server".to_owned())
            }
            _ => match refusal.hint.as_deref() {
                Some(hint) => Some(replace_request(hint)),
                None if is_about_template(refusal) => {
                    Some("`sandyard template ls` lists the templates".to_owned())
                }
                None => None,
            },
        },
        _ => None,
    }
}

/// Requests in the server's hints, and the commands that send them.
const COMMANDS: [(&str, &str); 6] = [
    ("GET /secrets", "`sandyard secret ls`"),
    ("GET /templates", "`sandyard template ls`"),
    ("GET /volumes", "`sandyard volume ls`"),
    ("GET /health", "`sandyard provider ls`"),
    ("GET /sandboxes/{id}/events", "`sandyard events ID`"),
    ("GET /sandboxes", "`sandyard ls`"),
];

fn replace_request(hint: &str) -> String {
    match COMMANDS.iter().find(|(request, _)| hint.contains(request)) {
        Some((request, command)) => hint.replacen(request, command, 1),
        None => hint.to_owned(),
    }
}

/// Returns whether the server did not find the template.
fn is_about_template(refusal: &ApiError) -> bool {
    let is_named = |field: &String| field == "template" || field == "template_id";
    refusal.field.as_ref().is_some_and(is_named)
        || (refusal.status == 404 && refusal.detail.contains("template"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_hints_become_commands() {
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
            assert_eq!(replace_request(hint), expected);
        }
    }

    #[test]
    fn fields_of_requests_become_options() {
        let body = |field: &str| {
            let body = format!(r#"{{"detail":"`alias` is too long"{field}}}"#);
            ApiError {
                detail: "`alias` is too long".to_owned(),
                ..parse(&body)
            }
        };
        let error = |refusal| anyhow::Error::new(ClientError::Api(Box::new(refusal)));
        let named = error(body(r#","field":"alias""#));
        assert_eq!(with_option_names(&named), "`--name` is too long");
        assert_eq!(with_option_names(&error(body(""))), "`alias` is too long");
        assert_eq!(
            with_option_names(&anyhow::anyhow!("`alias` x")),
            "`alias` x"
        );
    }

    #[test]
    fn a_user_who_is_no_admin_is_sent_to_one() {
        let refusal =
            parse(r#"{"detail":"no","hint":"make a key with `key add --scope admin NAME`"}"#);
        let hint = client_hint(&ClientError::Api(Box::new(refusal))).unwrap();
        assert!(hint.contains("ask an admin"), "{hint}");
    }

    fn parse(body: &str) -> ApiError {
        ApiError::from_body(403.try_into().unwrap(), None, body.as_bytes())
    }

    #[test]
    fn an_untrusted_certificate_has_its_own_hint() {
        let error = anyhow::Error::new(ClientError::Untrusted {
            url: "https://yard.example".to_owned(),
            source: "invalid peer certificate: UnknownIssuer".into(),
        });
        assert!(hint(&error).is_some_and(|hint| hint.contains("--ca-cert FILE")));
    }

    #[test]
    fn the_hint_for_an_unreachable_server_says_how_to_start_it() {
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
