//! `sandyard template pull`: an image of a registry, sent to the server as `docker save` would write it.
//!
//! The client talks to the registry, with the user's own credentials, so no server needs them. Nothing is stored on the way.

use std::io;
use std::time::Duration;

use anyhow::{Context as _, bail};
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::manifest::{OciDescriptor, OciImageManifest};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWriteExt as _, DuplexStream};
use tokio::task::JoinHandle;
use tokio_util::io::StreamReader;

use super::credentials;

/// Bytes between the registry and the server.
const BUFFER: usize = 1 << 20;
/// A registry that sends nothing for this long is asked again.
const SILENCE: Duration = Duration::from_secs(60);
/// How often a layer is continued.
const ATTEMPTS: u32 = 5;
const BLOCK: u64 = 512;

/// An image that is about to be sent.
#[derive(Debug)]
pub(in crate::commands) struct Image {
    reference: Reference,
    manifest: OciImageManifest,
    configuration: String,
}

/// Asks the registry for an image of this platform.
pub(in crate::commands) async fn find(
    name: &str,
    is_plain: bool,
) -> anyhow::Result<(Client, Image)> {
    let reference: Reference = name
        .parse()
        .with_context(|| format!("`{name}` is not the name of an image"))?;
    let registry = reference.resolve_registry().to_owned();
    let protocol = match is_plain || is_loopback(&registry) {
        true => ClientProtocol::HttpsExcept(vec![registry.clone()]),
        false => ClientProtocol::Https,
    };
    let config = ClientConfig {
        protocol,
        read_timeout: Some(SILENCE),
        connect_timeout: Some(SILENCE),
        user_agent: concat!("sandyard/", env!("CARGO_PKG_VERSION")),
        ..ClientConfig::default()
    };
    // The library takes the process's own. Another call may have set it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::try_from(config).context("preparing to connect to the registry")?;
    let auth = credentials::of(&registry)?;
    let pulled = client.pull_manifest_and_config(&reference, &auth).await;
    let (manifest, _, configuration) = pulled.map_err(|error| explain(error, &reference, &auth))?;
    let image = Image {
        reference,
        manifest,
        configuration,
    };
    Ok((client, image))
}

