//! Errors with their causes and what to do about them.

use sandyard_client::ClientError;
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

fn client_hint(error: &ClientError) -> Option<String> {
    match error {
        ClientError::Unreachable { .. } => Some(
            "start it with `./run` or `sandyard serve`, or name another with --url or SANDYARD_URL"
                .to_owned(),
        ),
        // The server speaks of requests; here there are commands for that.
        ClientError::Api(refusal) => match refusal.code.as_str() {
            "sandbox_not_found" => Some("`sandyard ls` lists yours".to_owned()),
            "unauthenticated" => Some(
                "set SANDYARD_API_KEY; on the server's own host, name its data directory with --data-dir"
                    .to_owned(),
            ),
            _ => match refusal.hint.as_deref() {
                Some(hint) if hint.starts_with("GET /secrets ") => {
                    Some("`sandyard secret list` lists those you may use".to_owned())
                }
                hint => hint.map(str::to_owned),
            },
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
