//! Operations on a path of a volume, by the agent of its volume helper.
//!
//! The agent reports fewer attributes than this dialect shows, so programs of the volume helper run instead: without a shell, with paths
//! that begin with a slash. Links are followed beforehand ([`super::real_path`]), since outside the volume they lead to files of the volume
//! helper itself.

use axum::body::Bytes;
use sandyard_agent_client::{AgentClient, Output};
use sandyard_provider::VOLUME_PATH;

use crate::prelude::*;

use super::entry::{E2bVolumeEntry, FORMAT, clean, read_all};
use super::program::{process, run_options};
use super::real_path::RealPath;
use super::{error, listing};

/// Highest user or group id inside a sandbox.
const MAX_ID: u32 = 65_535;

/// Default owner of new files and folders: the first ordinary user of a sandbox.
const DEFAULT_ID: u32 = 1000;

/// Owner and permissions of a file or folder.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attributes {
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) mode: Option<u32>,
}

impl Attributes {
    /// Checks that the ids and the mode are in range.
    pub(super) fn check(self) -> ServiceResult<Self> {
        for (field, id) in [("uid", self.uid), ("gid", self.gid)] {
            if id.is_some_and(|id| id > MAX_ID) {
                return Err(ServiceError::invalid(
                    field,
                    format!("`{field}` must be 0 to {MAX_ID}"),
                ));
            }
        }
        match self.mode {
            Some(mode) if mode > 0o7777 => Err(ServiceError::invalid(
                "mode",
                format!("`mode` must be at most {} (0o7777)", 0o7777),
            )),
            _ => Ok(self),
        }
    }

    /// The same, with default values for missing ones.
    pub(super) fn or_default(self, mode: u32) -> Self {
        Self {
            uid: self.uid.or(Some(DEFAULT_ID)),
            gid: self.gid.or(Some(DEFAULT_ID)),
            mode: self.mode.or(Some(mode)),
        }
    }
}

/// A path of a volume, and the agent of its volume helper.
pub(super) struct VolumePath {
    pub(super) agent: AgentClient,
    /// Path from the root of the volume.
    pub(super) path: String,
    /// The path as the agent sees it.
    real: RealPath,
}

impl VolumePath {
    /// Opens a path of a volume.
    pub(super) async fn open(call: &Call, volume: &str, path: &str) -> ApiResult<Self> {
        // Some clients send an empty path for the root.
        bounds::text("path", path, 0, bounds::MAX_PATH)?;
        let agent = call.service().open_volume(&call.caller, volume).await?;
        let path = clean(path);
        let answer = agent.run(RealPath::resolver(&path), &run_options()).await;
        let answer = answer.map_err(error::with_client_paths)?;
        let real = RealPath::read(&path, &answer)?;
        Ok(Self { agent, path, real })
    }

    /// The path as the agent sees it, with links followed. Fails if it leads out of the volume.
    pub(super) fn path_in_sandbox(&self) -> ServiceResult<String> {
        self.real.end(&self.path)
    }

    /// Attributes of the path; of a link, those of the link itself.
    pub(super) async fn stat(&self) -> ApiResult<E2bVolumeEntry> {
        let found = self.try_stat().await?;
        Ok(found.ok_or_else(|| self.not_found())?)
    }

    /// The same; none if nothing exists there.
    pub(super) async fn try_stat(&self) -> ApiResult<Option<E2bVolumeEntry>> {
        let itself = self.real.itself();
        let output = self
            .run("find", &["-P", itself, "-maxdepth", "0", "-printf", FORMAT])
            .await?;
        let read = read_all(&self.path, &output.stdout);
        match read.ok_or_else(listing::unreadable)?.pop() {
            Some(entry) => Ok(Some(entry)),
            None => match self.failure(&output, "look at") {
                error if error.kind == ErrorKind::FileNotFound => Ok(None),
                error => Err(error.into()),
            },
        }
    }

    /// The entries of a folder, down to a depth, as JSON. Links are followed.
    pub(super) async fn list(&self, depth: u32) -> ApiResult<Bytes> {
        let (folder, depth) = (format!("{}/.", self.path_in_sandbox()?), depth.to_string());
        let arguments = [&folder, "-maxdepth", &depth, "-printf", FORMAT];
        Ok(listing::list(&self.agent, process("find", &arguments), &self.path).await?)
    }

