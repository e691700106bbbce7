//! What is asked of the agent that sees a volume.
//!
//! The agent tells of files less than this dialect shows, so programs of the keeper are run instead: without a shell, with
//! paths that begin with a slash. Links are followed beforehand, see [`super::real_path`]: what they name outside the volume is
//! the keeper's own.

use axum::body::Bytes;
use sandyard_agent_client::{AgentClient, Output};
use sandyard_core::{Caller, ErrorKind};
use sandyard_provider::VOLUME_PATH;
use sandyard_service::ServiceError;

use super::entry::{E2bVolumeEntry, FORMAT, clean, read_all};
use super::program::{process, run_options};
use super::real_path::RealPath;
use super::{error, listing};
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;

/// The highest id inside a sandbox.
const MAX_ID: u32 = 65_535;

/// Who owns what is made when nobody says: the first ordinary user of a sandbox.
const DEFAULT_ID: u32 = 1000;

/// Who is to own something, and who may do what with it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attributes {
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) mode: Option<u32>,
}

impl Attributes {
    /// Refuses a mode that is none, and ids that no sandbox has.
    pub(super) fn check(self) -> Result<Self, ServiceError> {
        for (field, id) in [("uid", self.uid), ("gid", self.gid)] {
            if id.is_some_and(|id| id > MAX_ID) {
                return Err(ServiceError::invalid(
                    field,
                    format!("ids are 0 to {MAX_ID} in sandboxes"),
                ));
            }
        }
        match self.mode {
            Some(mode) if mode > 0o7777 => Err(ServiceError::invalid(
                "mode",
                format!("`mode` is at most {}, which is 0o7777", 0o7777),
            )),
            _ => Ok(self),
        }
    }

    /// The same, with the usual values for what nobody said.
    pub(super) fn or_usual(self, mode: u32) -> Self {
        Self {
            uid: self.uid.or(Some(DEFAULT_ID)),
            gid: self.gid.or(Some(DEFAULT_ID)),
            mode: self.mode.or(Some(mode)),
        }
    }
}

/// A path of a volume, and the agent that sees it.
pub(super) struct VolumePath {
    pub(super) agent: AgentClient,
    /// As seen from the volume's root.
    pub(super) path: String,
    /// Where that is for the agent.
    real: RealPath,
}

impl VolumePath {
    /// Opens a volume to do something with a path of it.
    pub(super) async fn open(
        app: &App,
        caller: &Caller,
        volume: &str,
        path: &str,
    ) -> Result<Self, ApiError> {
        // Empty is the root for some clients.
        bounds::text("path", path, 0, bounds::MAX_PATH)?;
        let agent = app.service().open_volume(caller, volume).await?;
        let path = clean(path);
        let answer = agent.run(RealPath::question(&path), &run_options()).await;
        let answer = answer.map_err(error::with_client_paths)?;
        let real = RealPath::read(&path, &answer)?;
        Ok(Self { agent, path, real })
    }

    /// Where the path is for the agent, and if it is a link, where that leads. Refused if that is not in the volume.
    pub(super) fn inside(&self) -> Result<String, ServiceError> {
        self.real.end(&self.path)
    }

    /// What is known of the path; of the link itself, if it is one.
    pub(super) async fn stat(&self) -> Result<E2bVolumeEntry, ApiError> {
        let found = self.try_stat().await?;
        Ok(found.ok_or_else(|| self.not_found())?)
    }

    /// The same; none: there is nothing.
    pub(super) async fn try_stat(&self) -> Result<Option<E2bVolumeEntry>, ApiError> {
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

    /// What a folder holds, down to some depth, as JSON; of a link, the folder it leads to.
    pub(super) async fn list(&self, depth: u32) -> Result<Bytes, ApiError> {
        let (folder, depth) = (format!("{}/.", self.inside()?), depth.to_string());
        let arguments = [&folder, "-maxdepth", &depth, "-printf", FORMAT];
        Ok(listing::list(&self.agent, process("find", &arguments), &self.path).await?)
    }

    /// Makes a folder; with `parents`, also those above it, and one that is there is fine.
    pub(super) async fn make_dir(
        &self,
        attributes: Attributes,
        parents: bool,
    ) -> Result<(), ApiError> {
        let attributes = attributes.or_usual(0o777);
        if !parents {
            let itself = self.real.itself();
            self.must("mkdir", &["--", itself], "make").await?;
            return self.set(&[itself.to_owned()], attributes).await;
        }
        let inside = self.inside()?;
        let missing = self.missing(&inside).await?;
        // Refused where a file is in its place.
        self.must("mkdir", &["-p", "--", &inside], "make").await?;
        let Some((last, above)) = missing.split_last() else {
            return Ok(());
        };
        if !above.is_empty() {
            let usual = Attributes {
                mode: Some(0o777),
                ..attributes
            };
            self.set(above, usual).await?;
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

    /// Sets who owns the path, and who may do what with it.
    pub(super) async fn change(&self, attributes: Attributes) -> Result<(), ApiError> {
        self.set(&[self.inside()?], attributes).await
    }

    /// Removes the path with all that is in it.
    pub(super) async fn remove(&self) -> Result<(), ApiError> {
        if self.path == "/" {
            return Err(ServiceError::invalid("path", "the root of a volume stays")
                .hint("remove what is in it, or the volume itself")
                .into());
        }
        self.stat().await?;
        self.must("rm", &["-rf", "--", self.real.itself()], "remove")
            .await
    }

    pub(super) fn not_found(&self) -> ServiceError {
        error::not_found(&self.path)
    }

    /// Which of the path and the folders above it are not there, from the top.
    async fn missing(&self, inside: &str) -> Result<Vec<String>, ApiError> {
        let below = inside.strip_prefix(VOLUME_PATH).unwrap_or_default();
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

    async fn set(&self, paths: &[String], attributes: Attributes) -> Result<(), ApiError> {
        let owner = match (attributes.uid, attributes.gid) {
            (None, None) => None,
            (uid, gid) => {
                let text = |id: Option<u32>| id.map(|id| id.to_string()).unwrap_or_default();
                let gid = gid.map(|gid| format!(":{gid}")).unwrap_or_default();
                Some(format!("{}{gid}", text(uid)))
            }
        };
        let mode = attributes.mode.map(|mode| format!("{mode:o}"));
        // The owner first: giving a file away clears bits of its mode.
        for (program, value) in [("chown", owner), ("chmod", mode)] {
            let Some(value) = value else { continue };
            let mut arguments = vec!["--", &value];
            arguments.extend(paths.iter().map(String::as_str));
            self.must(program, &arguments, "change").await?;
        }
        Ok(())
    }

    /// Runs a program that must do its work.
    async fn must(&self, program: &str, arguments: &[&str], doing: &str) -> Result<(), ApiError> {
        let output = self.run(program, arguments).await?;
        match output.exit.exit_code {
            0 => Ok(()),
            _ => Err(self.failure(&output, doing).into()),
        }
    }

    async fn run(&self, program: &str, arguments: &[&str]) -> Result<Output, ApiError> {
        let process = process(program, arguments);
        let output = self.agent.run(process, &run_options()).await;
        Ok(output.map_err(error::with_client_paths)?)
    }

    /// What a program that failed means.
    fn failure(&self, output: &Output, doing: &str) -> ServiceError {
        error::of(&self.path, &output.stderr, doing)
    }
}
