//! Trusting the gateway where no layer can be put on top: in the files of a root that is in use.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::TrustRecord;
use super::certificates::Certificates;
use super::plan::{BUNDLES, CERTIFICATES, LOCAL, LOCAL_NAME, POLICIES, POLICY_NAME};
use super::{BUNDLE, GATEWAY_CERTIFICATE};
use crate::error::Result;
use crate::sys::OperationExt;

/// Longer than any list.
const MOST_LIST_BYTES: u64 = 4 << 20;

/// Adds the certificates in the file `from` to what `root` trusts. `None`: there is no such file, or the root has no `/etc`.
///
/// May be done again, with others too: all are trusted then.
pub(crate) fn trust_in_place(root: &Path, from: &Path) -> Result<Option<TrustRecord>> {
    let Some(certificates) = Certificates::read(from)? else {
        return Ok(None);
    };
    let inside = |path: &str| root.join(path.trim_start_matches('/'));
    if !inside("/etc").is_dir() {
        return Ok(None);
    }
    let pem = &certificates.pem();
    let lists: Vec<PathBuf> = BUNDLES
        .map(inside)
        .into_iter()
        .filter(|path| path.is_file())
        .collect();
    for list in &lists {
        add(list, &certificates).operation("add to", list.display())?;
    }
    let folder = inside(CERTIFICATES);
    fs::create_dir_all(&folder).operation("make", folder.display())?;
    write(&inside(GATEWAY_CERTIFICATE), pem).operation("write", GATEWAY_CERTIFICATE)?;
    for (hash, index) in certificates.hashes() {
        let path = folder.join(format!("{hash}.0"));
        write(&path, certificates.single(index)).operation("write", path.display())?;
    }
    // What variables name, wherever this system has its list.
    let default_path = inside(BUNDLE);
    if let Some(list) = lists.first().filter(|_| !default_path.is_file()) {
        let text = read(list).operation("read", list.display())?;
        write(&default_path, &text).operation("write", default_path.display())?;
    }
    if inside("/usr").is_dir() {
        let local = inside(LOCAL);
        fs::create_dir_all(&local).operation("make", local.display())?;
        write(&local.join(LOCAL_NAME), pem).operation("write", LOCAL)?;
    }
    for folder in POLICIES.map(inside) {
        let made = fs::create_dir_all(&folder);
        if made.as_ref().is_err_and(is_blocked) {
            // No browser reads a policy there either.
            continue;
        }
        made.operation("make", folder.display())?;
        let policy = folder.join(POLICY_NAME);
        write(&policy, certificates.policy()).operation("write", policy.display())?;
    }
    Ok(Some(TrustRecord {
        layer: String::new(),
        has_bundle: !lists.is_empty(),
    }))
}

/// Whether a folder cannot be made because a file is where it, or one above it, would be.
fn is_blocked(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, NotADirectory};
    matches!(error.kind(), AlreadyExists | NotADirectory)
}

/// Adds to a list that may hold it already.
fn add(list: &Path, certificates: &Certificates) -> io::Result<()> {
    let missing = certificates.missing_in(&read(list)?);
    if missing.is_empty() {
        return Ok(());
    }
    // Written as it is, at its place: it may be a mount of its own.
    let mut file = OpenOptions::new().append(true).open(list)?;
    file.write_all(&missing)
}

fn read(list: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let file = fs::File::open(list)?;
    file.take(MOST_LIST_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MOST_LIST_BYTES {
        let message = "the list of certificates is longer than 4 MiB";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

fn write(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    // Anew: what is there may be a link to somewhere else.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o644);
    options.open(path)?.write_all(text.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = include_str!("test_certificate.pem");

    fn trusted(root: &Path) -> TrustRecord {
        let pem = root.join("gateway.pem");
        fs::write(&pem, PEM).expect("write");
        trust_in_place(root, &pem)
            .expect("trust")
            .expect("a record")
    }

    #[test]
    fn it_is_added_to_the_list_once_and_stands_where_openssl_looks() {
        let root = tempfile::tempdir().expect("a folder");
        let certs = root.path().join("etc/ssl/certs");
        fs::create_dir_all(&certs).expect("make");
        let list = certs.join("ca-certificates.crt");
        fs::write(&list, "others").expect("write");
        for _ in 0..2 {
            assert!(trusted(root.path()).has_bundle);
            let text = fs::read_to_string(&list).expect("read");
            assert!(text.starts_with("others\n-----BEGIN"), "{text}");
            assert_eq!(text.matches("BEGIN CERTIFICATE").count(), 1);
        }
        for folder in POLICIES {
            let path = root.path().join(&folder[1..]).join(POLICY_NAME);
            let policy = fs::read_to_string(path).expect("read");
            let policy: serde_json::Value = serde_json::from_str(&policy).expect("JSON");
            let certificate = policy["CACertificates"][0].as_str().expect("a certificate");
            assert!(certificate.starts_with("MIIB"), "{policy}");
        }
        assert!(certs.join("f7ebe0a2.0").is_file());
        assert!(certs.join("sandyard-gateway.pem").is_file());
    }

    #[test]
    fn a_list_elsewhere_is_found_at_the_usual_place_too() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("etc/pki/tls/certs");
        fs::create_dir_all(&folder).expect("make");
        fs::write(folder.join("ca-bundle.crt"), "others\n").expect("write");
        assert!(trusted(root.path()).has_bundle);
        let default_path = root.path().join("etc/ssl/certs/ca-certificates.crt");
        let text = fs::read_to_string(default_path).expect("read");
        assert!(text.starts_with("others\n-----BEGIN"), "{text}");
    }

    #[test]
    fn a_root_without_a_list_gets_the_certificate_alone() {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir(root.path().join("etc")).expect("make");
        fs::write(root.path().join("etc/chromium"), "in the way").expect("write");
        assert!(!trusted(root.path()).has_bundle);
        assert!(
            !root
                .path()
                .join("etc/ssl/certs/ca-certificates.crt")
                .exists()
        );
    }
}
