//! The directory `/workspace`, which every sandbox of this dialect has.

use sandyard_agent_client::wire::Code;
use sandyard_service::{Command, Live, RunRequest};

use super::view::WORKSPACE;
use crate::call::Call;
use crate::error::ApiResult;

/// Creates the directory for the sandbox's user, unless it exists. The agent creates it as its user; if the user may
/// not write to `/`, root creates it.
pub(crate) async fn ensure(call: &Call, live: &Live) -> ApiResult<()> {
    match live.agent.make_dir(WORKSPACE).await {
        Ok(_) => return Ok(()),
        Err(error) if error.code() == Some(Code::AlreadyExists) => return Ok(()),
        Err(error) if error.code() == Some(Code::PermissionDenied) => {}
        Err(error) => return Err(error.into()),
    }
    let home = live.agent.stat(".").await?;
    let owner = format!("{}:{}", home.owner, home.group);
    for argv in [
        vec!["mkdir", "-p", WORKSPACE],
        vec!["chown", &owner, WORKSPACE],
    ] {
        let argv = argv.into_iter().map(str::to_owned).collect();
        let request = RunRequest {
            user: Some("root".to_owned()),
            cwd: Some("/".to_owned()),
            ..RunRequest::new(Command::Argv(argv))
        };
        call.service()
            .run_command(&call.caller, live, request)
            .await?;
    }
    Ok(())
}