/// Docker, too, speaks plain HTTP to registries of this host.
fn is_loopback(registry: &str) -> bool {
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse()
            .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

fn explain(error: OciDistributionError, image: &Reference, auth: &RegistryAuth) -> anyhow::Error {
    let registry = image.resolve_registry();
    let is_missing = match &error {
        OciDistributionError::ImageManifestNotFoundError(_) => true,
        OciDistributionError::RegistryError { envelope, .. } => {
            envelope.errors.iter().any(|error| {
                matches!(
                    error.code,
                    OciErrorCode::ManifestUnknown | OciErrorCode::NameUnknown
                )
            })
        }
        _ => false,
    };
    let is_denied = matches!(
        &error,
        OciDistributionError::UnauthorizedError { .. }
            | OciDistributionError::AuthenticationFailure(_)
    );
    if is_missing {
        return anyhow::anyhow!("`{registry}` has no image `{image}`");
    }
    if is_denied {
        let hint = match auth {
            RegistryAuth::Anonymous => format!("hint: log in with `docker login {registry}`"),
            _ => format!("hint: check the account that `docker login {registry}` has stored"),
        };
        return anyhow::anyhow!(
            "`{registry}` does not give access to `{image}`, or does not have it\n{hint}"
        );
    }
    anyhow::Error::new(error).context(format!("asking `{registry}` for `{image}`"))
}

impl Image {
    /// The name of a template for it: the last part of its name, with its tag.
    pub(in crate::commands) fn template_name(&self) -> String {
        let repository = self.reference.repository();
        let base = repository.rsplit('/').next().unwrap_or(repository);
        match self.reference.tag().filter(|tag| *tag != "latest") {
            Some(tag) => format!("{base}-{tag}").to_lowercase(),
            None => base.to_owned(),
        }
    }

    /// What will be downloaded, in bytes.
    pub(in crate::commands) fn size_bytes(&self) -> u64 {
        self.manifest.layers.iter().map(size_of).sum()
    }

    /// The image as an archive, and the download that fills it.
    pub(in crate::commands) fn archive(
        self,
        client: Client,
    ) -> (
        impl AsyncRead + Send + Unpin + 'static,
        JoinHandle<anyhow::Result<()>>,
    ) {
        let (archive, sink) = tokio::io::duplex(BUFFER);
        (archive, tokio::spawn(self.download(client, sink)))
    }

    async fn download(self, client: Client, mut sink: DuplexStream) -> anyhow::Result<()> {
        let layers = &self.manifest.layers;
        let paths: Vec<_> = (0..layers.len())
            .map(|number| format!("layers/{number}"))
            .collect();
        let manifest = json!([{ "Config": "config.json", "Layers": paths }]).to_string();
        add_file(&mut sink, "manifest.json", manifest.as_bytes()).await?;
        add_file(&mut sink, "config.json", self.configuration.as_bytes()).await?;
        for (layer, path) in layers.iter().zip(&paths) {
            let size = size_of(layer);
            write(&mut sink, header(path, size)?.as_bytes()).await?;
            self.copy_layer(&client, layer, &mut sink).await?;
            pad(&mut sink, size).await?;
        }
        write(&mut sink, &[0; 2 * BLOCK as usize]).await
    }

    /// Copies a layer, going on where a connection ends early.
    async fn copy_layer(
        &self,
        client: &Client,
        layer: &OciDescriptor,
        sink: &mut DuplexStream,
    ) -> anyhow::Result<()> {
        let (size, mut done) = (size_of(layer), 0);
        let mut attempt = 1;
        while done < size {
            let before = done;
            let copied = self.copy_from(client, layer, &mut done, sink).await;
            if done > before {
                attempt = 1;
            }
            match copied {
                Ok(()) if done == size => {}
                // The server has gone away, and says why itself.
                Err(error) if error.is::<Closed>() => return Err(error),
                _ if attempt < ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(Duration::from_millis(200) * attempt).await;
                }
                Ok(()) => bail!("layer {} is shorter than its manifest says", layer.digest),
                Err(error) => {
                    return Err(error.context(format!("downloading layer {}", layer.digest)));
                }
            }
        }
        Ok(())
    }

    async fn copy_from(
        &self,
        client: &Client,
        layer: &OciDescriptor,
        done: &mut u64,
        sink: &mut DuplexStream,
    ) -> anyhow::Result<()> {
        use oci_client::client::BlobResponse;
        use tokio::io::AsyncReadExt as _;
        let (stream, mut skip) = match *done {
            0 => (client.pull_blob_stream(&self.reference, layer).await?, 0),
            at => match client
                .pull_blob_stream_partial(&self.reference, layer, at, None)
                .await?
            {
                BlobResponse::Partial(stream) => (stream, 0),
                BlobResponse::Full(stream) => (stream, at),
            },
        };
        let mut reader = StreamReader::new(stream);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = reader.read(&mut buffer).await?;
            if count == 0 {
                return Ok(());
            }
            let skipped = skip.min(count as u64);
            skip -= skipped;
            let new = &buffer[skipped as usize..count];
            if *done + new.len() as u64 > size_of(layer) {
                bail!("it is longer than its manifest says");
            }
            write(sink, new).await?;
            *done += new.len() as u64;
        }
    }
}

/// Nobody reads the archive any more.
#[derive(Debug, thiserror::Error)]
#[error("the server stopped reading")]
struct Closed;

/// The imported template, or what went wrong first: an import ends early because its download failed, or the other way round.
pub(in crate::commands) async fn outcome<T, E: Into<anyhow::Error>>(
    imported: Result<T, E>,
    download: JoinHandle<anyhow::Result<()>>,
) -> anyhow::Result<T> {
    match (imported, download.await.context("downloading the image")?) {
        (Ok(template), _) => Ok(template),
        (Err(_), Err(error)) if !error.is::<Closed>() => Err(error),
        (Err(error), _) => Err(error.into()),
    }
}

fn size_of(layer: &OciDescriptor) -> u64 {
    u64::try_from(layer.size).unwrap_or(0)
}

async fn add_file(sink: &mut DuplexStream, path: &str, content: &[u8]) -> anyhow::Result<()> {
    let size = content.len() as u64;
    write(sink, header(path, size)?.as_bytes()).await?;
    write(sink, content).await?;
    pad(sink, size).await
}

fn header(path: &str, size: u64) -> io::Result<tar::Header> {
    let mut header = tar::Header::new_gnu();
    header.set_path(path)?;
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    Ok(header)
}

async fn pad(sink: &mut DuplexStream, size: u64) -> anyhow::Result<()> {
    let rest = size.next_multiple_of(BLOCK) - size;
    write(sink, &[0; BLOCK as usize][..rest as usize]).await
}

async fn write(sink: &mut DuplexStream, bytes: &[u8]) -> anyhow::Result<()> {
    sink.write_all(bytes).await.map_err(|_| Closed.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_of_this_host_speak_plain_http() {
        for registry in [
            "localhost",
            "localhost:5000",
            "127.0.0.1:5000",
            "[::1]:5000",
        ] {
            assert!(is_loopback(registry), "{registry}");
        }
        for registry in [
            "ghcr.io",
            "index.docker.io",
            "10.0.0.1:5000",
            "localhost.example.com",
        ] {
            assert!(!is_loopback(registry), "{registry}");
        }
    }
}
