//! The files that a template needs in its top layer.

use std::path::{Path, PathBuf};

use sandyard_template::{Entry, Folder, LayerFile, ResolvedPath, Template, TemplateLookup};
use sha2::{Digest, Sha256};

use super::certificates::Certificates;
use super::{BUNDLE, GATEWAY_CERTIFICATE};
use crate::error::{EngineError, ErrorKind, Result};
use crate::random;

/// Paths of certificate lists: Debian, Alpine and Arch; Fedora; SUSE; OpenSSL's own; Fedora's, behind its links.
pub(super) const BUNDLES: [&str; 5] = [
    BUNDLE,
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];
pub(super) const CERTIFICATES: &str = "/etc/ssl/certs";
/// What `update-ca-certificates` adds to the list it writes.
pub(super) const LOCAL: &str = "/usr/local/share/ca-certificates";
pub(super) const LOCAL_NAME: &str = "sandyard-gateway.crt";
/// Where browsers look for what their administrator says: Chromium, Chrome, and Chrome as test programs bring it.
pub(super) const POLICIES: [&str; 3] = [
    "/etc/chromium/policies/managed",
    "/etc/opt/chrome/policies/managed",
    "/etc/opt/chrome_for_testing/policies/managed",
];
/// Read before all other policies. The last one wins, so that the template's policies win.
pub(super) const POLICY_NAME: &str = "00-sandyard-gateway.json";
/// Increased when a layer of the same name would have another content.
const GENERATION: u8 = 2;

/// What is to be made for one template.
#[derive(Debug)]
pub(super) struct Plan {
    /// Which part of the template it goes on.
    pub(super) part: usize,
    /// Where that part is mounted inside.
    pub(super) target: PathBuf,
    /// The template's own lists.
    pub(super) lists: Vec<List>,
    /// What is in the layer.
    pub(super) files: Vec<NewFile>,
}

/// A list of the template.
#[derive(Debug)]
pub(super) struct List {
    /// Its content.
    pub(super) file: LayerFile,
    part: usize,
    path: PathBuf,
    folders: Vec<Folder>,
    /// Whether the usual path leads to it.
    is_default: bool,
}

/// A file to be made.
#[derive(Debug)]
pub(super) struct NewFile {
    /// Its path inside, without links.
    pub(super) path: PathBuf,
    /// Its content.
    pub(super) text: Text,
    /// Directories of the template on the way.
    pub(super) folders: Vec<Folder>,
}

/// The content of a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Text {
    /// Our certificates.
    Certificates,
    /// This one of them.
    Single(usize),
    /// This one of the template's lists, and our certificates behind it.
    List(usize),
    /// The policy by which browsers trust them.
    Policy,
}

impl Plan {
    /// Reads the template. `None`: it has no `/etc`.
    pub(super) fn draw(template: &Template, certificates: &Certificates) -> Result<Option<Self>> {
        let mut lookup = TemplateLookup::new(template);
        if !is_folder(find(&mut lookup, "/etc")?.as_ref()) {
            return Ok(None);
        }
        let Some(folder) = find(&mut lookup, CERTIFICATES)?.filter(is_free) else {
            let message = format!("`{CERTIFICATES}` of the template is not a folder");
            return Err(EngineError::new(ErrorKind::Conflict, message));
        };
        let lists = lists(&mut lookup)?;
        let mut plan = Self {
            part: folder.part,
            target: template.parts[folder.part].target.clone(),
            lists,
            files: Vec::new(),
        };
        plan.add(&folder, name_of(GATEWAY_CERTIFICATE), Text::Certificates);
        for (hash, index) in certificates.hashes() {
            plan.add(&folder, &format!("{hash}.0"), Text::Single(index));
        }
        plan.add_lists(&folder);
        // In every template: a browser may be installed later.
        for path in POLICIES {
            plan.add_if_here(find(&mut lookup, path)?, POLICY_NAME, Text::Policy);
        }
        let usr = find(&mut lookup, "/usr")?;
        let is_ours = usr.as_ref().is_some_and(|usr| usr.part == plan.part);
        if is_ours && is_folder(usr.as_ref()) {
            plan.add_if_here(find(&mut lookup, LOCAL)?, LOCAL_NAME, Text::Certificates);
        }
        Ok(Some(plan))
    }

