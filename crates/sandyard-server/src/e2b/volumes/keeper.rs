//! What is asked of the agent that sees a volume.
//!
//! The agent tells of files less than this dialect shows, so programs of the keeper are run instead: without a shell, with
//! paths that begin with a slash. Links are followed inside the keeper, where nothing is but the volume.

use std::time::Duration;

use sandyard_agent_client::wire::process::ProcessConfig;
use sandyard_agent_client::{AgentClient, Output, RunOptions};
use sandyard_core::{Caller, ErrorKind};
use sandyard_provider::VOLUME_PATH;
use sandyard_service::ServiceError;

use super::entry::{E2bVolumeEntry, FORMAT, clean, read_all};
use super::problem;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;

/// How long a program may take: a large folder takes its time to remove.
const PATIENCE: Duration = Duration::from_secs(300);
/// Most that is read of a listing.
const MAX_LISTING: usize = 32 << 20;

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
    /// Refuses a mode that is none.
    pub(super) fn check(self) -> Result<Self, ServiceError> {
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
pub(super) struct Keeper {
    pub(super) agent: AgentClient,
    /// As seen from the volume's root.
    pub(super) path: String,
}

impl Keeper {
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
        Ok(Self {
            agent,
            path: clean(path),
        })
    }

    /// Where the path is for the agent.
    pub(super) fn inside(&self) -> String {
        inside(&self.path)
    }

    /// What is known of the path; of the link itself, if it is one.
    pub(super) async fn stat(&self) -> Result<E2bVolumeEntry, ApiError> {
        let found = self.try_stat().await?;
        Ok(found.ok_or_else(|| self.not_found())?)
    }

    /// The same; none: there is nothing.
    pub(super) async fn try_stat(&self) -> Result<Option<E2bVolumeEntry>, ApiError> {
        let inside = self.inside();
        let output = self
            .run(
                "find",
                &["-P", &inside, "-maxdepth", "0", "-printf", FORMAT],
            )
            .await?;
        match self.read(&output)?.pop() {
            Some(entry) => Ok(Some(entry)),
            None => match self.problem(&output, "look at") {
                error if error.kind == ErrorKind::FileNotFound => Ok(None),
                error => Err(error.into()),
            },
        }
    }

    /// What a folder holds, down to some depth; of a link, the folder it leads to.
    pub(super) async fn list(&self, depth: u32) -> Result<Vec<E2bVolumeEntry>, ApiError> {
        let (folder, depth) = (format!("{}/.", self.inside()), depth.to_string());
        let arguments = [&folder, "-maxdepth", &depth, "-printf", FORMAT];
        let output = self.run("find", &arguments).await?;
        if output.is_truncated {
            return Err(ServiceError::new(
                ErrorKind::TooLarge,
                "the folder holds more than can be listed at once",
            )
            .hint("list it with a smaller depth, or folder by folder")
            .into());
        }
        let mut entries = self.read(&output)?;
        // The folder comes first. What could not be looked at below it vanished meanwhile.
        match entries.first() {
            Some(folder) if folder.path == self.path => Ok(entries.split_off(1)),
            _ => Err(self.problem(&output, "list").into()),
        }
    }

    /// Makes a folder; with `parents`, also those above it, and one that is there is fine.
    pub(super) async fn make_dir(
        &self,
        attributes: Attributes,
        parents: bool,
    ) -> Result<(), ApiError> {
        let attributes = attributes.or_usual(0o777);
        if !parents {
            self.must("mkdir", &["--", &self.inside()], "make").await?;
            return self.set(&[self.inside()], attributes).await;
        }
        let missing = self.missing().await?;
        // Refused where a file is in its place.
        self.must("mkdir", &["-p", "--", &self.inside()], "make")
            .await?;
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
        }
    }

    /// Sets who owns the path, and who may do what with it.
    pub(super) async fn change(&self, attributes: Attributes) -> Result<(), ApiError> {
        self.set(&[self.inside()], attributes).await
    }

    /// Removes the path with all that is in it.
    pub(super) async fn remove(&self) -> Result<(), ApiError> {
        if self.path == "/" {
            return Err(ServiceError::invalid("path", "the root of a volume stays")
                .hint("remove what is in it, or the volume itself")
                .into());
        }
        self.stat().await?;
        self.must("rm", &["-rf", "--", &self.inside()], "remove")
            .await
    }

    pub(super) fn not_found(&self) -> ServiceError {
        problem::not_found(&self.path)
    }

    /// Which of the path and the folders above it are not there, from the top.
    async fn missing(&self) -> Result<Vec<String>, ApiError> {
        let parts: Vec<&str> = self.path.split('/').skip(1).collect();
        let steps: Vec<String> = (1..=parts.len())
            .map(|count| inside(&format!("/{}", parts[..count].join("/"))))
            .collect();
        let mut arguments = vec!["-L"];
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
            _ => Err(self.problem(&output, doing).into()),
        }
    }

    async fn run(&self, program: &str, arguments: &[&str]) -> Result<Output, ApiError> {
        let process = ProcessConfig {
            cmd: program.to_owned(),
            args: arguments.iter().map(|&text| text.to_owned()).collect(),
            // What programs say is read below.
            envs: [("LC_ALL".to_owned(), "C".to_owned())].into(),
            cwd: Some("/".to_owned()),
        };
        let options = RunOptions {
            timeout: PATIENCE,
            max_output: MAX_LISTING,
            user: None,
        };
        Ok(self.agent.run(process, &options).await?)
    }

    fn read(&self, output: &Output) -> Result<Vec<E2bVolumeEntry>, ServiceError> {
        read_all(&self.path, &output.stdout).ok_or_else(|| {
            ServiceError::new(
                ErrorKind::AgentFailed,
                "what the volume holds cannot be read",
            )
        })
    }

    /// What a program that failed means.
    fn problem(&self, output: &Output, doing: &str) -> ServiceError {
        problem::of(&self.path, &output.stderr, doing)
    }
}

fn inside(path: &str) -> String {
    match path {
        "/" => VOLUME_PATH.to_owned(),
        path => format!("{VOLUME_PATH}{path}"),
    }
}
