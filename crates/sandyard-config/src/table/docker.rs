//! `[docker]`: sandboxes as containers.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

// Addresses are plain text here and in the sections of other providers: their variables belong to other programs too, and what
// nobody uses must not keep the server from starting. Whoever connects says what is wrong.

pub(super) const SECTION: Section = Section {
    name: "docker",
    doc: "For sandboxes as containers, where `docker` is among the providers. Any image will do: the agent is put into it.",
    settings: &[
        Setting::new(
            "docker.host",
            Kind::Text,
            "",
            "Where the daemon is. Whoever reaches it is root on its host, so let it listen on a socket, or with TLS.",
        )
        .env(&["DOCKER_HOST"])
        .otherwise("Docker's usual socket, `unix:///var/run/docker.sock`")
        .example("tcp://docker:2376"),
        Setting::new(
            "docker.tls",
            Kind::Switch,
            "false",
            "Whether to speak TLS with a daemon at a `tcp:` address, and to show it a certificate.",
        )
        .env(&["DOCKER_TLS_VERIFY"]),
        Setting::new(
            "docker.cert_path",
            Kind::Path,
            "",
            "The folder of `ca.pem`, `cert.pem` and `key.pem` for that.",
        )
        .env(&["DOCKER_CERT_PATH"])
        .otherwise("`.docker` in the home folder")
        .example("/certs/client"),
        Setting::new(
            "docker.image",
            Kind::Text,
            "python:3.13",
            "The image of a sandbox whose maker names no template.",
        )
        .env(&["DOCKER_IMAGE", "SANDBOX_IMAGE"]),
        Setting::new(
            "docker.pull",
            Kind::Choice(&["missing", "always", "never"]),
            "missing",
            "When images are fetched from a registry.",
        ),
        Setting::new(
            "docker.runtime",
            Kind::Text,
            "",
            "The runtime of containers, such as `runsc` (gVisor) or `kata-runtime`. The daemon must know it.",
        )
        .env(&["DOCKER_RUNTIME"])
        .otherwise("the daemon's own default")
        .example("runsc"),
        Setting::new(
            "docker.network",
            Kind::Text,
            "gateway",
            "How containers are connected: `gateway` by nothing but this server's gateway, which judges and records; or the name of \
             a network of Docker's, such as `bridge`, where no policy of a sandbox holds.",
        )
        .env(&["DOCKER_NETWORK"]),
        Setting::new(
            "docker.user",
            Kind::Text,
            "",
            "Who commands run as.",
        )
        .otherwise("the image's own user, or `user` where that is root")
        .example("node"),
        Setting::new(
            "docker.no_new_privileges",
            Kind::Switch,
            "true",
            "Whether programs inside are kept from gaining rights by being run, as `sudo` does.",
        ),
        Setting::new(
            "docker.seccomp",
            Kind::File,
            "",
            "A system call filter for containers, in Docker's JSON.",
        )
        .otherwise("Docker's own")
        .example("/etc/sandyard/seccomp.json"),
        Setting::new(
            "docker.workspace",
            Kind::Choice(&["volume", "layer"]),
            "volume",
            "Where `/workspace` is kept: in a volume of its own that goes with the sandbox, or with its other files.",
        )
        .env(&["DOCKER_WORKSPACE"]),
        Setting::new(
            "docker.projects",
            Kind::Path,
            "",
            "A folder on the daemon's host: a sandbox made for a project has the folder of that name in it as `/workspace`.",
        )
        .env(&["DOCKER_PROJECTS"])
        .otherwise("projects have no folders")
        .example("/srv/projects"),
    ],
};
