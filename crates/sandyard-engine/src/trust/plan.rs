//! Which files a template needs on top, and where.

use std::path::{Path, PathBuf};

use sandyard_template::{Folder, Found, LayerFile, Place, Template, View};
use sha2::{Digest, Sha256};

use super::certificate::Certificate;
use super::{BUNDLE, OURS};
use crate::error::{EngineError, ErrorKind, Result};
use crate::random;

/// Where templates have their lists: Debian, Alpine and Arch; Fedora; SUSE; OpenSSL's own; Fedora's, behind its links.
const BUNDLES: [&str; 5] = [
    BUNDLE,
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];
const CERTIFICATES: &str = "/etc/ssl/certs";
/// What `update-ca-certificates` adds to the list it writes.
const LOCAL: &str = "/usr/local/share/ca-certificates";
const LOCAL_NAME: &str = "sandyard-gateway.crt";
/// Counts up when layers of the same name would hold something else.
const GENERATION: u8 = 1;

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
    /// What it holds.
    pub(super) file: LayerFile,
    part: usize,
    path: PathBuf,
    folders: Vec<Folder>,
    /// Whether the usual path leads to it.
    is_usual: bool,
}

/// A file to be made.
#[derive(Debug)]
pub(super) struct NewFile {
    /// Its path inside, without links.
    pub(super) path: PathBuf,
    /// Which of the template's lists stands before our certificate.
    pub(super) list: Option<usize>,
    /// Directories of the template on the way.
    pub(super) folders: Vec<Folder>,
}

impl Plan {
    /// Looks at the template. `None`: it has no `/etc`.
    pub(super) fn draw(template: &Template, certificate: &Certificate) -> Result<Option<Self>> {
        let mut view = View::new(template);
        if !is_folder(find(&mut view, "/etc")?.as_ref()) {
            return Ok(None);
        }
        let Some(folder) = find(&mut view, CERTIFICATES)?.filter(is_free) else {
            let message = format!("`{CERTIFICATES}` of the template is no folder");
            return Err(EngineError::new(ErrorKind::Conflict, message));
        };
        let lists = lists(&mut view)?;
        let mut plan = Self {
            part: folder.part,
            target: template.parts[folder.part].target.clone(),
            lists,
            files: Vec::new(),
        };
        plan.add(&folder, name_of(OURS), None);
        if let Some(hash) = certificate.subject_hash() {
            plan.add(&folder, &format!("{hash}.0"), None);
        }
        plan.add_lists(&folder);
        let usr = find(&mut view, "/usr")?;
        let is_ours = usr.as_ref().is_some_and(|usr| usr.part == plan.part);
        if is_ours
            && is_folder(usr.as_ref())
            && let Some(local) = find(&mut view, LOCAL)?.filter(is_free)
            && local.part == plan.part
        {
            plan.add(&local, LOCAL_NAME, None);
        }
        Ok(Some(plan))
    }

    /// The template's lists where they are, and one at the usual place in any case, if there are any.
    fn add_lists(&mut self, folder: &Place) {
        let usual = folder.path.join(name_of(BUNDLE));
        for index in 0..self.lists.len() {
            let list = &self.lists[index];
            if list.part == self.part {
                self.files.push(NewFile {
                    path: list.path.clone(),
                    list: Some(index),
                    folders: list.folders.clone(),
                });
            }
        }
        // Its own list lies there, or a link leads from there to one of those.
        let is_there = self
            .lists
            .first()
            .is_some_and(|list| list.is_usual && list.part == self.part);
        if !self.lists.is_empty() && !is_there && self.files.iter().all(|file| file.path != usual) {
            self.add(folder, name_of(BUNDLE), Some(0));
        }
    }

    fn add(&mut self, folder: &Place, name: &str, list: Option<usize>) {
        self.files.push(NewFile {
            path: folder.path.join(name),
            list,
            folders: folder.folders.clone(),
        });
    }

    /// The layer's name: a hash of all that it is made of.
    pub(super) fn name(&self, certificate: &Certificate) -> String {
        let mut hash = Sha256::new();
        let mut put = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        put(&[GENERATION]);
        put(certificate.pem().as_bytes());
        put(self.target.as_os_str().as_encoded_bytes());
        for list in &self.lists {
            list.file
                .identity()
                .iter()
                .for_each(|number| put(&number.to_le_bytes()));
        }
        for file in &self.files {
            put(file.path.as_os_str().as_encoded_bytes());
            put(&[file.list.map_or(u8::MAX, |index| index as u8)]);
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

fn lists(view: &mut View<'_>) -> Result<Vec<List>> {
    let mut lists: Vec<List> = Vec::new();
    for path in BUNDLES {
        if let Some(place) = find(view, path)?
            && let Found::File(file) = place.found
            && lists.iter().all(|list| list.path != place.path)
        {
            lists.push(List {
                file,
                part: place.part,
                path: place.path,
                folders: place.folders,
                is_usual: path == BUNDLE,
            });
        }
    }
    Ok(lists)
}

fn find(view: &mut View<'_>, path: &str) -> Result<Option<Place>> {
    view.find(Path::new(path))
        .map_err(|error| EngineError::template("looking for certificates", &error))
}

fn is_folder(place: Option<&Place>) -> bool {
    place.is_some_and(|place| matches!(place.found, Found::Folder))
}

/// A folder, or room for one.
fn is_free(place: &Place) -> bool {
    matches!(place.found, Found::Folder | Found::Nothing)
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
