//! Docker in the registry: its settings, and how it is connected from them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandyard_config::{Kind, ProviderSettings, Section, Setting};
use sandyard_provider::{Capabilities, Provider};

use super::{Docker, DockerConfig, DockerNetwork, NAME, Pull, Workspace};
use crate::CallTimeouts;
use crate::registry::{ConnectContext, Connecting, Registration, connect_later, start_gateway};

/// Docker in the registry.
pub static REGISTRATION: Registration = Registration {
    settings: ProviderSettings {
        name: NAME,
        summary: "in containers of a Docker daemon",
        section: Some(SECTION),
    },
    capabilities: Capabilities::ALL,
    connect,
};

// URLs are plain text here and in the sections of other providers: other programs use the same variables, and an invalid value for a
// provider that is not enabled must not keep the server from starting. Connecting reports what is wrong.

const SECTION: Section = Section {
    name: "docker",
    doc: "Sandboxes as containers, if the provider `docker` is enabled. Any image works: the server installs the agent in it.",
    settings: &[
        Setting::new("docker.host", Kind::Text)
            .doc("URL of the Docker daemon. Access to it is root access to its host, so let it listen on a Unix socket or with TLS.")
            .env(&["DOCKER_HOST"])
            .when_unset("Docker's default socket, `unix:///var/run/docker.sock`")
            .example("tcp://docker:2376"),
        Setting::new("docker.tls", Kind::Switch)
            .default("false")
            .doc("Whether to use TLS with a client certificate for a daemon at a `tcp:` URL.")
            .env(&["DOCKER_TLS_VERIFY"]),
        Setting::new("docker.cert_path", Kind::Path)
            .doc("Directory of `ca.pem`, `cert.pem` and `key.pem` for `docker.tls`.")
            .env(&["DOCKER_CERT_PATH"])
            .when_unset("`.docker` in the home directory")
            .example("/certs/client"),
        Setting::new("docker.image", Kind::Text)
            .default("python:3.13")
            .doc("Image of a sandbox, if the create request names no template.")
            .env(&["DOCKER_IMAGE", "SANDBOX_IMAGE"]),
        Setting::new("docker.pull", Kind::Choice(&["missing", "always", "never"]))
            .default("missing")
            .doc("When images are pulled from a registry."),
        Setting::new("docker.runtime", Kind::Text)
            .doc("Container runtime, such as `runsc` (gVisor) or `kata-runtime`. It must be configured in the daemon.")
            .env(&["DOCKER_RUNTIME"])
            .when_unset("the daemon's default")
            .example("runsc"),
        Setting::new("docker.network", Kind::Text)
            .default("gateway")
            .doc("Network of containers. With `gateway` all traffic passes through this server's gateway, which applies and records the \
             policy. With the name of a Docker network, such as `bridge`, policies of sandboxes do not apply.")
            .env(&["DOCKER_NETWORK"]),
        Setting::new("docker.user", Kind::Text)
            .doc("User that runs commands.")
            .when_unset("the image's user, or `user` if that is root")
            .example("node"),
        Setting::new("docker.no_new_privileges", Kind::Switch)
            .default("true")
            .doc("Whether to prevent programs from gaining privileges, as `sudo` does."),
        Setting::new("docker.seccomp", Kind::File)
            .doc("Path of a seccomp profile for containers, in Docker's JSON format.")
            .when_unset("Docker's default profile")
            .example("/etc/sandyard/seccomp.json"),
        Setting::new("docker.workspace", Kind::Choice(&["volume", "layer"]))
            .default("volume")
            .doc("Where `/workspace` is stored: `volume` is a volume that is deleted with the sandbox, `layer` is the container's file system.")
            .env(&["DOCKER_WORKSPACE"]),
        Setting::new("docker.projects", Kind::Path)
            .doc("Directory on the daemon's host. A sandbox with a project has the subdirectory of that name as `/workspace`.")
            .env(&["DOCKER_PROJECTS"])
            .when_unset("projects have no directories")
            .example("/srv/projects"),
    ],
};

fn connect(context: ConnectContext<'_>) -> Connecting<'_> {
    Box::pin(async move {
        let config = config(context)?;
        let placeholder = context.placeholder(NAME, &config.image);
        let gateway = context.gateway_settings();
        let grace = context.settings.lifecycle.orphan_grace;
        let connect = move || {
            let (config, gateway) = (config.clone(), gateway.clone());
            async move {
                let docker = Docker::connect(config).await?;
                let (gateway, flows) = start_gateway(gateway)?;
                let docker = docker.with_gateway(gateway, flows).with_grace(grace);
                Ok(Arc::new(docker) as Arc<dyn Provider>)
            }
        };
        Ok(connect_later(placeholder, connect).await)
    })
}

fn config(context: ConnectContext<'_>) -> sandyard_provider::Result<DockerConfig> {
    let values = &context.settings.values;
    let cert_path = || {
        values
            .path("docker.cert_path")
            .unwrap_or_else(default_cert_path)
    };
    Ok(DockerConfig {
        host: context.maybe_text("docker.host"),
        cert_path: values.switch("docker.tls").then(cert_path),
        installation: context.installation.to_owned(),
        tools_port: context.settings.sandbox.mcp_port,
        sealing_key: context.sealing_key,
        program: context.program()?,
        image: context.text("docker.image"),
        pull: match values.text("docker.pull") {
            Some("always") => Pull::Always,
            Some("never") => Pull::Never,
            _ => Pull::Missing,
        },
        runtime: context.maybe_text("docker.runtime"),
        network: match values.text("docker.network") {
            None | Some("gateway") => DockerNetwork::Gateway,
            Some(name) => DockerNetwork::Existing(name.to_owned()),
        },
        user: context.maybe_text("docker.user"),
        has_new_privileges: !values.switch("docker.no_new_privileges"),
        seccomp: values.path("docker.seccomp"),
        workspace: match values.text("docker.workspace") {
            Some("layer") => Workspace::Layer,
            _ => Workspace::Volume,
        },
        projects: values.path("docker.projects"),
        limits: context.settings.limits.remote_provider_limits(),
        timeouts: CallTimeouts::default(),
    })
}

/// Default path of Docker's own programs.
fn default_cert_path() -> PathBuf {
    let home = std::env::var_os("HOME").unwrap_or_default();
    Path::new(&home).join(".docker")
}