    /// The template's lists where they are, and one at the usual found in any case, if there are any.
    fn add_lists(&mut self, folder: &ResolvedPath) {
        let default_path = folder.path.join(name_of(BUNDLE));
        for index in 0..self.lists.len() {
            let list = &self.lists[index];
            if list.part == self.part {
                self.files.push(NewFile {
                    path: list.path.clone(),
                    text: Text::List(index),
                    folders: list.folders.clone(),
                });
            }
        }
        // Its own list lies there, or a link leads from there to one of those.
        let is_there = self
            .lists
            .first()
            .is_some_and(|list| list.is_default && list.part == self.part);
        if !self.lists.is_empty()
            && !is_there
            && self.files.iter().all(|file| file.path != default_path)
        {
            self.add(folder, name_of(BUNDLE), Text::List(0));
        }
    }

    /// Adds a file in a folder that can be had in this part of the template.
    fn add_if_here(&mut self, folder: Option<ResolvedPath>, name: &str, text: Text) {
        let Some(folder) = folder.filter(is_free) else {
            return;
        };
        // A link may lead two names to one folder.
        let path = folder.path.join(name);
        if folder.part == self.part && self.files.iter().all(|file| file.path != path) {
            self.add(&folder, name, text);
        }
    }

    fn add(&mut self, folder: &ResolvedPath, name: &str, text: Text) {
        self.files.push(NewFile {
            path: folder.path.join(name),
            text,
            folders: folder.folders.clone(),
        });
    }

    /// The layer's name: a hash of all that it is made of.
    pub(super) fn name(&self, certificates: &Certificates) -> String {
        let mut hash = Sha256::new();
        let mut put = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        put(&[GENERATION]);
        put(certificates.pem().as_bytes());
        put(self.target.as_os_str().as_encoded_bytes());
        for list in &self.lists {
            list.file
                .identity()
                .iter()
                .for_each(|number| put(&number.to_le_bytes()));
        }
        for file in &self.files {
            put(file.path.as_os_str().as_encoded_bytes());
            put(&[match file.text {
                Text::Certificates => u8::MAX,
                Text::Policy => u8::MAX - 1,
                // Its path tells which.
                Text::Single(_) => u8::MAX - 2,
                Text::List(index) => index as u8,
            }]);
            for folder in &file.folders {
                put(folder.path.as_os_str().as_encoded_bytes());
                for number in [folder.mode, folder.uid, folder.gid] {
                    put(&number.to_le_bytes());
                }
            }
        }
        random::hex(&hash.finalize()[..16])
    }
}

fn lists(lookup: &mut TemplateLookup<'_>) -> Result<Vec<List>> {
    let mut lists: Vec<List> = Vec::new();
    for path in BUNDLES {
        if let Some(resolved) = find(lookup, path)?
            && let Entry::File(file) = resolved.entry
            && lists.iter().all(|list| list.path != resolved.path)
        {
            lists.push(List {
                file,
                part: resolved.part,
                path: resolved.path,
                folders: resolved.folders,
                is_default: path == BUNDLE,
            });
        }
    }
    Ok(lists)
}

fn find(lookup: &mut TemplateLookup<'_>, path: &str) -> Result<Option<ResolvedPath>> {
    lookup
        .find(Path::new(path))
        .map_err(|error| EngineError::template("looking for certificates", &error))
}

fn is_folder(resolved: Option<&ResolvedPath>) -> bool {
    resolved.is_some_and(|resolved| matches!(resolved.entry, Entry::Folder))
}

/// A folder, or room for one.
fn is_free(resolved: &ResolvedPath) -> bool {
    matches!(resolved.entry, Entry::Folder | Entry::Nothing)
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
