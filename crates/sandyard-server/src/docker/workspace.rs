//! The directory of the files of a project, which every sandbox of this dialect has.

use sandyard_agent_client::wire::Code;
use sandyard_service::{Command, Live, RunRequest};

use crate::call::Call;
use crate::error::ApiResult;

/// The directory, if the operator sets none.
const WORKSPACE: &str = "/workspace";

/// The directory.
pub(crate) fn path(call: &Call) -> &str {
    let workdir = call.app.settings().workdir.as_deref();
    workdir.unwrap_or(WORKSPACE)
}

/// Creates the directory for the sandbox's user, unless it exists. The agent creates it as its user; if the user may
/// not write to `/`, root creates it.
pub(crate) async fn ensure(call: &Call, live: &Live) -> ApiResult<()> {
    let path = path(call);
    match live.agent.make_dir(path).await {
        Ok(_) => return Ok(()),
        Err(error) if error.code() == Some(Code::AlreadyExists) => return Ok(()),
        Err(error) if error.code() == Some(Code::PermissionDenied) => {}
        Err(error) => return Err(error.into()),
    }
    let home = live.agent.stat(".").await?;
    let owner = format!("{}:{}", home.owner, home.group);
    for argv in [vec!["mkdir", "-p", path], vec!["chown", &owner, path]] {
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
