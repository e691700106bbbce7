//! The gateway's certificate, as it lies in the data directory.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::subject;
use crate::error::{EngineError, ErrorKind, Result};

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
/// Longer than any.
const MOST_BYTES: u64 = 64 * 1024;

/// One certificate.
#[derive(Debug)]
pub(super) struct Certificate {
    /// As text, without anything that may stand around it.
    pem: String,
}

impl Certificate {
    /// Reads it; `None` when no gateway has made one.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        let mut text = String::new();
        let read =
            fs::File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EngineError::failed(
                format!("reading `{}`", path.display()),
                &error,
            )),
            Ok(_) => Self::parse(&text).map(Some).ok_or_else(|| {
                let message = format!("`{}` holds no certificate", path.display());
                EngineError::new(ErrorKind::Invalid, message)
                    .hint("remove it, and start the server again: it makes another one")
            }),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let start = text.find(BEGIN)?;
        let end = text[start..].find(END)?;
        // Nothing else of the file: whatever it is, it is not meant for sandboxes.
        let pem = format!("{}{END}\n", &text[start..start + end]);
        let certificate = Self { pem };
        certificate.der().map(|_| certificate)
    }

    /// As text, with a newline at the end.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// As a policy of Chromium's and its kin, which look at no list of the system's.
    ///
    /// Since version 128; older ones do not know it and leave it alone.
    pub(super) fn policy(&self) -> String {
        let body = self.body().unwrap_or_default();
        format!("{{\"CACertificates\": [\"{body}\"]}}\n")
    }

    /// As bytes.
    fn der(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.body()?).ok()
    }

    /// The same in letters and digits, as it stands between the first and the last line.
    fn body(&self) -> Option<String> {
        let body = self.pem.strip_prefix(BEGIN)?.split(END).next()?;
        Some(body.split_whitespace().collect())
    }

    /// The name OpenSSL looks it up by, in eight hexadecimal digits; `None` where it has a name of another kind.
    pub(super) fn subject_hash(&self) -> Option<String> {
        subject::hash(&self.der()?)
    }

    /// Tells it from others.
    pub(super) fn fingerprint(&self) -> String {
        crate::random::hex(&Sha256::digest(&self.pem)[..16])
    }
}
