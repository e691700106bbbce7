//! Accounts at registries, as `docker login` has stored them: in `~/.docker/config.json`, or by a credential helper.

use std::env;
use std::path::PathBuf;

use anyhow::bail;
use docker_credential::{CredentialRetrievalError, DockerCredential};
use oci_client::secrets::RegistryAuth;

/// What Docker calls its own registry in its configuration.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// The account of this user; anonymous if there is none.
pub(super) fn of(registry: &str) -> anyhow::Result<RegistryAuth> {
    if !config_file().is_some_and(|file| file.exists()) {
        return Ok(RegistryAuth::Anonymous);
    }
    let key = match registry {
        "index.docker.io" | "docker.io" => DOCKER_HUB,
        other => other,
    };
    match docker_credential::get_credential(key) {
        Ok(DockerCredential::UsernamePassword(user, password)) => {
            Ok(RegistryAuth::Basic(user, password))
        }
        Ok(DockerCredential::IdentityToken(_)) => bail!(
            "the account of `{registry}` is an identity token, which is not supported\nhint: log in with a password or an access token"
        ),
        Err(
            CredentialRetrievalError::NoCredentialConfigured
            | CredentialRetrievalError::ConfigNotFound,
        ) => Ok(RegistryAuth::Anonymous),
        Err(error) => Err(anyhow::Error::new(error).context(format!(
            "reading the account of `{registry}` from Docker's configuration"
        ))),
    }
}

/// Docker's configuration of this user.
fn config_file() -> Option<PathBuf> {
    let folder = match env::var_os("DOCKER_CONFIG") {
        Some(folder) => PathBuf::from(folder),
        None => env::home_dir()?.join(".docker"),
    };
    Some(folder.join("config.json"))
}
