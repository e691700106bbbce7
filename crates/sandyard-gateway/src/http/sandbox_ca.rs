//! The operator's certificates that every sandbox trusts beside this gateway's, such as those of a company's own authority.

use std::io;
use std::path::Path;

use rustls::RootCertStore;
use sandyard_tls::{files, roots};

use crate::settings::GatewayError;

/// Where providers of this host find them, in the gateway's folder.
const FILE: &str = "sandbox-ca.pem";
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Copies the certificates into the gateway's folder, or removes those of an earlier start. Returns them in PEM.
pub(super) fn install(folder: &Path, from: Option<&Path>) -> Result<String, GatewayError> {
    let copy = folder.join(FILE);
    let pem = from.map_or(Ok(String::new()), read)?;
    let written = match from {
        Some(_) => files::replace(&copy, pem.as_bytes(), files::PUBLIC),
        None => std::fs::remove_file(&copy),
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&copy, error)),
        _ => Ok(pem),
    }
}

fn read(path: &Path) -> Result<String, GatewayError> {
    let text = std::fs::read_to_string(path).map_err(|error| failed(path, error))?;
    let pem = certificates(&text);
    let mut roots = RootCertStore::empty();
    roots::add_pem(&mut roots, pem.as_bytes())
        .map_err(|error| failed(path, io::Error::new(io::ErrorKind::InvalidData, error)))?;
    Ok(pem)
}

/// Only the certificates of a file: sandboxes can read the result, and the file may hold a key as well.
fn certificates(text: &str) -> String {
    let parts = text.split(BEGIN).skip(1);
    let bodies = parts.filter_map(|part| Some(part.split_once(END)?.0));
    bodies.map(|body| format!("{BEGIN}{body}{END}\n")).collect()
}

fn failed(path: &Path, source: io::Error) -> GatewayError {
    GatewayError::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certificates_are_copied_and_a_later_start_without_them_removes_the_copy() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("company.pem");
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(["example.com".to_owned()]).unwrap();
        let certificate = params
            .self_signed(&key)
            .unwrap()
            .pem()
            .replace("\r\n", "\n");
        let text = format!("# Company\n{}{certificate}", key.serialize_pem());
        std::fs::write(&source, text).unwrap();
        let copy = folder.path().join(FILE);
        assert_eq!(install(folder.path(), Some(&source)).unwrap(), certificate);
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), certificate);
        assert_eq!(install(folder.path(), None).unwrap(), "");
        assert!(!copy.exists());
        std::fs::write(&source, key.serialize_pem()).unwrap();
        install(folder.path(), Some(&source)).unwrap_err();
    }
}