    /// Creates a folder; with `parents`, also missing ones above it, and an existing one is no error.
    pub(super) async fn make_dir(&self, attributes: Attributes, parents: bool) -> ApiResult<()> {
        let attributes = attributes.or_default(0o777);
        if !parents {
            let itself = self.real.itself();
            self.run_checked("mkdir", &["--", itself], "make").await?;
            return self.set(&[itself.to_owned()], attributes).await;
        }
        let path_in_sandbox = self.path_in_sandbox()?;
        let missing = self.missing(&path_in_sandbox).await?;
        // Fails if the path is a file.
        self.run_checked("mkdir", &["-p", "--", &path_in_sandbox], "make")
            .await?;
        let Some((last, above)) = missing.split_last() else {
            return Ok(());
        };
        if !above.is_empty() {
            let default = Attributes {
                mode: Some(0o777),
                ..attributes
            };
            self.set(above, default).await?;
        }
        self.set(std::slice::from_ref(last), attributes).await
    }

    /// The folder above the path.
    pub(super) fn parent(&self) -> Self {
        let parent = self.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        Self {
            agent: self.agent.clone(),
            path: clean(parent),
            real: self.real.parent(),
        }
    }

    /// Changes owner and permissions of the path.
    pub(super) async fn change(&self, attributes: Attributes) -> ApiResult<()> {
        self.set(&[self.path_in_sandbox()?], attributes).await
    }

    /// Removes the path with everything in it.
    pub(super) async fn remove(&self) -> ApiResult<()> {
        if self.path == "/" {
            return Err(
                ServiceError::invalid("path", "the root of a volume cannot be removed")
                    .hint("remove its entries, or delete the volume")
                    .into(),
            );
        }
        self.stat().await?;
        self.run_checked("rm", &["-rf", "--", self.real.itself()], "remove")
            .await
    }

    pub(super) fn not_found(&self) -> ServiceError {
        error::not_found(&self.path)
    }

    /// The missing ones of the path and the folders above it, from the top.
    async fn missing(&self, path_in_sandbox: &str) -> ApiResult<Vec<String>> {
        let below = path_in_sandbox
            .strip_prefix(VOLUME_PATH)
            .unwrap_or_default();
        let ends = below.match_indices('/').skip(1).map(|(at, _)| at);
        let steps: Vec<String> = ends
            .chain([below.len()])
            .map(|end| format!("{VOLUME_PATH}{}", &below[..end]))
            .collect();
        let mut arguments = vec!["-P"];
        arguments.extend(steps.iter().map(String::as_str));
        arguments.extend(["-maxdepth", "0", "-printf", "x"]);
        let output = self.run("find", &arguments).await?;
        let there = output.stdout.len().min(steps.len());
        Ok(steps[there..].to_vec())
    }

    async fn set(&self, paths: &[String], attributes: Attributes) -> ApiResult<()> {
        let owner = match (attributes.uid, attributes.gid) {
            (None, None) => None,
            (uid, gid) => {
                let text = |id: Option<u32>| id.map(|id| id.to_string()).unwrap_or_default();
                let gid = gid.map(|gid| format!(":{gid}")).unwrap_or_default();
                Some(format!("{}{gid}", text(uid)))
            }
        };
        let mode = attributes.mode.map(|mode| format!("{mode:o}"));
        // The owner first: chown(2) clears bits of the mode.
        for (program, value) in [("chown", owner), ("chmod", mode)] {
            let Some(value) = value else { continue };
            let mut arguments = vec!["--", &value];
            arguments.extend(paths.iter().map(String::as_str));
            self.run_checked(program, &arguments, "change").await?;
        }
        Ok(())
    }

    /// Runs a program, and fails if it fails.
    async fn run_checked(
        &self,
        program: &str,
        arguments: &[&str],
        operation: &str,
    ) -> ApiResult<()> {
        let output = self.run(program, arguments).await?;
        match output.exit.exit_code {
            0 => Ok(()),
            _ => Err(self.failure(&output, operation).into()),
        }
    }

    async fn run(&self, program: &str, arguments: &[&str]) -> ApiResult<Output> {
        let process = process(program, arguments);
        let output = self.agent.run(process, &run_options()).await;
        Ok(output.map_err(error::with_client_paths)?)
    }

    /// The failure of a program.
    fn failure(&self, output: &Output, operation: &str) -> ServiceError {
        error::of(&self.path, &output.stderr, operation)
    }
}
