//! `[docker]`, `[e2b_cloud]`, `[daytona]` and `[fake]`, typed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::sandbox::SandboxSettings;
use crate::secret::Secret;
use crate::values::Values;

/// `[docker]`: sandboxes as containers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DockerSettings {
    /// Where the daemon is; `None` for Docker's usual socket.
    pub host: Option<String>,
    /// Whether TLS is spoken with it.
    pub is_tls: bool,
    /// The folder of certificates; `None` for the usual one.
    pub cert_path: Option<PathBuf>,
    /// The image when none is named.
    pub image: String,
    /// When images are fetched.
    pub pull: PullWhen,
    /// The runtime; `None` for the daemon's default.
    pub runtime: Option<String>,
    /// The network of Docker's; `None` for the gateway.
    pub network: Option<String>,
    /// Who commands run as; `None` for the image's user.
    pub user: Option<String>,
    /// Whether programs gain no rights by being run.
    pub is_no_new_privileges: bool,
    /// A system call filter; `None` for Docker's own.
    pub seccomp: Option<PathBuf>,
    /// Whether `/workspace` is a volume of its own.
    pub has_workspace_volume: bool,
    /// The folder of projects.
    pub projects: Option<PathBuf>,
}

/// When images are fetched from a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum PullWhen {
    Missing,
    Always,
    Never,
}

/// `[e2b_cloud]`: sandboxes of E2B.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct E2bCloudSettings {
    /// The account's key.
    pub api_key: Option<Secret>,
    /// The domain.
    pub domain: String,
    /// Where the API is; `None` for what follows from the domain.
    pub api_url: Option<String>,
    /// Where sandboxes are; `None` for what follows from the domain.
    pub sandbox_url: Option<String>,
    /// The template when none is named.
    pub template: String,
    /// After how long without this server a sandbox is paused.
    pub timeout: Duration,
    /// More authorities to trust, in PEM.
    pub trusted_ca: Option<PathBuf>,
}

/// `[daytona]`: sandboxes of Daytona.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DaytonaSettings {
    /// The account's key.
    pub api_key: Option<Secret>,
    /// Where the API is.
    pub server_url: String,
    /// The region; `None` for the account's default.
    pub target: Option<String>,
    /// The snapshot when none is named; `None` for Daytona's default.
    pub snapshot: Option<String>,
    /// After how long without use a sandbox is paused or stopped.
    pub auto_stop: Duration,
    /// After how long a stopped one is archived.
    pub auto_archive: Duration,
    /// More authorities to trust, in PEM.
    pub trusted_ca: Option<PathBuf>,
}

/// `[fake]`: sandboxes that are none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FakeSettings {
    /// What commands answer.
    pub rules: Option<PathBuf>,
    /// Makes ids and times the same in every run.
    pub seed: Option<u64>,
}

impl DockerSettings {
    pub(super) fn build(values: &Values, working_dir: &Path) -> Self {
        Self {
            host: owned(values, "docker.host"),
            is_tls: values.switch("docker.tls"),
            cert_path: values.path("docker.cert_path", working_dir),
            image: owned(values, "docker.image").unwrap_or_default(),
            pull: match values.text("docker.pull") {
                Some("always") => PullWhen::Always,
                Some("never") => PullWhen::Never,
                _ => PullWhen::Missing,
            },
            runtime: owned(values, "docker.runtime"),
            network: owned(values, "docker.network").filter(|name| name != "gateway"),
            user: owned(values, "docker.user"),
            is_no_new_privileges: values.switch("docker.no_new_privileges"),
            seccomp: values.path("docker.seccomp", working_dir),
            has_workspace_volume: values.text("docker.workspace") != Some("layer"),
            projects: values.path("docker.projects", working_dir),
        }
    }
}

impl E2bCloudSettings {
    pub(super) fn build(values: &Values, working_dir: &Path, sandbox: &SandboxSettings) -> Self {
        let said = (!values.is_given("e2b_cloud.template"))
            .then(|| sandbox.e2b_template.clone())
            .flatten();
        Self {
            api_key: secret(values, "e2b_cloud.api_key"),
            domain: owned(values, "e2b_cloud.domain").unwrap_or_default(),
            api_url: owned(values, "e2b_cloud.api_url"),
            sandbox_url: owned(values, "e2b_cloud.sandbox_url"),
            template: said
                .or_else(|| owned(values, "e2b_cloud.template"))
                .unwrap_or_default(),
            timeout: values.duration("e2b_cloud.timeout"),
            trusted_ca: values.path("e2b_cloud.trusted_ca", working_dir),
        }
    }
}

impl DaytonaSettings {
    pub(super) fn build(values: &Values, working_dir: &Path) -> Self {
        Self {
            api_key: secret(values, "daytona.api_key"),
            server_url: owned(values, "daytona.server_url").unwrap_or_default(),
            target: owned(values, "daytona.target"),
            snapshot: owned(values, "daytona.snapshot"),
            auto_stop: values.duration("daytona.auto_stop"),
            auto_archive: values.duration("daytona.auto_archive"),
            trusted_ca: values.path("daytona.trusted_ca", working_dir),
        }
    }
}

impl FakeSettings {
    pub(super) fn build(values: &Values, working_dir: &Path) -> Self {
        Self {
            rules: values.path("fake.rules", working_dir),
            seed: values.maybe_small("fake.seed"),
        }
    }
}

fn owned(values: &Values, key: &str) -> Option<String> {
    values.text(key).map(str::to_owned)
}

fn secret(values: &Values, key: &str) -> Option<Secret> {
    owned(values, key).map(Secret::new)
}
