//! The template `host`: the host's own programs, read-only, with an `/etc` made up for sandboxes.
//!
//! ```text
//! /       one synthetic layer: empty directories, made-up /etc, /home/user, /workspace     root.rs, etc.rs, users.rs
//! /usr    [synthetic: sudo, python if missing; apt-get … that say what to do] over the host's usr.rs
//! /opt    the host's, if it holds anything                                                  parts.rs
//! /bin …  links as on the host, or parts of their own where they are directories            parts.rs
//! ```
//! It is looked up each time a sandbox is made, so the usual answer costs some stat calls: see `fingerprint.rs`.

pub(crate) mod etc;
mod etc_allowlist;
mod fingerprint;
mod parts;
mod root;
pub(crate) mod users;
mod usr;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use fingerprint::Fingerprint;

use crate::copy::Owners;
use crate::error::Result;
use crate::manifest::{Kind, LayerRef, Manifest, ManifestPart, Template};
use crate::store::{Replace, Store};

/// Name of the template made from the host.
pub const HOST_TEMPLATE: &str = "host";

/// How the host template is made.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// A static program that, called as `sudo` and setuid root, becomes root and runs its arguments. Installed where the
    /// host has no `sudo` of its own.
    pub shim_program: Option<PathBuf>,
    /// Install it even over the host's `sudo`, which cannot work where only one user id exists.
    pub prefer_shim: bool,
    /// Whose the synthetic files are.
    pub owners: Owners,
    /// The host's root directory; another one in tests.
    pub host_root: PathBuf,
    /// For how long a look at the host is good: within this time after one, a change of the host goes unnoticed.
    pub trust_for: Duration,
}

impl HostOptions {
    /// The host this runs on.
    pub fn new(owners: Owners) -> Self {
        Self {
            shim_program: None,
            prefer_shim: false,
            owners,
            host_root: PathBuf::from("/"),
            trust_for: Duration::ZERO,
        }
    }

    fn host(&self, path: &str) -> PathBuf {
        self.host_root.join(path)
    }
}

impl Store {
    /// The template `host`, made or made again if the host changed since. The layers of the one before stay for the
    /// sandboxes on them until a sweep finds them unused.
    ///
    /// # Errors
    /// When the host cannot be read or the store not be written.
    pub fn host_template(&self, options: &HostOptions) -> Result<Template> {
        if let Some(template) = self.current_host_template(options)? {
            return Ok(template);
        }
        // One builds, the others wait and take the result.
        let _locked = self.lock_file(".host.lock")?;
        if let Some(template) = self.current_host_template(options)? {
            return Ok(template);
        }
        self.build_host_template(options)
    }

    /// The template as it is, if it is current.
    fn current_host_template(&self, options: &HostOptions) -> Result<Option<Template>> {
        let Some(manifest) = self.manifest(HOST_TEMPLATE)? else {
            return Ok(None);
        };
        let Some(stored) = &manifest.fingerprint else {
            return Ok(None);
        };
        let whole = manifest
            .stored_layers()
            .all(|id| self.layers_dir().join(id).join("tree").is_dir());
        if !whole {
            return Ok(None);
        }
        let seen = self.templates_dir().join(".host-seen");
        if fingerprint::is_fresh(&seen, options.trust_for) {
            return Ok(Some(manifest.resolve(self.layers_dir())));
        }
        let stamp = self.templates_dir().join(".host-checked");
        let current = fingerprint::is_current(options, stored, &stamp);
        if current {
            fingerprint::stamp(&seen);
        }
        Ok(current.then(|| manifest.resolve(self.layers_dir())))
    }

    fn build_host_template(&self, options: &HostOptions) -> Result<Template> {
        // Taken before anything is read: what changes meanwhile makes the result stale, not wrong for ever.
        let fingerprint = Fingerprint::take(options);
        let tops = parts::find(options);
        let root = self.new_layer("host-root")?;
        root::fill(&root.tree()?, options, &tops)?;
        let mut layers = vec![root];
        let mut manifest_parts = vec![ManifestPart {
            target: PathBuf::from("/"),
            key: "root".to_owned(),
            layers: vec![LayerRef::Layer(layers[0].id().to_owned())],
        }];
        for part in tops.parts {
            let mut below = vec![LayerRef::Path(part.source)];
            if part.key == "usr" {
                let synthetic = self.new_layer("host-usr")?;
                if usr::fill(&synthetic, options)? {
                    below.insert(0, LayerRef::Layer(synthetic.id().to_owned()));
                    layers.push(synthetic);
                }
            }
            manifest_parts.push(ManifestPart {
                target: part.target,
                key: part.key,
                layers: below,
            });
        }
        let manifest = Manifest {
            size_bytes: None,
            fingerprint: Some(fingerprint),
            ..Manifest::new(HOST_TEMPLATE, Kind::Host, manifest_parts, 0)
        };
        let template = self.publish(manifest, layers, Replace::Yes)?;
        fingerprint::stamp(&self.templates_dir().join(".host-checked"));
        fingerprint::stamp(&self.templates_dir().join(".host-seen"));
        Ok(template)
    }
}
